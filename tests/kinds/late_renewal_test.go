package kinds_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A hold of every kind, and a permit, keeps its lease although each reply to a renewal comes after the next renewal is
// due, as in a process whose processors are busy.
func TestRenewal_KeepsLeaseWhenRepliesAreLate(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Watchdog: 4 * time.Second, Renewal: time.Second, CallTimeout: 100 * time.Millisecond}
	locktest.EachKind(t, func(t *testing.T, _ string, lock locktest.Kind) {
		r := locktest.NewRemote(t, redistest.Shared(t), cfg)
		expectLeaseKept(t, cfg, lock(r.Site, r.LockName).Acquire, r.Proxy)
	})
	t.Run("expirable semaphore", func(t *testing.T) {
		t.Parallel()
		r := locktest.NewRemote(t, redistest.Shared(t), cfg)
		expectLeaseKept(t, cfg, onePermit(t, r.Site, r.LockName).Acquire, r.Proxy)
	})
	t.Run("several servers", func(t *testing.T) {
		t.Parallel()
		links, whole := distantLocks(t, 2, cfg)
		expectLeaseKept(t, cfg, whole.Acquire, links[0].Proxy, links[1].Proxy)
		locktest.Stop(t, links[0]) // first, since its release needs both
	})
	t.Run("majority", func(t *testing.T) {
		t.Parallel()
		q := newQuorum(t, cfg)
		expectLeaseKept(t, cfg, q.party(t).Acquire, q.proxies...)
	})
}

func expectLeaseKept[H locktest.Taken](t *testing.T, cfg lockkeeper.Config, acquire acquires[H], proxies ...*redistest.Proxy) {
	t.Helper()
	hold := take(t, acquire)
	for _, proxy := range proxies {
		proxy.Delay(300 * time.Millisecond) // in each direction
	}
	locktest.ExpectValidFor(t, cfg.Watchdog*3/2, hold)
	for _, proxy := range proxies {
		proxy.Delay(0)
	}
	locktest.Check(t, hold.Err())
}

// acquires is Acquire of a lock, or of an expirable semaphore.
type acquires[H locktest.Taken] = func(ctx context.Context, options ...lockkeeper.Option) (H, error)

func take[H locktest.Taken](t *testing.T, acquire acquires[H], options ...lockkeeper.Option) H {
	t.Helper()
	hold, err := acquire(locktest.Within(t), options...)
	for locktest.IsLateReply(err) {
		hold, err = acquire(locktest.Within(t), options...)
	}
	locktest.OK(t, err)
	return hold
}

// onePermit returns an expirable semaphore with one permit.
func onePermit(t *testing.T, s *locktest.Site, name string) *lockkeeper.ExpirableSemaphore {
	t.Helper()
	p := s.ExpirableSemaphore(name)
	redistest.Eventually(t, "the number of permits to be set", func() bool { return p.SetPermits(locktest.Within(t), 1) == nil })
	return p
}
