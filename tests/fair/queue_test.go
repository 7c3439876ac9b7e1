package fair_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// With nothing but ended leases to move it on, a fair lock goes round in order.
func TestFairLeasesEndInOrder(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	sites := []*locktest.Site{locktest.Open(t, server.URL(), locktest.Briefly), locktest.Open(t, server.URL(), locktest.Briefly)}
	name := redistest.Name(t)
	var waiters []<-chan locktest.Grant
	for i := range 6 {
		lock := sites[i%2].FairLock(name)
		waiters = append(waiters, locktest.AcquireSoon(locktest.Within(t), lock, lockkeeper.WithLease(300*time.Millisecond)))
		redistest.Eventually(t, "the request to stand in line", func() bool {
			status, err := lock.Inspect(locktest.Within(t))
			return err == nil && (status.Subscribers >= i || i == 0) && status.Locked
		})
	}
	var before time.Time
	for i, w := range waiters {
		g := locktest.Got(t, w)
		if g.At.Before(before) {
			t.Errorf("the request %d was granted before its predecessor", i)
		}
		before = g.At
		if i == len(waiters)-1 {
			locktest.Release(t, g.Hold)
		}
	}
}

// A waiter that gives up while Redis is silent leaves its place in the queue.
func TestFairWaiterGivesUpWhileRedisIsSilent(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	config := locktest.Briefly
	config.Watchdog = 2 * redistest.Limit // the holder outlives the silence
	config.CallTimeout = 200 * time.Millisecond
	s, other := locktest.Open(t, server.URL(), config), locktest.Open(t, server.URL(), config)
	name := redistest.Name(t)
	hold := locktest.Acquire(t, s.FairLock(name))
	first := locktest.AcquireSoon(locktest.Within(t), other.FairLock(name))
	locktest.AwaitWaiters(t, other.FairLock(name), 1)
	server.Pause(t)
	_, err := s.FairLock(name).Acquire(locktest.Within(t), lockkeeper.WithWait(500*time.Millisecond))
	server.Resume(t)
	if !errors.Is(err, lockkeeper.ErrTimeout) && !errors.Is(err, lockkeeper.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	queue := "redisson_lock_queue:{" + name + "}"
	redistest.Eventually(t, "the first to be alone in the queue", func() bool {
		n, err := server.Do(t, "LLEN", queue).AsInt64()
		return err == nil && n == 1
	})
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, first).Hold)
	redistest.Eventually(t, "the queue to be gone", func() bool { return len(server.Keys(t, "*"+name+"*")) == 0 })
}

// A crowd arrives at once, and everybody gets the lock.
func TestFairCrowd(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{})
	lock := s.FairLock(redistest.Name(t))
	var wg sync.WaitGroup
	visits := 0
	for range 500 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			hold, err := lock.Acquire(locktest.Within(t), lockkeeper.WithLease(10*time.Second))
			if err != nil {
				t.Error(err)
				return
			}
			visits++ // the lock guards it
			if err := hold.Release(locktest.Within(t)); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if visits != 500 {
		t.Errorf("%d visits", visits)
	}
}
