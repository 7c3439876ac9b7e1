package locks_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

var errWork = errors.New("the work has failed")

// Do runs the work under a lock of any kind, and gives the lock back however the work ends.
func TestDo(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	for _, lock := range []*lockkeeper.Lock{
		s.Lock(k.LockName), s.FencedLock("f" + k.LockName), s.FairLock("q" + k.LockName), s.ReadWriteLock("rw" + k.LockName).Read(),
		s.ReadWriteLock("rw" + k.LockName).Write(), lockkeeper.MultiLock(s.Lock("1"+k.LockName), s.Lock("2"+k.LockName)),
	} {
		for what, work := range map[string]struct {
			do   func(ctx context.Context, cancel func()) error
			want error
		}{
			"succeeds":  {func(context.Context, func()) error { return nil }, nil},
			"fails":     {func(context.Context, func()) error { return errWork }, errWork},
			"cancelled": {func(ctx context.Context, cancel func()) error { cancel(); <-ctx.Done(); return ctx.Err() }, context.Canceled},
			"panics":    {func(context.Context, func()) error { panic(errWork) }, errWork},
			"re-enters": {func(ctx context.Context, _ func()) error {
				return lock.Do(ctx, func(ctx context.Context) error {
					if n := lockkeeper.HoldFrom(ctx).Count(); n != 2 {
						t.Errorf("%s: the hold count is %d in Do within Do", lock.Name(), n)
					}
					return errWork
				})
			}, errWork},
		} {
			ctx, cancel := context.WithCancel(locktest.Within(t))
			err := func() (err error) {
				defer func() {
					if panicked := recover(); panicked != nil {
						err = panicked.(error)
					}
				}()
				return lock.Do(ctx, func(ctx context.Context) error {
					locktest.Good(t, lockkeeper.HoldFrom(ctx))
					return work.do(ctx, cancel)
				})
			}()
			cancel()
			if err != work.want { // itself: nothing is to be said of the release
				t.Errorf("%s: the work %s: %v, want %v", lock.Name(), what, err, work.want)
			}
			if status, err := lock.Inspect(locktest.Within(t)); err != nil || status.Locked {
				t.Errorf("%s: the work %s: locked afterwards: %v, %v", lock.Name(), what, status.Locked, err)
			}
		}
	}
}

// Without the lock there is no work.
func TestDoWithoutTheLock(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	defer s.Release(t, s.Acquire(t, k))
	err := s.Lock(k.LockName).Do(locktest.Within(t), func(context.Context) error {
		t.Error("the work was done without the lock")
		return nil
	}, lockkeeper.WithWait(0))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
}

// The work is told of a loss, and whoever called Do is, whatever the work makes of it: once.
func TestDoTellsOfALoss(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	for _, result := range []func(ctx context.Context) error{
		func(context.Context) error { return nil }, context.Cause, func(context.Context) error { return errWork },
	} {
		var returned error
		err := s.Lock(k.LockName).Do(locktest.Within(t), func(ctx context.Context) error {
			locktest.Force(t, s, k)
			locktest.Await(t, "the loss", ctx.Done())
			returned = result(ctx)
			return returned
		})
		locktest.IsError(t, err, lockkeeper.ErrLost)
		if returned != nil && !errors.Is(err, returned) || strings.Count(err.Error(), lockkeeper.ErrLost.Error()) != 1 {
			t.Errorf("the work returned %v, Do: %v", returned, err)
		}
	}
}

// A release that Redis does not confirm does not keep Do for as long as the lease lasts.
func TestDoIsBounded(t *testing.T) {
	t.Parallel()
	s, k := locktest.Alone(t, lockkeeper.Config{})
	s.Lame = true
	err := locktest.Limited(t, "the end of Do", func() error {
		return s.Lock(k.LockName).Do(context.Background(), func(context.Context) error {
			k.Server.Pause(t)
			return errWork
		})
	})
	k.Server.Resume(t)
	if !errors.Is(err, errWork) || !errors.Is(err, lockkeeper.ErrUnavailable) {
		t.Errorf("error %v, want that of the work and that of the release", err)
	}
}
