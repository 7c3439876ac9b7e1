package actors

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Every job is run once, also beyond the goroutines that stay, and while they are being ended.
func TestCrewRunsEveryJobOnce(t *testing.T) {
	var k goroutines
	var ran atomic.Int32
	var jobs sync.WaitGroup
	const n = 5000
	for i := range n {
		jobs.Add(1)
		k.Schedule(func() {
			defer jobs.Done()
			ran.Add(1)
			runtime.Gosched()
		})
		if i == n/2 {
			k.close()
		}
	}
	jobs.Wait()
	if ran.Load() != n {
		t.Fatalf("%d of %d jobs ran", ran.Load(), n)
	}
}

func TestCrewUsesItsGoroutinesAgain(t *testing.T) {
	var k goroutines
	defer k.close()
	done := make(chan struct{})
	for range 100 {
		k.Schedule(func() { done <- struct{}{} })
		<-done
		redistest.Eventually(t, "the goroutine to rest", func() bool {
			k.mu.Lock()
			defer k.mu.Unlock()
			return len(k.idle) == k.members
		})
	}
	if k.members != 1 {
		t.Fatalf("there are %d goroutines for one job at a time", k.members)
	}
}
