package locks_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

const (
	boundWatchdog = 12 * time.Second
	boundTrusted  = boundWatchdog - boundWatchdog/100 - 2*time.Millisecond // a lease is never trusted for longer
	boundAnswer   = 3 * time.Second                                        // CallTimeout, and at most a quarter of the lease
	boundLate     = 250 * time.Millisecond                                 // for a reply that is late
	boundShort    = 200 * time.Millisecond                                 // of WithWait, and of contexts with a deadline
	boundSlack    = 2500 * time.Millisecond                                // for a busy machine; one call to Redis too many takes longer
)

// bounded is a call, and how long it may take while Redis does not answer, with a context that never ends.
type bounded struct {
	what  string
	bound time.Duration
	call  func(ctx context.Context) error
}

// boundedCalls are all calls of the API about locks of a kind, each with locks of its own.
func boundedCalls(t *testing.T, lock func() *lockkeeper.Lock) []bounded {
	free, tried, inspected, forced, reentered, pending := lock(), lock(), lock(), lock(), lock(), lock()
	released, ensured, unconfirmed := locktest.Acquire(t, lock()), locktest.Acquire(t, lock()), locktest.Acquire(t, pending)
	extended, kept := locktest.Acquire(t, lock()), locktest.Acquire(t, lock(), lockkeeper.WithLease(boundWatchdog))
	outer := lock()
	inner := locktest.AcquireIn(t, locktest.Acquire(t, outer).Context(), outer)
	tree := locktest.Acquire(t, reentered).Context()
	// inTree is a context of the call tree that ends when ctx does.
	inTree := func(ctx context.Context) (context.Context, context.CancelFunc) {
		if end, ok := ctx.Deadline(); ok {
			return context.WithDeadline(context.WithoutCancel(tree), end)
		}
		return context.WithoutCancel(tree), func() {}
	}
	return []bounded{
		{"Acquire with a wait", boundShort, func(ctx context.Context) error {
			_, err := free.Acquire(ctx, lockkeeper.WithWait(boundShort))
			return err
		}},
		{"TryAcquire", boundAnswer + boundLate, func(ctx context.Context) error { _, err := tried.TryAcquire(ctx); return err }},
		{"TryAcquire behind a release", boundAnswer + boundLate, func(ctx context.Context) error {
			go func() { _ = unconfirmed.Release(context.Background()) }()
			_, err := pending.TryAcquire(ctx)
			return err
		}},
		{"Acquire of a re-entry with a wait", boundShort, func(ctx context.Context) error {
			ctx, cancel := inTree(ctx)
			defer cancel()
			_, err := reentered.Acquire(ctx, lockkeeper.WithWait(boundShort))
			return err
		}},
		{"TryAcquire of a re-entry", boundAnswer + boundLate, func(ctx context.Context) error {
			ctx, cancel := inTree(ctx)
			defer cancel()
			_, err := reentered.TryAcquire(ctx)
			return err
		}},
		{"Release", boundWatchdog + boundAnswer + boundLate, func(ctx context.Context) error { return released.Release(ctx) }},
		{"Release of a re-entry", boundWatchdog + boundAnswer + boundLate, func(ctx context.Context) error { return inner.Release(ctx) }},
		{"Ensure", boundAnswer + boundLate, func(ctx context.Context) error { return ensured.Ensure(ctx, boundTrusted) }},
		{"Extend", boundAnswer + boundLate, func(ctx context.Context) error { return extended.Extend(ctx, boundWatchdog) }},
		{"KeepAlive", boundAnswer + boundLate, func(ctx context.Context) error { return kept.KeepAlive(ctx) }},
		{"Inspect", boundAnswer + boundLate, func(ctx context.Context) error { _, err := inspected.Inspect(ctx); return err }},
		{"ForceRelease", boundAnswer + boundLate, func(ctx context.Context) error { _, err := forced.ForceRelease(ctx); return err }},
	}
}

// While Redis does not answer, every call returns an error when its context ends, when its wait ends, or after a
// documented time: right after Redis has stopped, and when connections have broken.
func TestCalls_AreBoundedWithoutRedis(t *testing.T) {
	for _, kind := range append(locktest.Words(locktest.StoredAsItself), "multi") {
		for when, broken := range map[string]bool{"just stopped": false, "connections broken": true} {
			t.Run(kind+", "+when, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				url := server.URL()
				if !broken {
					url += "?write_timeout=1m" // otherwise the client would give up its connections
				}
				s := locktest.Open(t, url, lockkeeper.Config{Watchdog: boundWatchdog, CallTimeout: boundAnswer})
				s.SkipCloseCheck = true
				lock := func() *lockkeeper.Lock { return locktest.Kinds[kind](s, redistest.Name(t)) }
				endless, ending := boundedCalls(t, lock), boundedCalls(t, lock)
				dead := lock()
				server.Pause(t)
				defer server.Resume(t)
				if broken { // a second call times out only after the connection of the first was given up
					for range 2 {
						_, _ = dead.TryAcquire(context.Background())
					}
				}
				now := locktest.Stopwatch(t)
				var all sync.WaitGroup
				check := func(ctx context.Context, what string, bound time.Duration, call func(context.Context) error) {
					all.Go(func() {
						began := now()
						if err := call(ctx); err == nil || errors.Is(err, lockkeeper.ErrRejected) {
							t.Errorf("%s: error %v", what, err)
						}
						if took := now() - began; took > bound+boundSlack {
							t.Errorf("%s took %v, and its bound is %v", what, took, bound)
						}
					})
				}
				short, cancel := context.WithTimeout(context.Background(), boundShort)
				defer cancel()
				for _, c := range endless {
					check(context.Background(), c.what, c.bound, c.call)
				}
				for _, c := range ending {
					check(short, c.what+" with a context that ends", boundShort, c.call)
				}
				all.Wait()
				for range 2 { // the calls do not wait for each other
					check(short, "Close", 0, s.Close)
				}
				all.Wait()
			})
		}
	}
}

