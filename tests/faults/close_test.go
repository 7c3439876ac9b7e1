package faults_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// closeIn closes a system, bounded by a time.
func closeIn(s *locktest.Site, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return s.Close(ctx)
}

// Close under load: whoever waits is answered, whoever holds is told, the keys go,
// and later requests are refused.
func TestCloseUnderLoad(t *testing.T) {
	server := redistest.Start(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{Idle: 10 * time.Millisecond})
	var keys []locktest.Key
	for range 5 {
		keys = append(keys, locktest.NewKey(t, server))
	}
	foreign := locktest.NewKey(t, server)
	foreign.TakeAs(t, locktest.Redisson, time.Minute)

	// Goroutines that contend until they are refused. A few wait for what never comes.
	var work sync.WaitGroup
	var grants atomic.Int64
	var inside [5]atomic.Int64
	ctx := locktest.Within(t)
	for i := range 64 {
		work.Go(func() {
			for n := i; ; n++ {
				at := n % len(keys)
				name := keys[at].LockName
				if i%16 == 0 {
					name = foreign.LockName
				}
				hold, err := s.Lock(name).Acquire(ctx)
				if err != nil {
					isClosed(t, err)
					return
				}
				grants.Add(1)
				working := hold.Context()
				if inside[at].Add(1) > 1 && working.Err() == nil {
					t.Error("two are inside")
				}
				inside[at].Add(-1)
				if err := hold.Release(ctx); err != nil && !errors.Is(err, lockkeeper.ErrClosed) && !errors.Is(err, lockkeeper.ErrLost) {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	// Actors that do the same by message. Close may tell them of the loss of a hold
	// whose release it has just refused.
	for i := range 16 {
		p := s.Probe(t)
		p.Notice = func(m any) bool {
			lost, ok := m.(*messages.LeaseLost)
			if ok && lost.Reason != messages.Reason_REASON_CLOSED {
				t.Errorf("lost: %v", lost)
			}
			return !ok
		}
		work.Go(func() {
			for n := i; ; n++ {
				k := keys[n%len(keys)]
				if i%8 == 0 {
					k = foreign
				}
				p.Send(&messages.Acquire{Lock: k.Message()})
				m := <-p.Mail
				if refused, ok := m.(*messages.NotAcquired); ok && refused.Reason == messages.Reason_REASON_CLOSED {
					return
				}
				granted, ok := m.(*messages.Acquired)
				if !ok {
					t.Errorf("answered %T{%v}", m, m)
					return
				}
				p.Send(&messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
				switch m := (<-p.Mail).(type) {
				case *messages.Released, *messages.NotReleased:
				default:
					t.Errorf("answered %T{%v}", m, m)
				}
			}
		})
	}
	// Holders that do not let go.
	var held []*locktest.Guard
	for range 3 {
		held = append(held, locktest.Guards(t, s, server)...)
	}
	redistest.Eventually(t, "some traffic", func() bool { return grants.Load() > 1000 })

	if err := closeIn(s, redistest.Limit); err != nil {
		t.Error(err)
	}
	locktest.Limited(t, "everybody to be answered", func() bool { work.Wait(); return true })
	for _, g := range held {
		if lost := g.AwaitLoss(t); lost.Reason != messages.Reason_REASON_CLOSED {
			t.Errorf("%s: lost because of %v", g.How, lost.Reason)
		}
	}
	foreign.Unlock(t)
	if left := server.Keys(t, "*"); len(left) > 0 {
		t.Errorf("left in Redis: %v", left)
	}
	if channels, err := server.Do(t, "PUBSUB", "CHANNELS").AsStrSlice(); err != nil || len(channels) > 0 {
		t.Errorf("subscriptions left: %v, %v", channels, err)
	}
	refusedAfterClose(t, s, keys[0])
}

func isClosed(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, lockkeeper.ErrClosed) {
		t.Errorf("error %v, want one that is %v", err, lockkeeper.ErrClosed)
	}
}

// refusedAfterClose checks that a closed system refuses everything at once.
func refusedAfterClose(t *testing.T, s *locktest.Site, k locktest.Key) {
	t.Helper()
	locktest.InTime(t, "the refusals", func() {
		lock := s.Lock(k.LockName)
		_, acquire := lock.Acquire(locktest.Within(t))
		_, try := lock.TryAcquire(locktest.Within(t))
		_, inspect := lock.Inspect(locktest.Within(t))
		_, force := lock.ForceRelease(locktest.Within(t))
		for _, err := range []error{acquire, try, inspect, force} {
			isClosed(t, err)
		}
		p := s.Probe(t)
		for _, request := range locktest.Requests(k.Message()) {
			p.Send(request)
			switch m := locktest.Next[any](t, p).(type) {
			case *actor.DeadLetterResponse:
			case locktest.Refusal: // the guardian is still there
				if m.GetReason() != messages.Reason_REASON_CLOSED {
					t.Errorf("%T: answered %v", request, m)
				}
			default:
				t.Errorf("%T: answered %T{%v}", request, m, m)
			}
		}
	})
}

// What holders, waiters and the others see of a Close.
func TestClose(t *testing.T) {
	k, own := locktest.NewKey(t, redistest.Shared(t)), locktest.NewKey(t, redistest.Shared(t))
	s, other := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	outer := s.Acquire(t, k)
	inner := s.AcquireIn(t, outer.Context(), k)
	p := s.Probe(t)
	granted := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: own.Message(), Lease: durationpb.New(time.Minute)})
	waiting := s.AcquireSoon(t, k)
	p.Send(&messages.Acquire{Lock: k.Message()})
	s.AwaitWaiters(t, k, 2)
	elsewhere := other.AcquireSoon(t, k)
	k.AwaitSubscribers(t, 1)

	if err := closeIn(s, redistest.Limit); err != nil {
		t.Error(err)
	}
	for _, hold := range []*lockkeeper.Hold{outer, inner} {
		cause := context.Cause(hold.Context())
		isClosed(t, cause)
		locktest.IsError(t, cause, lockkeeper.ErrLost)
		locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
		if hold.Valid() {
			t.Error("a hold outlives its system")
		}
	}
	isClosed(t, locktest.Await(t, "the refusal", waiting).Err)
	var lost *messages.LeaseLost
	var refused *messages.NotAcquired
	for range 2 {
		switch m := locktest.Next[any](t, p).(type) {
		case *messages.LeaseLost:
			lost = m
		case *messages.NotAcquired:
			refused = m
		}
	}
	if lost.GetReason() != messages.Reason_REASON_CLOSED || lost.HoldId != granted.HoldId || lost.Lock.Name != own.LockName {
		t.Errorf("told %v", lost)
	}
	if refused.GetReason() != messages.Reason_REASON_CLOSED || refused.Lock.Name != k.LockName {
		t.Errorf("refused with %v", refused)
	}
	own.IsFree(t)
	locktest.Release(t, locktest.Got(t, elsewhere).Hold) // at once, by the message of the release
	k.IsFree(t)
	refusedAfterClose(t, s, k)
	if err := closeIn(s, redistest.Limit); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// Any number of goroutines may close, and all return when it is done.
func TestCloseTogether(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	s.Acquire(t, k)
	var closing sync.WaitGroup
	for range 8 {
		closing.Go(func() {
			if err := closeIn(s, redistest.Limit); err != nil {
				t.Error(err)
			}
			if k.Exists(t) {
				t.Error("closed before the key was gone")
			}
		})
	}
	closing.Wait()
}

// With a Redis that does not answer, Close ends with its context, and says what it
// leaves behind.
func TestCloseWithoutRedis(t *testing.T) {
	for what, fault := range map[string]func(t *testing.T, server *redistest.Server, r *locktest.Remote){
		"killed":     func(t *testing.T, server *redistest.Server, r *locktest.Remote) { server.Kill(t) },
		"paused":     func(t *testing.T, server *redistest.Server, r *locktest.Remote) { server.Pause(t) },
		"no replies": func(t *testing.T, server *redistest.Server, r *locktest.Remote) { r.Proxy.DropReplies(true) },
		"frozen":     func(t *testing.T, server *redistest.Server, r *locktest.Remote) { r.Proxy.Freeze(true) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			r := locktest.Far(t, server, lockkeeper.Config{})
			r.Lame = true
			held := locktest.Guards(t, r.Site, server)
			foreign := locktest.NewKey(t, server)
			foreign.TakeAs(t, locktest.Redisson, -1)
			waiting := []<-chan locktest.Grant{r.AcquireSoon(t, held[0].Key), r.AcquireSoon(t, foreign)}
			r.AwaitWaiters(t, held[0].Key, 1)
			foreign.AwaitSubscribers(t, 1)
			fault(t, server, r)
			waiting = append(waiting, r.AcquireSoon(t, locktest.NewKey(t, server)))

			const limit = 300 * time.Millisecond
			began := time.Now()
			err := closeIn(r.Site, limit)
			if took := time.Since(began); took < limit/2 || took > limit+time.Second {
				t.Errorf("Close took %v, with a limit of %v", took, limit)
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close: %v", err)
			}
			for _, g := range held {
				if lost := g.AwaitLoss(t); lost.Reason != messages.Reason_REASON_CLOSED {
					t.Errorf("%s: lost because of %v", g.How, lost.Reason)
				}
			}
			for _, w := range waiting {
				isClosed(t, locktest.Await(t, "the refusal", w).Err)
			}
			refusedAfterClose(t, r.Site, held[0].Key)
			began = time.Now()
			if err := closeIn(r.Site, time.Minute); err == nil {
				t.Error("the second close knows nothing of the first")
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the second close took %v", took)
			}
		})
	}
}

// A second Close does not wait longer than its own context for the first.
func TestCloseImpatiently(t *testing.T) {
	server := redistest.Start(t)
	r := locktest.Far(t, server, lockkeeper.Config{})
	r.Lame = true
	r.Acquire(t, r.Key)
	r.Proxy.Freeze(true)
	first := make(chan error)
	go func() { first <- closeIn(r.Site, redistest.Limit) }()
	redistest.Eventually(t, "the first to begin", func() bool {
		_, err := r.Lock(r.LockName).TryAcquire(locktest.Within(t))
		return errors.Is(err, lockkeeper.ErrClosed)
	})
	began := time.Now()
	if err := closeIn(r.Site, 50*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the second took %v", took)
	}
	r.Proxy.Heal()
	if err := locktest.Await(t, "the first close", first); err != nil {
		t.Errorf("the first: %v", err)
	}
	r.IsFree(t)
}

// stalled holds up the actors at the messages that stop says.
func stalled(stop func(c actor.ReceiverContext, m any, handle func())) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
			stop(c, e.Message, func() { next(c, e) })
		}
	}
}

