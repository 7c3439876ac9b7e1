package locks_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Goroutines and actors use more names than there are lock actors, so that one PID serves many locks: each request is
// answered, for its own name, and no lock has two holders.
func TestManyNames_AreKeptApart(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{Idle: time.Second})
	const names, goroutines, actors, turns = 5000, 64, 16, 250
	var held [names]atomic.Int32
	var all sync.WaitGroup
	inside := func(i int) {
		if n := held[i].Add(1); n != 1 {
			t.Errorf("name %d has %d holders", i, n)
		}
		held[i].Add(-1)
	}
	name := func(i int) string { return fmt.Sprint(k.LockName, i) }
	for range goroutines {
		all.Go(func() {
			for range turns {
				i := rand.N(names)
				h, err := s.Lock(name(i)).Acquire(locktest.Within(t))
				if err != nil {
					t.Errorf("name %d: %v", i, err)
					return
				}
				inside(i)
				if err := h.Release(locktest.Within(t)); err != nil {
					t.Errorf("the release of name %d: %v", i, err)
				}
			}
		})
	}
	for range actors {
		p := s.Probe(t)
		all.Go(func() {
			for range turns {
				i := rand.N(names)
				lock := &messages.Lock{Name: name(i)}
				a := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: lock})
				inside(i)
				r := locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: lock, HoldId: a.HoldId})
				if a.Lock.Name != name(i) || r.Lock.Name != name(i) {
					t.Errorf("name %d is answered for %q and %q", i, a.Lock.Name, r.Lock.Name)
				}
			}
		})
	}
	all.Wait()
}
