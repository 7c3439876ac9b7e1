package locks_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

const (
	boundWatchdog = 3 * time.Second
	boundAnswer   = time.Second            // CallTimeout
	boundLate     = 250 * time.Millisecond // for a reply that is late
	boundShort    = 200 * time.Millisecond // of WithWait, and of contexts that end
	boundSlack    = 700 * time.Millisecond // for a busy machine
)

// bounded is a call, and how long it may take while Redis does not answer, if its context
// never ends.
type bounded struct {
	what  string
	bound time.Duration
	call  func(ctx context.Context)
}

// boundedCalls are all calls of the API about locks of some kind, on locks of their own.
func boundedCalls(t *testing.T, lock func() *lockkeeper.Lock) []bounded {
	free, tried, inspected, forced, reentered, pending := lock(), lock(), lock(), lock(), lock(), lock()
	released, ensured, unconfirmed := locktest.Acquire(t, lock()), locktest.Acquire(t, lock()), locktest.Acquire(t, pending)
	outer := lock()
	inner := locktest.AcquireIn(t, locktest.Acquire(t, outer).Context(), outer)
	tree := locktest.Acquire(t, reentered).Context()
	// inTree is a context of the call tree that ends as ctx does.
	inTree := func(ctx context.Context) (context.Context, context.CancelFunc) {
		if end, ok := ctx.Deadline(); ok {
			return context.WithDeadline(context.WithoutCancel(tree), end)
		}
		return context.WithoutCancel(tree), func() {}
	}
	return []bounded{
		{"Acquire with a wait", boundShort, func(ctx context.Context) { _, _ = free.Acquire(ctx, lockkeeper.WithWait(boundShort)) }},
		{"TryAcquire", boundAnswer + boundLate, func(ctx context.Context) { _, _ = tried.TryAcquire(ctx) }},
		{"TryAcquire behind a release", boundAnswer + boundLate, func(ctx context.Context) {
			go func() { _ = unconfirmed.Release(context.Background()) }()
			_, _ = pending.TryAcquire(ctx)
		}},
		{"Acquire of a re-entry with a wait", boundShort, func(ctx context.Context) {
			ctx, cancel := inTree(ctx)
			defer cancel()
			_, _ = reentered.Acquire(ctx, lockkeeper.WithWait(boundShort))
		}},
		{"TryAcquire of a re-entry", boundAnswer + boundLate, func(ctx context.Context) {
			ctx, cancel := inTree(ctx)
			defer cancel()
			_, _ = reentered.TryAcquire(ctx)
		}},
		{"Release", boundWatchdog + boundAnswer + boundLate, func(ctx context.Context) { _ = released.Release(ctx) }},
		{"Release of a re-entry", boundWatchdog + boundAnswer + boundLate, func(ctx context.Context) { _ = inner.Release(ctx) }},
		{"Ensure", boundAnswer + boundLate, func(ctx context.Context) { _ = ensured.Ensure(ctx, boundWatchdog*9/10) }},
		{"Inspect", boundAnswer + boundLate, func(ctx context.Context) { _, _ = inspected.Inspect(ctx) }},
		{"ForceRelease", boundAnswer + boundLate, func(ctx context.Context) { _, _ = forced.ForceRelease(ctx) }},
	}
}

