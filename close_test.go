package lockkeeper_test

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
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// closeIn closes a system, bounded by a time.
func closeIn(s *site, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return s.Close(ctx)
}

// Close under load: whoever waits is answered, whoever holds is told, the keys go,
// and later requests are refused.
func TestCloseUnderLoad(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL(), lockkeeper.Config{Idle: 10 * time.Millisecond})
	var keys []key
	for range 5 {
		keys = append(keys, newKey(t, server))
	}
	foreign := newKey(t, server)
	foreign.takeAs(t, redisson, time.Minute)

	// Goroutines that contend until they are refused. A few wait for what never comes.
	var work sync.WaitGroup
	var grants atomic.Int64
	var inside [5]atomic.Int64
	ctx := within(t)
	for i := range 64 {
		work.Go(func() {
			for n := i; ; n++ {
				at := n % len(keys)
				name := keys[at].lock
				if i%16 == 0 {
					name = foreign.lock
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
		p := s.probe(t)
		p.notice = func(m any) bool {
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
				p.send(&messages.Acquire{Lock: k.message()})
				m := <-p.mail
				if refused, ok := m.(*messages.NotAcquired); ok && refused.Reason == messages.Reason_REASON_CLOSED {
					return
				}
				granted, ok := m.(*messages.Acquired)
				if !ok {
					t.Errorf("answered %T{%v}", m, m)
					return
				}
				p.send(&messages.Release{Lock: k.message(), HoldId: granted.HoldId})
				switch m := (<-p.mail).(type) {
				case *messages.Released, *messages.NotReleased:
				default:
					t.Errorf("answered %T{%v}", m, m)
				}
			}
		})
	}
	// Holders that do not let go.
	var held []*guard
	for range 3 {
		held = append(held, guards(t, s, server)...)
	}
	redistest.Eventually(t, "some traffic", func() bool { return grants.Load() > 1000 })

	if err := closeIn(s, redistest.Limit); err != nil {
		t.Error(err)
	}
	limited(t, "everybody to be answered", func() bool { work.Wait(); return true })
	for _, g := range held {
		if lost := g.awaitLoss(t); lost.reason != messages.Reason_REASON_CLOSED {
			t.Errorf("%s: lost because of %v", g.how, lost.reason)
		}
	}
	foreign.unlock(t)
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
func refusedAfterClose(t *testing.T, s *site, k key) {
	t.Helper()
	inTime(t, "the refusals", func() {
		lock := s.Lock(k.lock)
		_, acquire := lock.Acquire(within(t))
		_, try := lock.TryAcquire(within(t))
		_, inspect := lock.Inspect(within(t))
		_, force := lock.ForceRelease(within(t))
		for _, err := range []error{acquire, try, inspect, force} {
			isClosed(t, err)
		}
		p := s.probe(t)
		for _, request := range requests(k.message()) {
			p.send(request)
			switch m := next[any](t, p).(type) {
			case *actor.DeadLetterResponse:
			case refusal: // the guardian is still there
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
	k, own := newKey(t, redistest.Shared(t)), newKey(t, redistest.Shared(t))
	s, other := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
	outer := s.acquire(t, k)
	inner := acquireIn(t, outer.Context(), s, k)
	p := s.probe(t)
	granted := ask[*messages.Acquired](t, p, &messages.Acquire{Lock: own.message(), Lease: durationpb.New(time.Minute)})
	waiting := s.acquireSoon(t, k)
	p.send(&messages.Acquire{Lock: k.message()})
	s.awaitWaiters(t, k, 2)
	elsewhere := other.acquireSoon(t, k)
	k.awaitSubscribers(t, 1)

	if err := closeIn(s, redistest.Limit); err != nil {
		t.Error(err)
	}
	for _, hold := range []*lockkeeper.Hold{outer, inner} {
		cause := context.Cause(hold.Context())
		isClosed(t, cause)
		isError(t, cause, lockkeeper.ErrLost)
		isError(t, hold.Release(within(t)), lockkeeper.ErrLost)
		if hold.Valid() {
			t.Error("a hold outlives its system")
		}
	}
	isClosed(t, await(t, "the refusal", waiting).err)
	var lost *messages.LeaseLost
	var refused *messages.NotAcquired
	for range 2 {
		switch m := next[any](t, p).(type) {
		case *messages.LeaseLost:
			lost = m
		case *messages.NotAcquired:
			refused = m
		}
	}
	if lost.GetReason() != messages.Reason_REASON_CLOSED || lost.HoldId != granted.HoldId || lost.Lock.Name != own.lock {
		t.Errorf("told %v", lost)
	}
	if refused.GetReason() != messages.Reason_REASON_CLOSED || refused.Lock.Name != k.lock {
		t.Errorf("refused with %v", refused)
	}
	own.isFree(t)
	release(t, got(t, elsewhere).hold) // at once, by the message of the release
	k.isFree(t)
	refusedAfterClose(t, s, k)
	if err := closeIn(s, redistest.Limit); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// Any number of goroutines may close, and all return when it is done.
func TestCloseTogether(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	s.acquire(t, k)
	var closing sync.WaitGroup
	for range 8 {
		closing.Go(func() {
			if err := closeIn(s, redistest.Limit); err != nil {
				t.Error(err)
			}
			if k.exists(t) {
				t.Error("closed before the key was gone")
			}
		})
	}
	closing.Wait()
}

// With a Redis that does not answer, Close ends with its context, and says what it
// leaves behind.
func TestCloseWithoutRedis(t *testing.T) {
	for what, fault := range map[string]func(t *testing.T, server *redistest.Server, r *remote){
		"killed":     func(t *testing.T, server *redistest.Server, r *remote) { server.Kill(t) },
		"paused":     func(t *testing.T, server *redistest.Server, r *remote) { server.Pause(t) },
		"no replies": func(t *testing.T, server *redistest.Server, r *remote) { r.proxy.DropReplies(true) },
		"frozen":     func(t *testing.T, server *redistest.Server, r *remote) { r.proxy.Freeze(true) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			r := far(t, server, lockkeeper.Config{})
			r.lame = true
			held := guards(t, r.site, server)
			foreign := newKey(t, server)
			foreign.takeAs(t, redisson, -1)
			waiting := []<-chan grant{r.acquireSoon(t, held[0].key), r.acquireSoon(t, foreign)}
			r.awaitWaiters(t, held[0].key, 1)
			foreign.awaitSubscribers(t, 1)
			fault(t, server, r)
			waiting = append(waiting, r.acquireSoon(t, newKey(t, server)))

			const limit = 300 * time.Millisecond
			began := time.Now()
			err := closeIn(r.site, limit)
			if took := time.Since(began); took < limit/2 || took > limit+time.Second {
				t.Errorf("Close took %v, with a limit of %v", took, limit)
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close: %v", err)
			}
			for _, g := range held {
				if lost := g.awaitLoss(t); lost.reason != messages.Reason_REASON_CLOSED {
					t.Errorf("%s: lost because of %v", g.how, lost.reason)
				}
			}
			for _, w := range waiting {
				isClosed(t, await(t, "the refusal", w).err)
			}
			refusedAfterClose(t, r.site, held[0].key)
			began = time.Now()
			if err := closeIn(r.site, time.Minute); err == nil {
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
	r := far(t, server, lockkeeper.Config{})
	r.lame = true
	r.acquire(t, r.key)
	r.proxy.Freeze(true)
	first := make(chan error)
	go func() { first <- closeIn(r.site, redistest.Limit) }()
	redistest.Eventually(t, "the first to begin", func() bool {
		_, err := r.Lock(r.lock).TryAcquire(within(t))
		return errors.Is(err, lockkeeper.ErrClosed)
	})
	began := time.Now()
	if err := closeIn(r.site, 50*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the second took %v", took)
	}
	r.proxy.Heal()
	if err := await(t, "the first close", first); err != nil {
		t.Errorf("the first: %v", err)
	}
	r.isFree(t)
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
		r := far(t, redistest.Shared(t), lockkeeper.Config{Idle: idle})
		r.proxy.Delay(5 * idle)
		r.inspect(t, r.key)
	})
	t.Run("first request", func(t *testing.T) {
		k := newKey(t, redistest.Shared(t))
		s := open(t, k.server.URL(), lockkeeper.Config{Idle: idle}, stalled(func(_ actor.ReceiverContext, m any, handle func()) {
			handle()
			if _, started := m.(*actor.Started); started {
				time.Sleep(5 * idle)
			}
		}))
		release(t, s.acquire(t, k))
	})
}

// What is on its way to a lock actor, or on its way back from Redis, when the system
// closes, is answered: whether Redis confirms the end or not.
func TestCloseAnswersWhatIsUnderWay(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		t.Run(fmt.Sprint("frozen: ", frozen), func(t *testing.T) {
			var armed atomic.Bool
			stuck, goOn := make(chan struct{}), make(chan struct{})
			r := far(t, redistest.Shared(t), lockkeeper.Config{}, stalled(func(_ actor.ReceiverContext, m any, handle func()) {
				if _, ok := m.(*messages.Cancel); ok && armed.CompareAndSwap(true, false) {
					close(stuck)
					<-goOn
				}
				handle()
			}))
			r.lame = frozen
			hold := r.acquire(t, r.key)
			r.proxy.Freeze(true)
			answers := make(chan error, 100)
			ask := func(call func(ctx context.Context) error) {
				go func() { answers <- call(context.Background()) }()
			}
			lock := r.Lock(r.lock)
			inspect := func(ctx context.Context) error { _, err := lock.Inspect(ctx); return err }
			ask(inspect)
			armed.Store(true)
			p := r.probe(t)
			p.send(&messages.Cancel{Lock: r.message()})
			await(t, "the actor to be stuck", stuck)
			for range 10 { // these are queued behind
				ask(func(ctx context.Context) error { _, err := lock.Acquire(ctx); return err })
				ask(func(ctx context.Context) error { return hold.Ensure(ctx, time.Minute/4) })
				ask(inspect)
				p.send(&messages.Acquire{Lock: r.message()})
			}
			closed := make(chan error, 1)
			go func() {
				if frozen {
					closed <- closeIn(r.site, 50*time.Millisecond)
				} else {
					closed <- closeIn(r.site, redistest.Limit)
				}
			}()
			time.Sleep(100 * time.Millisecond) // Close waits for the actor, or has given up
			close(goOn)
			if !frozen {
				r.proxy.Freeze(false)
			}
			for range 31 {
				await(t, "an answer", answers)
			}
			for range 11 {
				next[any](t, p)
			}
			if err := await(t, "Close", closed); (err != nil) != frozen {
				t.Errorf("Close: %v", err)
			}
		})
	}
}
