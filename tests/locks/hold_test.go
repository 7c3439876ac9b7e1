package locks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMaxHoldEndsAHoldThatTheWatchdogWouldKeep(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	asked := time.Now()
	hold := s.Acquire(t, k, lockkeeper.WithMaxHold(300*time.Millisecond))
	next := s.AcquireSoon(t, k)
	<-hold.Context().Done()
	if held := time.Since(asked); held < 300*time.Millisecond {
		t.Errorf("ended after %v", held)
	}
	if cause := context.Cause(hold.Context()); !errors.Is(cause, lockkeeper.ErrLost) {
		t.Errorf("the cause is %v", cause)
	}
	locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
	locktest.Release(t, locktest.Got(t, next).Hold) // long before the watchdog's TTL
	k.IsFree(t)
}

func TestEnsureRenewsWhenTooLittleIsLeft(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: 10 * time.Second, Renewal: 5 * time.Second})
	hold := s.Acquire(t, k)
	redistest.Eventually(t, "some of the lease is used up", func() bool {
		left, err := k.Server.Do(t, "PTTL", k.Name).AsInt64()
		return err == nil && left < 9500
	})
	if err := hold.Ensure(locktest.Within(t), 9800*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if left, err := k.Server.Do(t, "PTTL", k.Name).AsInt64(); err != nil || left < 9500 {
		t.Errorf("%d ms are left in Redis (%v)", left, err)
	}
	// 1 % and 2 ms less than the TTL is the most that can be had.
	locktest.IsError(t, hold.Ensure(locktest.Within(t), 9950*time.Millisecond), lockkeeper.ErrInvalid)
	locktest.Release(t, hold)
	locktest.IsError(t, hold.Ensure(locktest.Within(t), time.Second), lockkeeper.ErrNotHeld)
}

func TestEnsureDoesNotRenewAFixedLease(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	hold := s.Acquire(t, k, lockkeeper.WithLease(20*time.Second))
	if err := hold.Ensure(locktest.Within(t), 10*time.Second); err != nil {
		t.Error(err)
	}
	locktest.IsError(t, hold.Ensure(locktest.Within(t), 25*time.Second), lockkeeper.ErrInvalid)
	locktest.Release(t, hold)
}

func TestReentryFollowsTheCallTree(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	outer := s.Acquire(t, k)
	// Deeper in the call tree, through contexts made on the way.
	ctx, cancel := context.WithTimeout(outer.Context(), redistest.Limit)
	defer cancel()
	inner := s.AcquireIn(t, ctx, k)
	if inner.Count() != 2 {
		t.Errorf("held %d times", inner.Count())
	}
	// Another call, in the same goroutine even, is another holder.
	_, err := s.Lock(k.LockName).TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	// Another lock is not re-entered.
	other := locktest.NewKey(t, k.Server)
	if hold := s.AcquireIn(t, ctx, other); hold.Count() != 1 {
		t.Errorf("the other lock is held %d times", hold.Count())
	} else {
		locktest.Release(t, hold)
	}
	locktest.Release(t, inner)
	if !outer.Valid() || outer.Context().Err() != nil {
		t.Error("the outer hold ended with the inner one")
	}
	locktest.Release(t, outer)
	if outer.Valid() || inner.Valid() {
		t.Error("a released hold is valid")
	}
	// The context of a released hold re-enters nothing; it is over.
	_, err = s.Lock(k.LockName).Acquire(outer.Context())
	locktest.IsError(t, err, lockkeeper.ErrNotHeld)
	k.IsFree(t)
}

func TestTheOuterHoldMayBeReleasedFirst(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	outer := s.Acquire(t, k)
	inner := s.AcquireIn(t, outer.Context(), k)
	locktest.Release(t, outer)
	if !inner.Valid() {
		t.Error("the inner hold ended with the outer one")
	}
	k.Do(t, "DEL", k.Name)
	// All that the watchdog ever gives: it has to ask Redis.
	locktest.IsError(t, inner.Ensure(locktest.Within(t), 29698*time.Millisecond), lockkeeper.ErrLost)
	if inner.Valid() {
		t.Error("a lost hold is valid")
	}
}

// After a downgrade the work goes on under the context of the read hold.
func TestDowngradeKeepsTheContext(t *testing.T) {
	s := locktest.Open(t, redistest.Shared(t).URL(), lockkeeper.Config{})
	ctx, lock := locktest.Within(t), s.ReadWriteLock(redistest.Name(t))
	writing, err := lock.Write().Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	reading, err := lock.Read().Acquire(writing.Context())
	if err != nil {
		t.Fatal(err)
	}
	work := reading.Context()
	if err := writing.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if work.Err() != nil {
		t.Errorf("the read hold lasts, and its context does not: %v", context.Cause(work))
	}
	if err := reading.Release(ctx); err != nil {
		t.Error(err)
	}
	if work.Err() == nil {
		t.Error("the context goes on after the last release")
	}
}
