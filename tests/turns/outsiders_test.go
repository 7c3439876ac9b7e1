package turns_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
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

// A hold that came by a transfer is renewed before its short lease ends, also when that lease is very short.
func TestTransfer_HoldIsRenewedInTime(t *testing.T) {
	t.Parallel()
	const poll = 50 * time.Millisecond
	one, other, k := locktest.NewTwo(t, lockkeeper.Config{Poll: poll})
	lost := 0
	for range 10 {
		hold := locktest.Acquire(t, one.Lock(k.LockName))
		next := locktest.AcquireSoon(locktest.Within(t), other.Lock(k.LockName))
		locktest.AwaitWaiters(t, other.Lock(k.LockName), 1)
		k.AwaitSubscribers(t, 1)
		locktest.Release(t, hold)
		transferred := locktest.Got(t, next).Hold
		redistest.Eventually(t, "the hold to be renewed, or lost", func() bool {
			ttl, _ := k.Do(t, "PTTL", k.Name).AsInt64()
			return time.Duration(ttl)*time.Millisecond > 10*poll || !transferred.Valid()
		})
		if err := transferred.Release(locktest.Within(t)); errors.Is(err, lockkeeper.ErrLost) {
			lost++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if lost > 3 { // Redis or this process may stand still for that long
		t.Errorf("%d of 10 transferred holds were lost", lost)
	}
}
