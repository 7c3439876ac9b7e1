package locks_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
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
