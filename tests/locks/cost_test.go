package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// BenchmarkUncontended takes and releases one lock on one goroutine. On an idle machine it measures how a processor
// wakes up, so pin it and Redis to one processor: taskset -c 0 go test -bench …
func BenchmarkUncontended(b *testing.B) {
	k := locktest.NewKey(b, redistest.Shared(b))
	s := locktest.Open(b, k.Server.URL(), lockkeeper.Config{})
	for b.Loop() {
		hold, err := s.Lock(k.LockName).Acquire(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if err := hold.Release(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// A lock is handed off in its process without a command to Redis, until no request waits. TestLock_IsSharedByProcesses
// simulates how processes share a lock.
func TestHandOff_NeedsNoCommands(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{Watchdog: time.Hour, HandOffLimit: 10 * time.Minute})
	hold := s.Acquire(t, k)
	var waiting []<-chan locktest.Grant
	for n := range 64 {
		waiting = append(waiting, s.AcquireSoon(t, k))
		s.AwaitWaiters(t, k, n+1)
	}
	k.Server.ResetStats(t)
	for _, next := range waiting {
		locktest.Release(t, hold)
		hold = locktest.Got(t, next).Hold
	}
	calls := k.Server.Calls(t)
	if scripts := calls["evalsha"] + calls["eval"]; scripts > 0 {
		t.Errorf("%d scripts for %d grants", scripts, len(waiting))
	}
	k.HeldBy(t, s, "1")
	locktest.Release(t, hold)
}
