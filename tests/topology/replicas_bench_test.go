package topology_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// BenchmarkReplicas acquires and releases locks, one for each goroutine, with and without waiting for a replica, with
// and without lag. It reports the time for each pair.
func BenchmarkReplicas(b *testing.B) {
	master := redistest.Start(b)
	_, link := redistest.ReplicaBehind(b, master)
	for _, c := range []struct {
		replicas int
		lag      time.Duration
	}{{0, 0}, {1, 0}, {1, 5 * time.Millisecond}} {
		for _, crowd := range []int{1, 64, 1000} {
			b.Run(fmt.Sprintf("Replicas=%d/lag=%v/goroutines=%d", c.replicas, 2*c.lag, crowd), func(b *testing.B) {
				link.Delay(c.lag)
				s := locktest.Open(b, master.URL(), lockkeeper.Config{Replicas: c.replicas})
				pairs(b, s, crowd)
			})
		}
	}
}

func pairs(b *testing.B, s *locktest.Site, crowd int) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var working sync.WaitGroup
	b.ResetTimer()
	for i := range crowd {
		working.Go(func() {
			ctx, l := context.Background(), s.Lock(fmt.Sprint("pairs ", i))
			for left.Add(-1) >= 0 {
				hold, err := l.Acquire(ctx)
				if err == nil {
					err = hold.Release(ctx)
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	working.Wait()
	b.StopTimer()
}
