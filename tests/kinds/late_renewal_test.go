package kinds_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A lock of every kind keeps its lease although each reply to a renewal comes after the next renewal is due, as in a
// process whose processors are busy.
func TestRenewal_KeepsLeaseWhenRepliesAreLate(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond // in each direction
	cfg := lockkeeper.Config{Watchdog: 4 * time.Second, Renewal: time.Second, CallTimeout: 100 * time.Millisecond}
	lives := func(t *testing.T, lock *lockkeeper.Lock, proxies ...*redistest.Proxy) {
		t.Helper()
		hold := locktest.Acquire(t, lock)
		for _, proxy := range proxies {
			proxy.Delay(delay)
		}
		locktest.ExpectValidFor(t, cfg.Watchdog*3/2, hold)
		for _, proxy := range proxies {
			proxy.Delay(0)
		}
		locktest.Check(t, hold.Err())
	}
	locktest.EachKind(t, func(t *testing.T, _ string, lock locktest.Kind) {
		r := locktest.NewRemote(t, redistest.Shared(t), cfg)
		lives(t, lock(r.Site, r.LockName), r.Proxy)
	})
	t.Run("several servers", func(t *testing.T) {
		t.Parallel()
		links, whole := distant(t, 2, cfg)
		lives(t, whole, links[0].Proxy, links[1].Proxy)
		locktest.Stop(t, links[0]) // first, since its release needs both
	})
	t.Run("majority", func(t *testing.T) {
		t.Parallel()
		q := newQuorum(t, cfg)
		lives(t, q.party(t).Lock, q.proxies...)
	})
}
