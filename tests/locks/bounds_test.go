package locks_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/redis/rueidis"
)

// Every call ends with its context, with its wait, or after a documented time, also while
// Redis does not answer: right after it has stopped, and when connections have broken.
func TestCallsAreBounded(t *testing.T) {
	for what, kind := range map[string]func(s *locktest.Site) *lockkeeper.Lock{
		"plain": func(s *locktest.Site) *lockkeeper.Lock { return s.Lock(redistest.Name(t)) },
		"fair":  func(s *locktest.Site) *lockkeeper.Lock { return s.FairLock(redistest.Name(t)) },
		"write": func(s *locktest.Site) *lockkeeper.Lock { return s.ReadWriteLock(redistest.Name(t)).Write() },
		"MultiLock": func(s *locktest.Site) *lockkeeper.Lock {
			return lockkeeper.MultiLock(s.Lock(redistest.Name(t)), s.Lock(redistest.Name(t)))
		},
	} {
		for when, after := range map[string]time.Duration{"just stopped": 0, "connections broken": 2*locktest.BoundAnswer + locktest.BoundLate} {
			t.Run(what+", "+when, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				s := locktest.Open(t, server.URL(), lockkeeper.Config{Watchdog: locktest.BoundWatchdog, CallTimeout: locktest.BoundAnswer})
				s.Lame = true
				lock := func() *lockkeeper.Lock { return kind(s) }
				endless, ending := s.Calls(t, lock), s.Calls(t, lock)
				server.Pause(t)
				defer server.Resume(t)
				time.Sleep(after)
				var all sync.WaitGroup
				check := func(ctx context.Context, what string, bound time.Duration, call func(context.Context)) {
					all.Go(func() {
						began := time.Now()
						call(ctx)
						if took := time.Since(began); took > bound+locktest.BoundSlack {
							t.Errorf("%s took %v, and its bound is %v", what, took, bound)
						}
					})
				}
				short, cancel := context.WithTimeout(context.Background(), locktest.BoundShort)
				defer cancel()
				for _, c := range endless {
					check(context.Background(), c.What, c.Bound, c.Call)
				}
				for _, c := range ending {
					check(short, c.What+" with a context that ends", locktest.BoundShort, c.Call)
				}
				all.Wait()
				check(short, "Close", 0, func(ctx context.Context) { _ = s.Close(ctx) })
				all.Wait()
			})
		}
	}
}

// A caller that has a bound runs no command itself: rueidis has it wait for a connection
// that is being opened for somebody else, whatever the command's deadline.
func TestBoundedCallWaitsForNoOtherDial(t *testing.T) {
	server := redistest.Start(t)
	options, err := rueidis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	options.DisableRetry, options.DisableCache, options.PipelineMultiplex = true, true, -1
	var mu sync.Mutex
	var connections []net.Conn
	hangs := false
	options.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if hangs {
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		}
		c, err := dialer.DialContext(ctx, "tcp", address)
		connections = append(connections, c)
		return c, err
	}
	client, err := rueidis.NewClient(options)
	s := locktest.OpenWith(t, client, err, lockkeeper.Config{})
	s.Lame = true
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		hangs = false
	})
	mu.Lock()
	hangs = true
	for _, c := range connections {
		c.Close()
	}
	mu.Unlock()
	began, dialing := time.Now(), make(chan struct{})
	go func() {
		close(dialing)
		_, _ = s.Lock(redistest.Name(t) + "other").TryAcquire(context.Background())
	}()
	<-dialing
	for time.Since(began) < 3*time.Second { // the others' dial lasts for 2 s
		asked := time.Now()
		_, err = s.Lock(redistest.Name(t)).Acquire(context.Background(), lockkeeper.WithWait(300*time.Millisecond), lockkeeper.WithLease(time.Second))
		if took := time.Since(asked); err == nil || took > 300*time.Millisecond+locktest.BoundSlack {
			t.Fatalf("a wait of 300 ms ended after %v: %v", took, err)
		}
	}
}
