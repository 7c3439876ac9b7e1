package kinds_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Redis is so far away that a reply takes a part of a short lease, or longer than the lease. A request of every kind,
// and one for a permit, is granted in the first case. In the second it is refused, and does not hold up the request
// behind it.
func TestShortLease_IsGrantedIfAReplyTakesLess(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{CallTimeout: locktest.Soon, ReplicaTimeout: time.Second}
	locktest.EachKind(t, func(t *testing.T, _ string, lock locktest.Kind) {
		r := locktest.NewRemote(t, redistest.Shared(t), cfg)
		refusesShortLease(t, r.Site, lock(r.Site, r.LockName).Acquire, r.Proxy)
	})
	t.Run("expirable semaphore", func(t *testing.T) {
		t.Parallel()
		r := locktest.NewRemote(t, redistest.Shared(t), cfg)
		refusesShortLease(t, r.Site, onePermit(t, r.Site, r.LockName).Acquire, r.Proxy)
	})
	t.Run("several servers", func(t *testing.T) {
		t.Parallel()
		links, whole := distantLocks(t, 2, cfg)
		refusesShortLease(t, links[0].Site, whole.Acquire, links[0].Proxy, links[1].Proxy)
		locktest.Stop(t, links[0]) // first, since its release needs both
	})
	t.Run("majority", func(t *testing.T) {
		t.Parallel()
		q := newQuorum(t, cfg)
		p := q.party(t)
		refusesShortLease(t, p.sites[0], p.Acquire, q.proxies...)
	})
}

func refusesShortLease[H locktest.Taken](t *testing.T, s *locktest.Site, acquire acquires[H], proxies ...*redistest.Proxy) {
	t.Helper()
	const delay = 400 * time.Millisecond // in each direction
	locktest.OK(t, take(t, acquire).Release(locktest.Within(t)))
	for _, proxy := range proxies {
		proxy.Delay(delay)
	}
	granted := take(t, acquire, lockkeeper.WithLease(7*delay))
	_ = granted.Release(locktest.Within(t)) // which is an error if the lease is over by now
	refused := locktest.Go(func() error {
		_, err := acquire(locktest.Within(t), lockkeeper.WithLease(delay))
		return err
	})
	redistest.Eventually(t, "the request to wait", func() bool {
		locks, err := s.Locks(locktest.Within(t))
		return err == nil && slices.ContainsFunc(locks, func(one lockkeeper.LockInfo) bool { return one.Waiters > 0 })
	})
	behind := locktest.Go(func() error {
		hold, err := acquire(locktest.Within(t))
		if err == nil {
			err = hold.Release(locktest.Within(t))
		}
		return err
	})
	locktest.IsError(t, locktest.Await(t, "the refusal", refused), lockkeeper.ErrUnavailable, "too long for a lease")
	locktest.OK(t, locktest.Await(t, "the grant", behind))
	for _, proxy := range proxies {
		proxy.Delay(0)
	}
}
