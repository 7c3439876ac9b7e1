package multi_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// The subscriber of one System is known to the actors of another as soon as there is one.
func TestMultiLockWaitsOnANewSystem(t *testing.T) {
	server := redistest.Shared(t)
	k := locktest.NewKey(t, server)
	k.TakeAs(t, locktest.Redisson, time.Minute)
	var wg sync.WaitGroup
	var locks []*lockkeeper.Lock
	for i := range 2 {
		s := locktest.Open(t, server.URL(), lockkeeper.Config{})
		locks = append(locks, s.Lock(k.LockName), s.Lock(fmt.Sprint(k.LockName, i)))
	}
	locks[0] = lockkeeper.MultiLock(locks[1:]...)
	wg.Add(1)
	go func() {
		defer wg.Done()
		hold, err := locks[0].Acquire(locktest.Within(t))
		if err != nil {
			t.Error(err)
			return
		}
		locktest.Release(t, hold)
	}()
	k.AwaitSubscribers(t, 1)
	k.Unlock(t)
	wg.Wait()
}

// Try means once, for all the members.
func TestMultiLockTriesOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	name := redistest.Name(t)
	answers := make(chan error, 10)
	for i := range 10 {
		s := locktest.Open(t, server.URL(), locktest.Briefly)
		go func() {
			locks := []*lockkeeper.Lock{s.Lock(name + "a"), s.FencedLock(name + "b"), s.FairLock(name + "c")}
			if i%2 == 0 {
				locks[0], locks[2] = locks[2], locks[0]
			}
			_, err := lockkeeper.MultiLock(locks...).TryAcquire(locktest.Within(t), lockkeeper.WithLease(redistest.Limit))
			answers <- err
		}()
	}
	granted := 0
	for range 10 {
		if err := locktest.Await(t, "an answer", answers); err == nil {
			granted++
		} else {
			locktest.IsError(t, err, lockkeeper.ErrHeld)
		}
	}
	if granted != 1 {
		t.Errorf("granted %d times", granted)
	}
}
