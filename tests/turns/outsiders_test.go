package turns_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A client like Redisson's spin lock tries now and then, and is in no queue. It still gets the lock while two
// processes transfer it to each other all the time.
func TestTurns_SpinningForeignClientGetsTheLock(t *testing.T) {
	const attempt = `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
		redis.call('HINCRBY', KEYS[1], ARGV[2], 1) redis.call('PEXPIRE', KEYS[1], ARGV[1]) return 1`
	spins := func(t *testing.T, k locktest.Key) bool {
		got, err := k.Do(t, "EVAL", attempt, "1", k.Name, "30000", locktest.Redisson).AsInt64()
		if got == 1 {
			k.Unlock(t)
		}
		return err == nil && got == 1
	}
	for name, cluster := range map[string]bool{"one server": false, "a cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Shared(t)
			if cluster {
				server = redistest.Cluster(t, 1)[0]
			}
			k := locktest.NewKey(t, server)
			site := func() *locktest.Site { return locktest.Open(t, server.URL(), lockkeeper.Config{}) }
			ctx, stop := context.WithCancel(locktest.Within(t))
			var work sync.WaitGroup
			defer work.Wait()
			defer stop()
			var turns atomic.Int64
			for _, s := range []*locktest.Site{site(), site()} {
				for range 2 {
					work.Go(func() {
						for ctx.Err() == nil {
							if hold, err := s.Lock(k.LockName).Acquire(ctx); err == nil {
								turns.Add(1)
								hold.Release(context.WithoutCancel(ctx))
							}
						}
					})
				}
			}
			redistest.Eventually(t, "contention", func() bool { return turns.Load() > 1000 })
			pause := time.NewTicker(3 * time.Millisecond)
			defer pause.Stop()
			redistest.Eventually(t, "a turn", func() bool { <-pause.C; return spins(t, k) })
		})
	}
}
