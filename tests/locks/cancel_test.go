package locks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The end of its context wakes a waiter, which gets the cause, also if the context had ended before; a deadline that
// has passed is a timeout as well.
func TestCancel_ReturnsCauseOfTheContext(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	lock := s.Lock(k.LockName)
	defer s.Release(t, s.Acquire(t, k))
	why := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	failed := locktest.AcquireSoon(ctx, lock)
	s.AwaitWaiters(t, k, 1)
	cancel(why)
	late, stop := context.WithTimeoutCause(context.Background(), 20*time.Millisecond, why)
	defer stop()
	for range 2 { // while it waits, and before
		if locktest.IsError(t, locktest.Await(t, "the error", failed).Err, why) != messages.Reason_REASON_CANCELLED {
			t.Error("cancelled for another reason")
		}
		failed = locktest.AcquireSoon(ctx, lock)
		_, err := lock.Acquire(late)
		for _, want := range []error{lockkeeper.ErrTimeout, context.DeadlineExceeded, why} {
			locktest.Equal(t, locktest.IsError(t, err, want), messages.Reason_REASON_TIMED_OUT, "reason %v")
		}
	}
}

// The end of a context ends only the wait for which it was passed, neither the hold nor the work under it; and it
// does not cancel the release.
func TestCancel_EndsOnlyTheWait(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	type key struct{}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), key{}, "value"), redistest.Limit)
	hold := s.AcquireIn(t, ctx, k)
	before := hold.Context()
	inner := s.AcquireIn(t, before, k)
	cancel()
	for _, work := range []context.Context{before, inner.Context()} {
		if _, bounded := work.Deadline(); work.Err() != nil || bounded || work.Value(key{}) != "value" {
			t.Errorf("the context of the work: error %v, with a deadline: %v, value %v", work.Err(), bounded, work.Value(key{}))
		}
	}
	locktest.ExpectValid(t, hold, inner)
	for _, h := range []*lockkeeper.Hold{inner, hold} {
		if err := h.Release(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	k.AwaitFree(t)
}

// Cancel withdraws the requests of an actor, and ends none of its holds.
func TestCancel_ByMessageEndsOnlyTheWait(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	p, other := s.Probe(t), s.Probe(t)
	hold := s.Acquire(t, k)
	for i, asks := range []*locktest.Probe{p, p, other} {
		asks.Send(&messages.Acquire{Lock: k.Message()})
		s.AwaitWaiters(t, k, i+1)
	}
	p.Send(&messages.Cancel{Lock: k.Message()})
	for range 2 {
		if m := locktest.Next[*messages.NotAcquired](t, p); m.Reason != messages.Reason_REASON_CANCELLED {
			t.Errorf("answered %v", m)
		}
	}
	if m := locktest.Next[*messages.Cancelled](t, p); m.Withdrawn != 2 {
		t.Errorf("answered %v", m)
	}
	locktest.Release(t, hold)
	granted := locktest.Next[*messages.Acquired](t, other)
	if m := locktest.Ask[*messages.Cancelled](t, other, &messages.Cancel{Lock: k.Message()}); m.Withdrawn != 0 {
		t.Errorf("answered %v", m)
	}
	k.HeldBy(t, s, "1")
	locktest.Ask[*messages.Released](t, other, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
}

// The cause with which a caller's context ends may wrap any error of Lockkeeper's, for example in an errgroup. It
// says nothing about the lock of this call.

func TestRelease_IgnoresCauseOfItsContext(t *testing.T) {
	t.Parallel()
	for _, why := range []error{lockkeeper.ErrCrashed, lockkeeper.ErrLost} {
		s, k := locktest.New(t, lockkeeper.Config{HandOffLimit: time.Nanosecond}) // so that the release calls Redis
		hold := s.Acquire(t, k)
		next := s.AcquireSoon(t, k)
		s.AwaitWaiters(t, k, 1)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(why)
		err := hold.Release(ctx)
		granted := <-next
		if hold.Valid() || !errors.Is(hold.Err(), lockkeeper.ErrNotHeld) || !granted.Hold.Valid() {
			t.Errorf("release: %v; the old hold is valid: %v, and over because of %v; the next one is valid: %v",
				err, hold.Valid(), hold.Err(), granted.Hold.Valid())
		}
		s.Release(t, granted.Hold)
	}
}

// The cause of the context of an outer Do is not a loss of the lock, and does not hide a later loss.
func TestLoss_OnlyALossEndsInnerHolds(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	ctx, cancel := context.WithCancelCause(context.Background())
	err := s.Lock(k.LockName).Do(ctx, func(in context.Context) error {
		inner, err := s.Lock(k.LockName + " inner").Acquire(in)
		if err != nil {
			return err
		}
		defer func() { _ = inner.Release(context.Background()) }()
		cancel(fmt.Errorf("a third lock: %w", lockkeeper.ErrLost))
		<-in.Done()
		if why := context.Cause(inner.Context()); why != nil {
			t.Errorf("both locks are held, and the context of the inner is cancelled: %v", why)
		}
		locktest.ForceRelease(t, s.Lock(k.LockName), true)
		locktest.Await(t, "the end of the inner context, since the outer lock is lost", inner.Context().Done())
		return nil
	})
	if !errors.Is(err, lockkeeper.ErrLost) {
		t.Error(err)
	}
}
