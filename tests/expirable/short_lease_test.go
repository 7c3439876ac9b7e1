package expirable_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Redis is so far away that a reply takes longer than a short lease. The request is refused, and does not hold up
// the request behind it.
func TestExpirable_ShortLeaseFarFromRedis(t *testing.T) {
	t.Parallel()
	const delay = 400 * time.Millisecond // in each direction
	s := locktest.NewRemote(t, redistest.Shared(t), lockkeeper.Config{CallTimeout: locktest.Soon})
	p := s.ExpirableSemaphore(s.LockName)
	locktest.Must(p.TrySetPermits(locktest.Within(t), 1))(t)
	first := locktest.Must(p.Acquire(locktest.Within(t)))(t)
	s.Proxy.Delay(delay)
	refused := locktest.Go(func() error {
		_, err := p.Acquire(locktest.Within(t), lockkeeper.WithLease(delay))
		return err
	})
	redistest.Eventually(t, "the request to wait", func() bool {
		locks, err := s.Locks(locktest.Within(t))
		return err == nil && len(locks) > 0 && locks[0].Waiters > 0
	})
	behind := locktest.Go(func() error {
		_, err := p.Acquire(locktest.Within(t))
		return err
	})
	locktest.OK(t, first.Release(locktest.Within(t)))
	locktest.IsError(t, locktest.Await(t, "the refusal", refused), lockkeeper.ErrUnavailable, "too long for a lease")
	locktest.OK(t, locktest.Await(t, "the permit", behind))
	s.Proxy.Delay(0)
}

// A permit whose grant came late has too little left for the drain of its work. It is renewed first.
func TestExpirable_DrainAfterALateGrant(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := locktest.Open(t, proxy.URL(), lockkeeper.Config{Watchdog: 3 * time.Second, CallTimeout: 4 * time.Second})
	p := s.ExpirableSemaphore(redistest.Name(t))
	if _, err := p.TrySetPermits(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	proxy.Freeze(true)
	time.AfterFunc(2200*time.Millisecond, func() { proxy.Freeze(false) })
	ran := false
	if err := p.Do(locktest.Within(t), func(context.Context) error { ran = true; return nil }, lockkeeper.WithDrain(1200*time.Millisecond)); err != nil || !ran {
		t.Errorf("the work ran: %v, %v", ran, err)
	}
}
