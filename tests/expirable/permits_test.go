package expirable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestExpirable_SetsAndCountsItsNumber(t *testing.T) {
	t.Parallel()
	server, name := redistest.Shared(t), redistest.Name(t)
	_, p := open(t, server.URL(), name, 2, lockkeeper.Config{})
	ctx := locktest.Within(t)
	if set, err := p.TrySetPermits(ctx, 5); set || err != nil {
		t.Errorf("set again: %v, %v", set, err)
	}
	one, two := acquire(t, p), acquire(t, p)
	locktest.Fails(p.TryAcquire(ctx))(t, lockkeeper.ErrHeld, ": refused: too few permits are free")
	locktest.Fails(p.Acquire(ctx, lockkeeper.WithWait(50*time.Millisecond)))(t, lockkeeper.ErrTimeout)
	locktest.Check(t, errors.Join(p.AddPermits(ctx, 3), p.SetPermits(ctx, 4), p.AddPermits(ctx, -3)))
	awaitPermits(t, p, -1, 2)
	release(t, one)
	awaitPermits(t, p, 0, 1)
	release(t, two)
	awaitPermits(t, p, 1, 0)
	locktest.IsError(t, one.Release(ctx), lockkeeper.ErrNotHeld)
	for _, err := range []error{
		p.SetPermits(ctx, -1), p.AddPermits(ctx, -1<<31), p.ReleaseID(ctx, "abc"), (*lockkeeper.ExpirableSemaphore)(nil).SetPermits(ctx, 1),
	} {
		locktest.IsError(t, err, lockkeeper.ErrInvalid)
	}
	if err := p.Do(ctx, func(ctx context.Context) error {
		if hold := lockkeeper.HoldFrom(ctx); hold != nil {
			t.Error("a permit is no hold of a lock")
		}
		awaitPermits(t, p, 0, 1)
		return nil
	}); err != nil {
		t.Error(err)
	}
	awaitPermits(t, p, 1, 0)
}

// The watchdog renews all permits of a process in one command, and a waiter in another process gets one when it is
// released.
func TestExpirable_RenewsTogether(t *testing.T) {
	t.Parallel()
	server, name := redistest.Start(t), redistest.Name(t)
	s, p := open(t, server.URL(), name, 5, lockkeeper.Config{Watchdog: watchdog, Renewal: watchdog / 10})
	other, there := open(t, server.URL(), name, 0, locktest.NoPolling)
	var held []*lockkeeper.Permit
	for range 5 {
		held = append(held, acquire(t, p))
	}
	waiter := acquireSoon(locktest.Within(t), there)
	other.AwaitWaiting(t, 1)
	first := expiries(t, server, name)
	server.ResetStats(t)
	redistest.Eventually(t, "renewals", func() bool { return expiries(t, server, name)[0].After(first[4]) })
	awaitHeldFor(t, s.System, name, watchdog*5/4) // without a renewal, a permit has expired by then
	calls := server.Calls(t)
	for _, permit := range held {
		if !permit.Valid() {
			t.Error(permit.Err())
		}
	}
	if renewals := calls["time"]; renewals > 30 {
		t.Errorf("%d renewals in %v", renewals, watchdog)
	}
	release(t, held[0])
	locktest.Check(t, locktest.Await(t, "the permit", waiter))
	release(t, held[1:]...)
	awaitPermits(t, p, 5, 0)
}

// A holder is notified of every loss, and warned before an expiry.
func TestExpirable_ReportsEveryLoss(t *testing.T) {
	t.Parallel()
	r := locktest.NewRemote(t, redistest.Shared(t), lockkeeper.Config{Watchdog: watchdog, Renewal: watchdog / 10})
	p := r.ExpirableSemaphore(r.LockName)
	ctx := locktest.Within(t)
	locktest.Must(p.TrySetPermits(ctx, 9))(t)
	lost := func(permit *lockkeeper.Permit, want messages.Reason) {
		t.Helper()
		locktest.Await(t, "the loss", permit.Context().Done())
		locktest.Equal(t, locktest.IsError(t, context.Cause(permit.Context()), lockkeeper.ErrLost), want, "lost because of %v")
		if err := permit.Release(ctx); !errors.Is(err, lockkeeper.ErrLost) || !strings.Contains(err.Error(), ": permit was lost") {
			t.Errorf("a lost permit is released with %v", err)
		}
	}
	lost(acquire(t, p, lockkeeper.WithLease(100*time.Millisecond)), messages.Reason_REASON_EXPIRED)
	lost(acquire(t, p, lockkeeper.WithMaxHold(100*time.Millisecond)), messages.Reason_REASON_MAX_HOLD)
	here := acquire(t, p)
	locktest.Check(t, p.ReleaseID(ctx, here.ID()))
	lost(here, messages.Reason_REASON_FORCED)
	locktest.IsError(t, p.ReleaseID(ctx, here.ID()), lockkeeper.ErrNotHeld)
	deleted := acquire(t, p)
	locktest.Must(r.Server.Do(t, "DEL", "{"+r.Name+"}:timeout").AsInt64())(t)
	lost(deleted, messages.Reason_REASON_GONE)
	unnoticed := acquire(t, p, lockkeeper.WithLease(time.Minute)) // no command renews it
	locktest.Must(r.Server.Do(t, "DEL", "{"+r.Name+"}:timeout").AsInt64())(t)
	if err := unnoticed.Release(ctx); !errors.Is(err, lockkeeper.ErrLost) || !strings.Contains(err.Error(), ": permit was lost") {
		t.Errorf("a permit that was lost and is released: %v", err)
	}
	locktest.Check(t, p.SetPermits(ctx, 9))
	atRisk := make(chan time.Duration, 1)
	unreachable := acquire(t, p, lockkeeper.WithAtRisk(func(left time.Duration) { atRisk <- left }))
	r.Proxy.Freeze(true)
	if left := locktest.Await(t, "the warning", atRisk); left <= 0 || left > watchdog {
		t.Errorf("%v are left", left)
	}
	lost(unreachable, messages.Reason_REASON_EXPIRED)
	r.Proxy.Freeze(false)
	awaitPermits(t, p, 9, 0)
}
