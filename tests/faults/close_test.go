package faults_test

// Close, while requests, releases and renewals are under way.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// closeIn closes a system within d.
func closeIn(s *locktest.Site, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return s.Close(ctx)
}

func isClosed(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, lockkeeper.ErrClosed) {
		t.Errorf("error %v, want one that is %v", err, lockkeeper.ErrClosed)
	}
}

// refusesAll checks that an ended system refuses every request at once, by call with any context and by message.
func refusesAll(t *testing.T, s *locktest.Site, k locktest.Key) {
	t.Helper()
	short, cancel := context.WithTimeout(context.Background(), locktest.Soon)
	defer cancel()
	locktest.InTime(t, "the refusals", func() {
		for _, ctx := range []context.Context{short, context.Background()} {
			for _, lock := range []*lockkeeper.Lock{s.Lock(k.LockName), lockkeeper.MultiLock(s.Lock(k.LockName), s.FencedLock(k.LockName+" fenced"))} {
				for _, err := range locktest.Limited(t, "every call", func() map[string]error { return locktest.Errors(ctx, lock) }) {
					isClosed(t, err)
				}
			}
		}
		p := s.Probe(t)
		for _, request := range locktest.Requests(k.Message()) {
			p.Send(request)
			switch m := locktest.Next[any](t, p).(type) {
			case *actor.DeadLetterResponse:
			case locktest.Refusal: // the guardian still runs
				if m.GetReason() != messages.Reason_REASON_CLOSED && !strings.Contains(m.GetDetail(), "KIND_EXPIRABLE_SEMAPHORE only") {
					t.Errorf("%T: answered %v", request, m)
				}
			default:
				t.Errorf("%T: answered %T{%v}", request, m, m)
			}
		}
	})
}

// The end under load, by Close or by a stop of the guardian: waiters are answered, holders are notified, the keys are
// deleted, and later requests are refused.
func TestClose_UnderLoadAnswersAllRequests(t *testing.T) {
	for what, stop := range map[string]func(s *locktest.Site) error{
		"closed":               func(s *locktest.Site) error { return closeIn(s, redistest.Limit) },
		"the guardian stopped": func(s *locktest.Site) error { s.Actors.Root.Stop(s.Guardian()); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, foreign := locktest.NewOnOwnServer(t, lockkeeper.Config{Idle: 10 * time.Millisecond})
			s.SkipCloseCheck = what != "closed"
			server := foreign.Server
			foreign.TakeAs(t, locktest.Redisson, time.Minute)
			keys := []locktest.Key{locktest.NewKey(t, server), locktest.NewKey(t, server), locktest.NewKey(t, server)}
			var held []*locktest.Guard
			for range 3 { // these are not released
				held = append(held, locktest.Guards(t, s, server)...)
			}
			// Goroutines acquire the locks in turn until they are refused; some wait for a lock that is never free.
			var work sync.WaitGroup
			var grants atomic.Int64
			for i := range 32 {
				work.Go(func() {
					for n := i; ; n++ {
						k := keys[n%len(keys)]
						if i%8 == 0 {
							k = foreign
						}
						hold, err := s.Lock(k.LockName).Acquire(context.Background())
						if err != nil {
							isClosed(t, err)
							return
						}
						grants.Add(1)
						if err := hold.Release(context.Background()); err != nil &&
							!errors.Is(err, lockkeeper.ErrClosed) && !errors.Is(err, lockkeeper.ErrLost) {
							t.Errorf("release: %v", err)
						}
					}
				})
			}
			redistest.Eventually(t, "some traffic", func() bool { return grants.Load() > 500 })

			locktest.Check(t, stop(s))
			locktest.Limited(t, "every request to be answered", func() bool { work.Wait(); return true })
			for _, g := range held {
				if lost := g.AwaitLoss(t); lost.Reason != messages.Reason_REASON_CLOSED {
					t.Errorf("%s: lost because of %v", g.How, lost.Reason)
				}
			}
			foreign.Unlock(t)
			redistest.Eventually(t, "keys and subscriptions to go", func() bool {
				return len(server.Channels(t)) == 0 && len(server.Keys(t, "*")) == 0
			})
			refusesAll(t, s, keys[0])
			// A stopped guardian does not wait for its releases.
			if err := locktest.Limited(t, "Close", func() error { return closeIn(s, time.Minute) }); (err != nil) != s.SkipCloseCheck {
				t.Errorf("Close: %v", err)
			}
			refusesAll(t, s, keys[0])
		})
	}
}

