package lockkeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMaxHoldEndsAHoldThatTheWatchdogWouldKeep(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	asked := time.Now()
	hold := s.acquire(t, k, lockkeeper.WithMaxHold(300*time.Millisecond))
	next := s.acquireSoon(t, k)
	<-hold.Context().Done()
	if held := time.Since(asked); held < 300*time.Millisecond {
		t.Errorf("ended after %v", held)
	}
	if cause := context.Cause(hold.Context()); !errors.Is(cause, lockkeeper.ErrLost) {
		t.Errorf("the cause is %v", cause)
	}
	isError(t, hold.Release(within(t)), lockkeeper.ErrLost)
	release(t, got(t, next).hold) // long before the watchdog's TTL
	k.isFree(t)
}

func TestEnsureRenewsWhenTooLittleIsLeft(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{Watchdog: 10 * time.Second, Renewal: 5 * time.Second})
	hold := s.acquire(t, k)
	redistest.Eventually(t, "some of the lease is used up", func() bool {
		left, err := k.server.Do(t, "PTTL", k.name).AsInt64()
		return err == nil && left < 9500
	})
	if err := hold.Ensure(within(t), 9800*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if left, err := k.server.Do(t, "PTTL", k.name).AsInt64(); err != nil || left < 9500 {
		t.Errorf("%d ms are left in Redis (%v)", left, err)
	}
	// 1 % and 2 ms less than the TTL is the most that can be had.
	isError(t, hold.Ensure(within(t), 9950*time.Millisecond), lockkeeper.ErrInvalid)
	release(t, hold)
	isError(t, hold.Ensure(within(t), time.Second), lockkeeper.ErrNotHeld)
}

func TestEnsureDoesNotRenewAFixedLease(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	hold := s.acquire(t, k, lockkeeper.WithLease(20*time.Second))
	if err := hold.Ensure(within(t), 10*time.Second); err != nil {
		t.Error(err)
	}
	isError(t, hold.Ensure(within(t), 25*time.Second), lockkeeper.ErrInvalid)
	release(t, hold)
}

func TestReentryFollowsTheCallTree(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	outer := s.acquire(t, k)
	// Deeper in the call tree, through contexts made on the way.
	ctx, cancel := context.WithTimeout(outer.Context(), redistest.Limit)
	defer cancel()
	inner := acquireIn(t, ctx, s, k)
	if inner.Count() != 2 {
		t.Errorf("held %d times", inner.Count())
	}
	// Another call, in the same goroutine even, is another holder.
	_, err := s.Lock(k.lock).TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrHeld)
	// Another lock is not re-entered.
	other := newKey(t, k.server)
	if hold := acquireIn(t, ctx, s, other); hold.Count() != 1 {
		t.Errorf("the other lock is held %d times", hold.Count())
	} else {
		release(t, hold)
	}
	release(t, inner)
	if !outer.Valid() || outer.Context().Err() != nil {
		t.Error("the outer hold ended with the inner one")
	}
	release(t, outer)
	if outer.Valid() || inner.Valid() {
		t.Error("a released hold is valid")
	}
	// The context of a released hold re-enters nothing; it is over.
	_, err = s.Lock(k.lock).Acquire(outer.Context())
	isError(t, err, lockkeeper.ErrNotHeld)
	k.isFree(t)
}

func TestTheOuterHoldMayBeReleasedFirst(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	outer := s.acquire(t, k)
	inner := acquireIn(t, outer.Context(), s, k)
	release(t, outer)
	if !inner.Valid() {
		t.Error("the inner hold ended with the outer one")
	}
	k.do(t, "DEL", k.name)
	// All that the watchdog ever gives: it has to ask Redis.
	isError(t, inner.Ensure(within(t), 29698*time.Millisecond), lockkeeper.ErrLost)
	if inner.Valid() {
		t.Error("a lost hold is valid")
	}
}

// After a downgrade the work goes on under the context of the read hold.
func TestDowngradeKeepsTheContext(t *testing.T) {
	s := open(t, redistest.Shared(t).URL(), lockkeeper.Config{})
	ctx, lock := within(t), s.ReadWriteLock(redistest.Name(t))
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