// A lock actor that seems idle does not leave while it owes an answer to somebody,
// or while somebody's first request is on its way.
func TestIdleButWanted(t *testing.T) {
	const idle = 10 * time.Millisecond
	t.Run("inspect", func(t *testing.T) {
		r := locktest.Far(t, redistest.Shared(t), lockkeeper.Config{Idle: idle})
		r.Proxy.Delay(5 * idle)
		r.Inspect(t, r.Key)
	})
	t.Run("first request", func(t *testing.T) {
		k := locktest.NewKey(t, redistest.Shared(t))
		s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Idle: idle}, stalled(func(_ actor.ReceiverContext, m any, handle func()) {
			handle()
			if _, started := m.(*actor.Started); started {
				time.Sleep(5 * idle)
			}
		}))
		locktest.Release(t, s.Acquire(t, k))
	})
}

// What is on its way to a lock actor, or on its way back from Redis, when the system
// closes, is answered: whether Redis confirms the end or not.
func TestCloseAnswersWhatIsUnderWay(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		t.Run(fmt.Sprint("frozen: ", frozen), func(t *testing.T) {
			var armed atomic.Bool
			stuck, goOn := make(chan struct{}), make(chan struct{})
			r := locktest.Far(t, redistest.Shared(t), lockkeeper.Config{}, stalled(func(_ actor.ReceiverContext, m any, handle func()) {
				if _, ok := m.(*messages.Cancel); ok && armed.CompareAndSwap(true, false) {
					close(stuck)
					<-goOn
				}
				handle()
			}))
			r.Lame = frozen
			hold := r.Acquire(t, r.Key)
			r.Proxy.Freeze(true)
			answers := make(chan error, 100)
			ask := func(call func(ctx context.Context) error) {
				go func() { answers <- call(context.Background()) }()
			}
			lock := r.Lock(r.LockName)
			inspect := func(ctx context.Context) error { _, err := lock.Inspect(ctx); return err }
			ask(inspect)
			armed.Store(true)
			p := r.Probe(t)
			p.Send(&messages.Cancel{Lock: r.Message()})
			locktest.Await(t, "the actor to be stuck", stuck)
			for range 10 { // these are queued behind
				ask(func(ctx context.Context) error { _, err := lock.Acquire(ctx); return err })
				ask(func(ctx context.Context) error { return hold.Ensure(ctx, time.Minute/4) })
				ask(inspect)
				p.Send(&messages.Acquire{Lock: r.Message()})
			}
			closed := make(chan error, 1)
			go func() {
				if frozen {
					closed <- closeIn(r.Site, 50*time.Millisecond)
				} else {
					closed <- closeIn(r.Site, redistest.Limit)
				}
			}()
			time.Sleep(100 * time.Millisecond) // Close waits for the actor, or has given up
			close(goOn)
			if !frozen {
				r.Proxy.Freeze(false)
			}
			for range 31 {
				locktest.Await(t, "an answer", answers)
			}
			for range 11 {
				locktest.Next[any](t, p)
			}
			if err := locktest.Await(t, "Close", closed); (err != nil) != frozen {
				t.Errorf("Close: %v", err)
			}
		})
	}
}