// When Redis does not answer, Close ends with its context, and its error names what it leaves behind.
func TestClose_WithoutRedisEndsWithItsContext(t *testing.T) {
	for what, fault := range map[string]func(t *testing.T, r *locktest.Remote){
		"killed":     func(t *testing.T, r *locktest.Remote) { r.Server.Kill(t) },
		"paused":     func(t *testing.T, r *locktest.Remote) { r.Server.Pause(t) },
		"no replies": func(_ *testing.T, r *locktest.Remote) { r.Proxy.DropReplies(true) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := locktest.NewRemote(t, redistest.Start(t), lockkeeper.Config{CallTimeout: time.Second})
			r.SkipCloseCheck = true
			held := locktest.Guards(t, r.Site, r.Server)
			r.TakeAs(t, locktest.Redisson, -1)
			waiting := []<-chan locktest.Grant{r.AcquireSoon(t, held[0].Key), r.AcquireSoon(t, r.Key)}
			r.AwaitWaiters(t, held[0].Key, 1)
			r.AwaitSubscribers(t, 1)
			fault(t, r)
			waiting = append(waiting, r.AcquireSoon(t, locktest.NewKey(t, r.Server)))

			locktest.InTime(t, "Close", func() { // with another error if it does not wait for Redis
				if err := closeIn(r.Site, 300*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Close: %v", err)
				}
			})
			for _, g := range held {
				if lost := g.AwaitLoss(t); lost.Reason != messages.Reason_REASON_CLOSED {
					t.Errorf("%s: lost because of %v", g.How, lost.Reason)
				}
			}
			for _, w := range waiting {
				isClosed(t, locktest.Await(t, "the refusal", w).Err)
			}
			refusesAll(t, r.Site, held[0].Key)
			locktest.InTime(t, "the second close", func() {
				if err := closeIn(r.Site, time.Minute); err == nil {
					t.Error("the second close does not return the error of the first")
				}
			})
		})
	}
}

// awaitClosing waits until a Close of a system has begun.
func awaitClosing(t *testing.T, s *locktest.Site) {
	t.Helper()
	redistest.Eventually(t, "Close to begin", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := s.Lock(redistest.Name(t)).TryAcquire(ctx)
		return errors.Is(err, lockkeeper.ErrClosed)
	})
}

// An idle lock actor does not leave while it owes an answer, or while a first request is under way.
func TestIdleActor_StaysWhileRequestsArePending(t *testing.T) {
	t.Parallel()
	const idle = 10 * time.Millisecond
	r := locktest.NewRemote(t, redistest.Shared(t), lockkeeper.Config{Idle: idle})
	r.Proxy.Delay(5 * idle)
	r.Inspect(t, r.Key)

	s, k := locktest.New(t, lockkeeper.Config{Idle: idle}, locktest.Around(func(_ actor.ReceiverContext, m any, pass func()) {
		pass()
		if _, started := m.(*actor.Started); started {
			<-time.After(5 * idle) // a slow start
		}
	}))
	locktest.Release(t, s.Acquire(t, k))
}

