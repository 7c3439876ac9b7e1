package kinds_test

import (
	"context"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A MultiLock that waits for a fair lock has no entry in its queue. It tries as soon as the lock is free and the
// queue is empty. Its other locks are not kept for it meanwhile.
func TestMultiLock_WakesOnFairMember(t *testing.T) {
	queued := func(t *testing.T, k locktest.Key) {
		redistest.Eventually(t, "a waiter in the queue", func() bool { return k.Number(t, "LLEN", keyspace.Queue(k.Name)) == 1 })
	}
	ends := map[string]func(t *testing.T, s *locktest.Site, k locktest.Key, hold *lockkeeper.Hold){
		"a release": func(t *testing.T, _ *locktest.Site, _ locktest.Key, hold *lockkeeper.Hold) { locktest.Release(t, hold) },
		"a forced release": func(t *testing.T, s *locktest.Site, k locktest.Key, _ *lockkeeper.Hold) {
			locktest.ForceRelease(t, s.FairLock(k.LockName), true)
		},
		"the release of the next": func(t *testing.T, s *locktest.Site, k locktest.Key, hold *lockkeeper.Hold) {
			next := locktest.AcquireSoon(t.Context(), s.FairLock(k.LockName))
			queued(t, k)
			locktest.Release(t, hold)
			locktest.Release(t, locktest.Got(t, next).Hold)
		},
		"a release behind a waiter that gives up": func(t *testing.T, s *locktest.Site, k locktest.Key, hold *lockkeeper.Hold) {
			ctx, cancel := context.WithCancel(t.Context())
			abandoned := locktest.AcquireSoon(ctx, s.FairLock(k.LockName))
			queued(t, k)
			cancel()
			locktest.Await(t, "the end of the wait", abandoned)
			locktest.Release(t, hold)
		},
	}
	for where, isFar := range map[string]bool{"on one server": false, "on two servers": true} {
		for how, end := range ends {
			t.Run(how+", "+where, func(t *testing.T) {
				t.Parallel()
				a, k := locktest.New(t, locktest.NoPolling)
				b, c := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
				other := b
				if isFar {
					other = locktest.Open(t, redistest.Start(t).URL(), locktest.NoPolling)
				}
				hold := locktest.Acquire(t, a.FairLock(k.LockName))
				multi := lockkeeper.MultiLock(b.FairLock(k.LockName), other.Lock(k.LockName+" too"))
				granted := locktest.AcquireSoon(t.Context(), multi)
				locktest.AwaitWaiters(t, multi, 1)
				redistest.Eventually(t, "the MultiLock to subscribe", func() bool { return k.Server.Subscribers(t, keyspace.Channel(k.Name)) == 1 })
				end(t, c, k, hold)
				locktest.Release(t, locktest.Got(t, granted).Hold) // well before it would poll
			})
		}
	}
}
