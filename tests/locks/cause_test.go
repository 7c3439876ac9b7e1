package locks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// The cause with which a caller's context ends may wrap any error of Lockkeeper's, for example
// in an errgroup. It says nothing about the lock that is asked.

func TestElectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	held := s.Acquire(t, k)
	defer s.Release(t, held)
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Lock(k.LockName).Elect(ctx, func(context.Context) error { return nil }) }()
	s.AwaitWaiters(t, k, 1)
	cancel(fmt.Errorf("another: %w", lockkeeper.ErrUnavailable))
	select {
	case err := <-ended:
		if !errors.Is(err, lockkeeper.ErrUnavailable) {
			t.Error(err)
		}
	case <-time.After(redistest.Limit):
		t.Error("Elect has not returned")
	}
}

func TestReleaseWithACauseOfItsContext(t *testing.T) {
	t.Parallel()
	for _, why := range []error{lockkeeper.ErrCrashed, lockkeeper.ErrLost} {
		s, k := locktest.New(t, lockkeeper.Config{HandOffLimit: time.Nanosecond}) // so that the release asks Redis
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

// What ends the context of a Do that a hold was acquired beneath is no loss of the lock, and
// hides none that comes later.
func TestInnerHoldFollowsTheLossAlone(t *testing.T) {
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
		locktest.Force(t, s, k)
		select {
		case <-inner.Context().Done():
		case <-time.After(redistest.Limit):
			t.Error("the outer lock is lost, and the context of the inner goes on")
		}
		return nil
	})
	if !errors.Is(err, lockkeeper.ErrLost) {
		t.Error(err)
	}
}