// Requests that are under way to a lock actor, or wait for Redis, when the system closes are answered, whether Redis
// confirms the end or not.
func TestClose_AnswersRequestsUnderWay(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		t.Run(fmt.Sprint("frozen: ", frozen), func(t *testing.T) {
			t.Parallel()
			faults := &locktest.FaultInjector{}
			r := locktest.NewRemote(t, redistest.Shared(t), lockkeeper.Config{}, faults.Middleware)
			r.SkipCloseCheck = frozen
			lock, hold := r.Lock(r.LockName), r.Acquire(t, r.Key)
			r.Proxy.Freeze(true)
			answers := make(chan error, 100)
			ask := func(call func(ctx context.Context) error) {
				go func() { answers <- call(context.Background()) }()
			}
			inspect := func(ctx context.Context) error { _, err := lock.Inspect(ctx); return err }
			ask(inspect)
			stalled, goOn := faults.Stall("*request.Call")
			defer goOn()
			ask(inspect)
			locktest.Await(t, "the actor to be stalled", stalled)
			p := r.Probe(t)
			for range 10 { // queued in the mailbox
				ask(func(ctx context.Context) error { _, err := lock.Acquire(ctx); return err })
				ask(func(ctx context.Context) error { return hold.Ensure(ctx, time.Minute/4) })
				ask(inspect)
				p.Send(&messages.Acquire{Lock: r.Message()})
			}
			timeout := redistest.Limit
			if frozen {
				timeout = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			closed := locktest.Go(func() error { return r.Close(ctx) })
			awaitClosing(t, r.Site)
			if frozen {
				<-ctx.Done()
			}
			goOn()
			if !frozen {
				r.Proxy.Freeze(false)
			}
			for range 32 {
				locktest.Await(t, "an answer", answers)
			}
			for range 10 {
				locktest.Next[any](t, p)
			}
			if err := locktest.Await(t, "Close", closed); (err != nil) != frozen {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// A System whose Redis client was closed before cannot release anything. Its Close says so at once, as long as one of
// its keys may be in Redis.
func TestClose_ReportsThatItsClientWasClosedBefore(t *testing.T) {
	const watchdog = 500 * time.Millisecond
	for what, test := range map[string]struct {
		use   func(t *testing.T, s *locktest.Site, k locktest.Key)
		clean bool
	}{
		"a release has failed": {use: func(t *testing.T, s *locktest.Site, k locktest.Key) {
			hold := s.Acquire(t, k)
			s.Client.Close()
			if err := hold.Release(locktest.Within(t)); err == nil {
				t.Error("released without a client")
			}
		}},
		"a lock actor was given up": {use: func(t *testing.T, s *locktest.Site, k locktest.Key) {
			hold, p := s.Acquire(t, k), s.Probe(t)
			s.Client.Close()
			for range 12 {
				p.Send(&messages.Inspect{Lock: k.Message()}) // the actor crashes on it
			}
			locktest.Await(t, "the loss", hold.Context().Done())
		}},
		"the lease is over": {clean: true, use: func(t *testing.T, s *locktest.Site, k locktest.Key) {
			s.Acquire(t, k)
			s.Client.Close()
			k.AwaitFree(t)
			<-time.After(watchdog) // a renewal may have been under way until then
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			faults, cfg := &locktest.FaultInjector{}, lockkeeper.Config{}
			if test.clean {
				cfg.Watchdog = watchdog
			}
			s, k := locktest.New(t, cfg, faults.Middleware)
			faults.Hit(func(m any) bool { return faultinject.TypeOf(m) == "*messages.Inspect" }, nil)
			s.SkipCloseCheck = !test.clean
			test.use(t, s, k)
			var err error
			locktest.InTime(t, "Close", func() { err = closeIn(s, redistest.Limit) })
			if test.clean {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !k.Exists(t) {
				t.Fatal("the key does not exist: the test proves nothing")
			}
			if err == nil || !strings.Contains(err.Error(), "before Redis confirmed every release") {
				t.Errorf("Close: %v", err)
			}
			if again := closeIn(s, redistest.Limit); again == nil {
				t.Error("the second Close returns no error")
			}
		})
	}
}

// A process that only waits cannot withdraw its waiter while Redis rejects it, and Close says so.
func TestClose_SaysThatRedisRejects(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "locker", "on", ">pw", "~*", "&*", "+@all")
	s, k := locktest.Open(t, locktest.URLAs(server, "locker", "pw"), lockkeeper.Config{Poll: 100 * time.Millisecond}), locktest.NewKey(t, server)
	s.SkipCloseCheck = true
	k.TakeAs(t, locktest.Redisson, -1)
	waiting := s.AcquireSoon(t, k)
	s.AwaitWaiters(t, k, 1)
	server.Do(t, "ACL", "SETUSER", "locker", "resetpass", ">other")
	server.Do(t, "CLIENT", "KILL", "USER", "locker")
	locktest.ExpectEnd(t, waiting, lockkeeper.ErrRejected)
	err := s.Close(locktest.Within(t))
	if !errors.Is(err, lockkeeper.ErrRejected) {
		t.Fatal(err)
	}
	locktest.ExpectWords(t, err.Error(), "free when their leases end", "WRONGPASS")
}
