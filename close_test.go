package lockkeeper_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	// Actors that do the same by message.
	for i := range 16 {
		p := s.probe(t)
		work.Go(func() {
			for n := i; ; n++ {
				k := keys[n%len(keys)]
				if i%8 == 0 {
					k = foreign
				}
				p.send(&messages.Acquire{Lock: k.message()})
				switch m := next[any](t, p).(type) {
				case *messages.Acquired:
					p.send(&messages.Release{Lock: k.message(), HoldId: m.HoldId})
					for released := false; !released; {
						switch m := next[any](t, p).(type) {
						case *messages.LeaseLost:
							if m.Reason != messages.Reason_REASON_CLOSED {
								t.Errorf("lost: %v", m)
							}
						case *messages.Released, *messages.NotReleased:
							released = true
						default:
							t.Errorf("answered %T{%v}", m, m)
							return
						}
					}
				case *messages.NotAcquired:
					if m.Reason != messages.Reason_REASON_CLOSED {
						t.Errorf("refused: %v", m)
					}
					return
				default:
					t.Errorf("answered %T{%v}", m, m)
					return
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
	work.Wait()
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
			refuses(t, p, request, messages.Reason_REASON_CLOSED)
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
			if took := time.Since(began); took > 2*time.Second {
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
