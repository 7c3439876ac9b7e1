package kinds_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// MultiLocks that share two members on different servers, or in different slots, take them in the same order, whatever
// their other members are. If not, each keeps one reserved and waits for the other.
func TestMultiLock_SharedMembersAreTakenInOneOrder(t *testing.T) {
	t.Parallel()
	t.Run("two servers", func(t *testing.T) {
		t.Parallel()
		servers, name := redistest.SharedServers(t, 2), redistest.Name(t)
		takeCrossed(t, func() (a, m, n *lockkeeper.Lock) {
			one, two := locktest.Open(t, servers[0].URL(), locktest.NoPolling), locktest.Open(t, servers[1].URL(), locktest.NoPolling)
			return two.Lock(name + "a"), one.Lock(name + "m"), two.Lock(name + "n")
		})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster := redistest.Cluster(t, 3)
		takeCrossed(t, func() (a, m, n *lockkeeper.Lock) {
			s := locktest.Open(t, cluster[0].URL(), locktest.NoPolling)
			return s.Lock("a{y}"), s.Lock("m{x}"), s.Lock("n{y}")
		})
	})
}

// takeCrossed has three processes take {m, n}, {a, m, n}, m and n again and again.
func takeCrossed(t *testing.T, open func() (a, m, n *lockkeeper.Lock)) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var granted [4]atomic.Int64
	for range 3 {
		a, m, n := open()
		for i, lock := range []*lockkeeper.Lock{lockkeeper.MultiLock(m, n), lockkeeper.MultiLock(a, m, n), m, n} {
			all.Go(func() {
				for lock.Do(ctx, func(context.Context) error { return nil }) == nil {
					granted[i].Add(1)
				}
			})
		}
	}
	redistest.Eventually(t, "30 grants of each", func() bool {
		for i := range granted {
			if granted[i].Load() < 30 {
				return false
			}
		}
		return true
	})
}

// A MultiLock of one fair lock yields it to the next waiter of that lock, before a later request of its own process.
func TestMultiLock_OfOneFairLockKeepsItsOrder(t *testing.T) {
	t.Parallel()
	a, k := locktest.New(t, locktest.NoPolling)
	b := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	multi := lockkeeper.MultiLock(a.FairLock(k.LockName))
	hold := locktest.Acquire(t, multi)
	next := locktest.AcquireSoon(locktest.Within(t), b.FairLock(k.LockName))
	redistest.Eventually(t, "the waiter in the queue", func() bool { return k.Number(t, "LLEN", keyspace.Queue(k.Name)) == 1 })
	own := locktest.AcquireSoon(locktest.Within(t), multi)
	redistest.Eventually(t, "the process's own waiter", func() bool {
		locks, err := a.Locks(t.Context())
		return err == nil && len(locks) == 1 && locks[0].Waiters == 1
	})
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, next).Hold)
	locktest.Release(t, locktest.Got(t, own).Hold)
}