// Every call ends with its context, with its wait, or after a documented time, also while
// Redis does not answer: right after it has stopped, and when connections have broken.
func TestCallsAreBounded(t *testing.T) {
	for _, kind := range []string{"plain", "fair", "write", "multi"} {
		for when, broken := range map[string]bool{"just stopped": false, "connections broken": true} {
			t.Run(kind+", "+when, func(t *testing.T) {
				t.Parallel()
				s, k := locktest.Alone(t, lockkeeper.Config{Watchdog: boundWatchdog, CallTimeout: boundAnswer})
				s.Lame = true
				lock := func() *lockkeeper.Lock { return locktest.Kinds[kind](s, redistest.Name(t)) }
				endless, ending := boundedCalls(t, lock), boundedCalls(t, lock)
				dead := lock()
				k.Server.Pause(t)
				defer k.Server.Resume(t)
				if broken { // a second call has its timeout only when the connection of the first was given up
					for range 2 {
						_, _ = dead.TryAcquire(context.Background())
					}
				}
				var all sync.WaitGroup
				check := func(ctx context.Context, what string, bound time.Duration, call func(context.Context)) {
					all.Go(func() {
						began := time.Now()
						call(ctx)
						if took := time.Since(began); took > bound+boundSlack {
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
				check(short, "Close", 0, func(ctx context.Context) { _ = s.Close(ctx) })
				all.Wait()
			})
		}
	}
}

// stuckDials opens a System whose client, once stick is called, has no connection, and waits to
// open one until the context of whoever asked first ends, or the test.
func stuckDials(t *testing.T, cfg lockkeeper.Config) (s *locktest.Site, client rueidis.Client, stick func(), dialing chan struct{}) {
	t.Helper()
	options, err := rueidis.ParseURL(redistest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	options.DisableRetry, options.DisableCache, options.PipelineMultiplex = true, true, -1
	var mu sync.Mutex
	var connections []net.Conn
	var sticks atomic.Bool
	over := make(chan struct{})
	dialing = make(chan struct{}, 1)
	options.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
		if sticks.Load() {
			select {
			case dialing <- struct{}{}:
			default:
			}
			select {
			case <-ctx.Done():
				return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
			case <-over:
			}
		}
		c, err := dialer.DialContext(ctx, "tcp", address)
		mu.Lock()
		defer mu.Unlock()
		connections = append(connections, c)
		return c, err
	}
	client, err = rueidis.NewClient(options)
	s = locktest.OpenWith(t, client, err, cfg)
	s.Lame = true
	t.Cleanup(func() {
		sticks.Store(false)
		close(over)
	})
	return s, client, func() {
		sticks.Store(true)
		mu.Lock()
		defer mu.Unlock()
		for _, c := range connections {
			c.Close()
		}
	}, dialing
}

// A caller that has a bound runs no command itself: rueidis has it wait for a connection
// that is being opened for somebody else, whatever the command's deadline.
func TestBoundedCallWaitsForNoOtherDial(t *testing.T) {
	t.Parallel()
	s, _, stick, _ := stuckDials(t, lockkeeper.Config{})
	stick()
	began, asking := time.Now(), make(chan struct{})
	go func() {
		close(asking)
		_, _ = s.Lock(redistest.Name(t) + "other").TryAcquire(context.Background())
	}()
	<-asking
	for time.Since(began) < 3*time.Second { // the others' dial lasts for 2 s
		asked := time.Now()
		_, err := s.Lock(redistest.Name(t)).Acquire(context.Background(), lockkeeper.WithWait(300*time.Millisecond), lockkeeper.WithLease(time.Second))
		if took := time.Since(asked); err == nil || took > 300*time.Millisecond+boundSlack {
			t.Fatalf("a wait of 300 ms ended after %v: %v", took, err)
		}
	}
}

// Nor does one that releases a lease that ends before a connection may be open: Release returns
// at the end of the lease, and of the call under way then.
func TestReleaseOfAShortLeaseWaitsForNoOtherDial(t *testing.T) {
	t.Parallel()
	var others sync.WaitGroup
	t.Cleanup(others.Wait)
	s, client, stick, dialing := stuckDials(t, lockkeeper.Config{CallTimeout: 300 * time.Millisecond})
	const lease = 2 * time.Second
	hold := locktest.Acquire(t, s.Lock(redistest.Name(t)), lockkeeper.WithLease(lease))
	stick()
	others.Go(func() {
		for t.Context().Err() == nil {
			_ = client.Do(context.Background(), client.B().Ping().Build()).Error()
		}
	})
	<-dialing
	released := make(chan error, 1)
	go func() { released <- hold.Release(context.Background()) }()
	select {
	case err := <-released:
		if err == nil {
			t.Error("a release is confirmed without a connection")
		}
	case <-time.After(lease + 300*time.Millisecond + boundLate + boundSlack):
		t.Error("Release waits for a connection that somebody else opens")
	}
}
