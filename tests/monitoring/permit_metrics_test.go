package monitoring_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// soon makes a request on a goroutine.
func soon(ctx context.Context, request func(context.Context) error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- request(ctx) }()
	return ended
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A request for permits is counted once, whatever its number and its end; other requests are not counted.
func TestMetrics_CountSemaphoreRequestsOnce(t *testing.T) {
	k, ctx := locktest.NewKey(t, redistest.Start(t)), locktest.Within(t)
	cfg := locktest.NoPolling
	cfg.QueueLimit, cfg.HandOffLimit = 1, 30*time.Second
	m := measure(t, k.Server.URL(), cfg)
	s := m.Semaphore(k.LockName)
	_, err := s.TrySetPermits(ctx, 3, 0)
	ok(t, err)
	ok(t, s.Acquire(ctx, 2))
	locktest.IsError(t, s.TryAcquire(ctx, 2), lockkeeper.ErrHeld)
	waiter := soon(ctx, func(ctx context.Context) error { return s.Acquire(ctx, 2) })
	want := map[string]int64{
		"lockkeeper.waiters semaphore": 1, "lockkeeper.grants semaphore redis": 1, "lockkeeper.refusals semaphore held": 1,
		"lockkeeper.wait.duration semaphore granted": 1, "lockkeeper.wait.duration semaphore refused": 1,
	}
	m.expect(t, want)
	locktest.IsError(t, s.Acquire(ctx, 1), lockkeeper.ErrQueueFull)
	locktest.IsError(t, m.Latch(k.LockName).Wait(ctx), lockkeeper.ErrInvalid) // refused before it reaches a pool
	ok(t, s.Release(ctx, 2))
	ok(t, locktest.Await(t, "the permits", waiter))
	_, err = s.Drain(ctx)
	ok(t, err)
	m.expect(t, map[string]int64{
		"lockkeeper.waiters semaphore": 0, "lockkeeper.grants semaphore redis": 1, "lockkeeper.grants semaphore hand_off": 1,
		"lockkeeper.refusals semaphore queue_full": 1, "lockkeeper.refusals semaphore held": 1, "lockkeeper.refusals latch invalid": 1,
		"lockkeeper.wait.duration semaphore granted": 2, "lockkeeper.wait.duration semaphore refused": 2,
		"lockkeeper.wait.duration latch refused": 0, "lockkeeper.holds semaphore": 0, "lockkeeper.grants plain redis": 0,
	})
}

// A waiter of a latch is counted until the latch opens, or until the wait or the System ends.
func TestMetrics_CountLatchWaiters(t *testing.T) {
	k, ctx := locktest.NewKey(t, redistest.Start(t)), locktest.Within(t)
	m := measure(t, k.Server.URL(), locktest.NoPolling)
	l := m.Latch(k.LockName)
	wait := func(ctx context.Context) error { return l.Wait(ctx) }
	closed := func() {
		t.Helper()
		if set, err := l.TrySetCount(ctx, 1); !set || err != nil {
			t.Fatal(set, err)
		}
	}
	closed()
	leaving, leave := context.WithCancel(ctx)
	stays, leaves := soon(ctx, wait), soon(leaving, wait)
	m.expect(t, map[string]int64{"lockkeeper.waiters latch": 2})
	leave()
	m.expect(t, map[string]int64{"lockkeeper.waiters latch": 1, "lockkeeper.refusals latch cancelled": 1})
	ok(t, l.CountDown(ctx))
	ok(t, locktest.Await(t, "the latch", stays))
	m.expect(t, map[string]int64{
		"lockkeeper.waiters latch": 0, "lockkeeper.grants latch redis": 1,
		"lockkeeper.wait.duration latch granted": 1, "lockkeeper.wait.duration latch refused": 1,
	})
	closed()
	last := soon(ctx, wait)
	m.expect(t, map[string]int64{"lockkeeper.waiters latch": 1})
	locktest.Stop(t, m)
	m.expect(t, map[string]int64{"lockkeeper.waiters latch": 0, "lockkeeper.refusals latch closed": 1, "lockkeeper.actors": 0})
	locktest.IsError(t, locktest.Await(t, "the end", last), lockkeeper.ErrClosed)
	if err := locktest.Await(t, "the end of the wait", leaves); err == nil {
		t.Error("a wait that was cancelled has succeeded")
	}
}
