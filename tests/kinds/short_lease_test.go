package kinds_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Redis is so far away that a reply takes a part of a short lease, or longer than the lease. A request of every kind
// is granted in the first case. In the second it is refused, and does not hold up the request behind it.
func TestShortLease_FarFromRedis(t *testing.T) {
	t.Parallel()
	const delay = 400 * time.Millisecond // in each direction
	cfg := lockkeeper.Config{CallTimeout: locktest.Soon, ReplicaTimeout: time.Second}
	expect := func(t *testing.T, s *locktest.Site, lock *lockkeeper.Lock, proxies ...*redistest.Proxy) {
		t.Helper()
		locktest.Release(t, locktest.Acquire(t, lock))
		for _, proxy := range proxies {
			proxy.Delay(delay)
		}
		granted := locktest.Acquire(t, lock, lockkeeper.WithLease(7*delay))
		_ = granted.Release(locktest.Within(t)) // which is an error if the lease is over by now
		refused := locktest.Go(func() error {
			_, err := lock.Acquire(locktest.Within(t), lockkeeper.WithLease(delay))
			return err
		})
		redistest.Eventually(t, "the request to wait", func() bool {
			locks, err := s.Locks(locktest.Within(t))
			return err == nil && slices.ContainsFunc(locks, func(one lockkeeper.LockInfo) bool { return one.Waiters > 0 })
		})
		behind := locktest.AcquireSoon(locktest.Within(t), lock)
		locktest.IsError(t, locktest.Await(t, "the refusal", refused), lockkeeper.ErrUnavailable, "too long for a lease")
		locktest.Release(t, locktest.Got(t, behind).Hold)
		for _, proxy := range proxies {
			proxy.Delay(0)
		}
	}
	locktest.EachKind(t, func(t *testing.T, _ string, lock locktest.Kind) {
		r := locktest.NewRemote(t, redistest.Shared(t), cfg)
		expect(t, r.Site, lock(r.Site, r.LockName), r.Proxy)
	})
	t.Run("several servers", func(t *testing.T) {
		t.Parallel()
		links, whole := distant(t, 2, cfg)
		expect(t, links[0].Site, whole, links[0].Proxy, links[1].Proxy)
		locktest.Stop(t, links[0]) // first, since its release needs both
	})
	t.Run("majority", func(t *testing.T) {
		t.Parallel()
		q := newQuorum(t, cfg)
		p := q.party(t)
		expect(t, p.sites[0], p.Lock, q.proxies...)
	})
}
