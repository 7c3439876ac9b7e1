package permits_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A permit keeps its lease although each reply to a renewal comes after the next renewal is due, as in a process
// whose processors are busy.
func TestRenewal_KeepsLeaseWhenRepliesAreLate(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Watchdog: 4 * time.Second, Renewal: time.Second, CallTimeout: 100 * time.Millisecond}
	r := locktest.NewRemote(t, redistest.Shared(t), cfg)
	p := r.ExpirableSemaphore(r.LockName)
	redistest.Eventually(t, "the number of permits to be set", func() bool { return p.SetPermits(locktest.Within(t), 2) == nil })
	permits := []*lockkeeper.Permit{acquire(t, p), acquire(t, p)}
	r.Proxy.Delay(300 * time.Millisecond) // in each direction
	end := time.Now().Add(cfg.Watchdog * 3 / 2)
	redistest.Eventually(t, "a lease and a half to pass", func() bool { return time.Now().After(end) || permits[0].Err() != nil })
	r.Proxy.Delay(0)
	for _, permit := range permits {
		if err := permit.Err(); err != nil {
			t.Error(err)
		}
	}
}