// openWithStuckDials opens a System whose client, after a call of stick, has no connection, and gets none before the
// test ends.
func openWithStuckDials(t *testing.T, cfg lockkeeper.Config) (s *locktest.Site, client rueidis.Client, stick func(), dialing chan struct{}) {
	t.Helper()
	server := redistest.Start(t)
	options := locktest.Must(rueidis.ParseURL(server.URL()))(t)
	options.DisableRetry, options.DisableCache, options.PipelineMultiplex = true, true, -1
	var sticks atomic.Bool
	dialing, over := make(chan struct{}, 1), make(chan struct{})
	options.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
		if sticks.Load() {
			select {
			case dialing <- struct{}{}:
			default:
			}
			<-over
		}
		return dialer.DialContext(ctx, "tcp", address)
	}
	client, err := rueidis.NewClient(options)
	s = locktest.OpenWith(t, client, err, cfg)
	s.SkipCloseCheck = true
	t.Cleanup(func() {
		sticks.Store(false)
		close(over)
	})
	return s, client, func() {
		sticks.Store(true)
		server.KillClients(t, "normal")
	}, dialing
}

// A bounded call does not run a command on its own goroutine: rueidis would make it wait for a connection that
// another call opens, whatever the deadline of the command.
func TestCalls_DoNotWaitForADial(t *testing.T) {
	t.Parallel()
	var other sync.WaitGroup
	t.Cleanup(other.Wait)
	s, _, stick, dialing := openWithStuckDials(t, lockkeeper.Config{})
	stick()
	other.Go(func() { _, _ = s.Lock(redistest.Name(t) + "other").TryAcquire(context.Background()) })
	locktest.Await(t, "the dial of the other call", dialing)
	for range 3 {
		err := locktest.Limited(t, "a wait of 300 ms to end", func() error {
			_, err := s.Lock(redistest.Name(t)).Acquire(context.Background(), lockkeeper.WithWait(300*time.Millisecond), lockkeeper.WithLease(time.Second))
			return err
		})
		if err == nil {
			t.Fatal("granted without a connection")
		}
	}
}

// The guardian of the next System of an actor system has the name of the one before.
func TestClose_ItsHandlesDoNotUseTheNextSystem(t *testing.T) {
	t.Parallel()
	actors := quiet.ActorSystem()
	t.Cleanup(actors.Shutdown)
	open := func() *lockkeeper.System {
		sys := locktest.Must(lockkeeper.Open(locktest.Within(t), redistest.Shared(t).URL(), lockkeeper.WithActorSystem(actors)))(t)
		t.Cleanup(func() { _ = sys.Close(locktest.Within(t)) })
		return sys
	}
	first, name := open(), redistest.Name(t)
	lock, permits := first.Lock(name), first.Semaphore(name+" permits")
	locktest.OK(t, first.Close(locktest.Within(t)))
	second := open()
	if _, err := lock.TryAcquire(locktest.Within(t)); !errors.Is(err, lockkeeper.ErrClosed) {
		t.Errorf("a lock of the closed System: %v", err)
	}
	if _, err := permits.TrySetPermits(locktest.Within(t), 1, 0); !errors.Is(err, lockkeeper.ErrClosed) {
		t.Errorf("a semaphore of the closed System: %v", err)
	}
	locktest.OK(t, first.Close(locktest.Within(t))) // again: it does not end the second
	locktest.Release(t, locktest.Acquire(t, second.Lock(name)))
}

// A request that the host's middleware holds up until its System is closed is not served by the next System.
func TestClose_HeldUpRequestDoesNotReachTheNextSystem(t *testing.T) {
	t.Parallel()
	actors := quiet.ActorSystem()
	t.Cleanup(actors.Shutdown)
	entered, goOn := make(chan struct{}), make(chan struct{})
	open := func(config lockkeeper.Config) *lockkeeper.System {
		sys := locktest.Must(lockkeeper.Open(locktest.Within(t), redistest.Shared(t).URL(), lockkeeper.WithActorSystem(actors), lockkeeper.WithConfig(config)))(t)
		t.Cleanup(func() { _ = sys.Close(locktest.Within(t)) })
		return sys
	}
	holdsUp := locktest.Around(func(_ actor.ReceiverContext, _ any, pass func()) {
		close(entered)
		<-goOn
		pass()
	})
	first, name := open(lockkeeper.Config{Middleware: []actor.ReceiverMiddleware{holdsUp}}), redistest.Name(t)
	answer := actors.Root.RequestFuture(first.Guardian(), &messages.Acquire{Lock: &messages.Lock{Name: name}, Lease: durationpb.New(time.Minute)}, redistest.Limit)
	locktest.Await(t, "the middleware", entered)
	locktest.OK(t, first.Close(locktest.Within(t)))
	second := open(lockkeeper.Config{})
	close(goOn)
	if m, err := answer.Result(); err != nil {
		t.Error(err)
	} else if refused, is := m.(*messages.NotAcquired); !is || refused.Reason != messages.Reason_REASON_CLOSED {
		t.Errorf("the answer is %v", m)
	}
	locktest.Release(t, locktest.Acquire(t, second.Lock(name)))
}
