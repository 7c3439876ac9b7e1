package lockkeeper_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// The subscriber of one System is known to the actors of another as soon as there is one.
func TestMultiLockWaitsOnANewSystem(t *testing.T) {
	server := redistest.Shared(t)
	k := newKey(t, server)
	k.takeAs(t, redisson, time.Minute)
	var wg sync.WaitGroup
	var locks []*lockkeeper.Lock
	for i := range 2 {
		s := open(t, server.URL(), lockkeeper.Config{})
		locks = append(locks, s.Lock(k.lock), s.Lock(fmt.Sprint(k.lock, i)))
	}
	locks[0] = lockkeeper.MultiLock(locks[1:]...)
	wg.Add(1)
	go func() {
		defer wg.Done()
		hold, err := locks[0].Acquire(within(t))
		if err != nil {
			t.Error(err)
			return
		}
		release(t, hold)
	}()
	k.awaitSubscribers(t, 1)
	k.unlock(t)
	wg.Wait()
}

// Try means once, for all the members.
func TestMultiLockTriesOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	name := redistest.Name(t)
	answers := make(chan error, 10)
	for i := range 10 {
		s := open(t, server.URL(), briefly)
		go func() {
			locks := []*lockkeeper.Lock{s.Lock(name + "a"), s.FencedLock(name + "b"), s.FairLock(name + "c")}
			if i%2 == 0 {
				locks[0], locks[2] = locks[2], locks[0]
			}
			_, err := lockkeeper.MultiLock(locks...).TryAcquire(within(t), lockkeeper.WithLease(redistest.Limit))
			answers <- err
		}()
	}
	granted := 0
	for range 10 {
		if err := await(t, "an answer", answers); err == nil {
			granted++
		} else {
			isError(t, err, lockkeeper.ErrHeld)
		}
	}
	if granted != 1 {
		t.Errorf("granted %d times", granted)
	}
}
