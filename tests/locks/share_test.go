package locks_test

// How the waiters of one process, and those of several, share a lock.

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// contend has goroutines of a site take and give back a lock until ctx ends, and
// counts the grants of each. Two holders at once fail the test.
func contend(t *testing.T, ctx context.Context, s *locktest.Site, k locktest.Key, goroutines int, inside *atomic.Int32, work *sync.WaitGroup) []int {
	grants := make([]int, goroutines)
	for i := range grants {
		work.Go(func() {
			for {
				hold, err := s.Lock(k.LockName).Acquire(ctx)
				if err != nil {
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two holders at once")
				}
				grants[i]++
				inside.Add(-1)
				if err := hold.Release(context.WithoutCancel(ctx)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	return grants
}

func sum(grants []int) (n int) {
	for _, g := range grants {
		n += g
	}
	return n
}

func TestHandOffNeedsHardlyAnyCommands(t *testing.T) {
	s, k := locktest.Alone(t, lockkeeper.Config{}) // of its own, for its statistics
	k.Server.ResetStats(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	var inside atomic.Int32
	var work sync.WaitGroup
	grants := contend(t, ctx, s, k, 64, &inside, &work)
	work.Wait()
	calls := k.Server.Calls(t)
	scripts := calls["evalsha"] + calls["eval"]
	if total := sum(grants); float64(scripts) > 0.1*float64(total) {
		t.Errorf("%d scripts for %d grants, more than 0.1 each", scripts, total)
	}
	if least, most := slices.Min(grants), slices.Max(grants); float64(most) > 1.3*float64(least) {
		t.Errorf("between %d and %d grants a goroutine", least, most)
	}
}

// Two processes share a lock, and whoever waits by polling alone (Redisson's spin lock)
// gets its turn beside them.
func TestProcessesGetTheirShare(t *testing.T) {
	a, k := locktest.New(t, lockkeeper.Config{})
	b := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	var inside atomic.Int32
	var work sync.WaitGroup
	ofA, ofB := contend(t, ctx, a, k, 32, &inside, &work), contend(t, ctx, b, k, 32, &inside, &work)
	work.Wait()
	least, most := min(sum(ofA), sum(ofB)), max(sum(ofA), sum(ofB))
	if most > 4*least { // on a machine that others use too; bench says how equal it is
		t.Errorf("one process got %d grants, the other %d", least, most)
	}

	ctx, stop = context.WithCancel(t.Context())
	contend(t, ctx, a, k, 16, &inside, &work)
	const attempt = `if redis.call('EXISTS', KEYS[1]) == 0 then
		redis.call('HINCRBY', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], 30000) return nil
	end return redis.call('PTTL', KEYS[1])`
	redistest.Eventually(t, "the poller to get in", func() bool {
		return k.Do(t, "EVAL", attempt, "1", k.Name, locktest.Redisson).Error() != nil // nil: it is in
	})
	if owners := k.Owners(t); len(owners) != 1 || owners[locktest.Redisson] != "1" {
		t.Errorf("owners %v", owners)
	}
	stop()
	k.Unlock(t)
	work.Wait()
	k.AwaitFree(t)
}
