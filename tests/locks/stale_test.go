package locks_test

import (
	"context"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// A try is not refused by the reply to a request that has left: the lock may have been released since Redis has looked.
func TestTry_NeedsAReplyOfItsOwn(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	here, there := locktest.NewRemote(t, server, lockkeeper.Config{CallTimeout: locktest.Soon}), locktest.Open(t, server.URL(), lockkeeper.Config{})
	k, lock := here.Key, here.Lock(here.LockName)
	held := there.Acquire(t, k)
	block := func(on bool) { here.Proxy.Set(func(r *rig.Rules) { r.Down.Blocked = on }) }
	block(true)
	ctx, cancel := context.WithCancel(locktest.Within(t))
	left := locktest.AcquireSoon(ctx, lock)
	queue, order := keyspace.WaitQueue(k.LockName), keyspace.WaitOrder(k.LockName)
	redistest.Eventually(t, "an entry", func() bool {
		n, err := server.Do(t, "EXISTS", queue, order).AsInt64()
		return err == nil && n == 2
	})
	cancel()
	locktest.IsError(t, (<-left).Err, context.Canceled)
	locktest.OK(t, server.Do(t, "DEL", queue, order).Error()) // so that the lock is not transferred
	there.Release(t, held)
	try := locktest.Go(func() error {
		hold, err := lock.TryAcquire(locktest.Within(t))
		if err != nil {
			return err
		}
		return hold.Release(locktest.Within(t))
	})
	here.AwaitWaiting(t, 1)
	block(false)
	locktest.OK(t, <-try)
}
