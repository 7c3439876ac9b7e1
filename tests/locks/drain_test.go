package locks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// drained are the methods that run work, each with a function that begins it and returns one that ends it. leads says
// that the work begins again after a loss.
var drained = map[string]struct {
	leads bool
	begin func(s *locktest.Site, lock *lockkeeper.Lock, do work, drain lockkeeper.WorkOption) (end func())
}{
	"Do": {begin: func(_ *locktest.Site, lock *lockkeeper.Lock, do work, drain lockkeeper.WorkOption) func() {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- lock.Do(ctx, do, drain) }()
		return func() { cancel(); <-ended }
	}},
	"Elect": {leads: true, begin: func(_ *locktest.Site, lock *lockkeeper.Lock, do work, drain lockkeeper.WorkOption) func() {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- lock.Elect(ctx, do, drain) }()
		return func() { cancel(); <-ended }
	}},
	"LeaderProps": {leads: true, begin: func(s *locktest.Site, lock *lockkeeper.Lock, do work, drain lockkeeper.WorkOption) func() {
		leader := s.Actors.Root.Spawn(lock.LeaderProps(func(term context.Context) *actor.Props {
			ended := make(chan struct{})
			return actor.PropsFromFunc(func(c actor.Context) {
				switch c.Message().(type) {
				case *actor.Started:
					go func() {
						defer close(ended)
						_ = do(term)
					}()
				case *actor.Stopping:
					<-ended
				}
			})
		}, drain))
		return func() { _ = s.Actors.Root.StopFuture(leader).Wait() }
	}},
	"Spawn": {begin: func(s *locktest.Site, lock *lockkeeper.Lock, do work, drain lockkeeper.WorkOption) func() {
		pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if _, is := c.Message().(*actor.Started); is {
				lock.Spawn(c, do, drain)
			}
		}))
		return func() { _ = s.Actors.Root.StopFuture(pid).Wait() }
	}},
}

// A process that is cut from Redis ends its work while it still holds the lock, and a leader leads again later.
func TestDrain_EndsWorkWhileTheLockIsHeld(t *testing.T) {
	t.Parallel()
	for name, method := range drained {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := lockkeeper.Config{Watchdog: 6 * time.Second, CallTimeout: 500 * time.Millisecond}
			r := locktest.NewRemote(t, redistest.Shared(t), cfg)
			there := locktest.Open(t, r.Server.URL(), cfg)
			type ending struct {
				valid bool
				cause error
			}
			running, ended := make(chan bool, 10), make(chan ending, 10)
			end := method.begin(r.Site, r.Lock(r.LockName), func(ctx context.Context) error {
				running <- true
				<-ctx.Done()
				ended <- ending{lockkeeper.HoldFrom(ctx).Valid(), context.Cause(ctx)}
				return nil
			}, lockkeeper.WithDrain(2*time.Second))
			defer end()
			locktest.Await(t, "the work", running)
			r.Proxy.Freeze(true)
			next := locktest.AcquireSoon(t.Context(), there.Lock(r.LockName))
			if how := locktest.Await(t, "the end of the work", ended); !how.valid || !errors.Is(how.cause, lockkeeper.ErrLost) {
				t.Errorf("when the work is to end, the lock is held: %v; the cause is %v", how.valid, how.cause)
			}
			locktest.NotYet(t, next, "the lock is granted to another process")
			r.Proxy.Freeze(false)
			locktest.Release(t, locktest.Got(t, next).Hold)
			if method.leads {
				locktest.Await(t, "the next term", running)
			}
		})
	}
}

// A reply of Redis that comes so late that the drain can no longer be kept is not a mistake of the caller: the
// candidacy goes on.
func TestDrain_LateGrantIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := locktest.NewRemote(t, redistest.Shared(t), lockkeeper.Config{Watchdog: 10 * time.Second})
	r.ExpectGranted(t, r.Key) // the scripts are loaded
	lease, drain := lockkeeper.WithLease(2*time.Second), lockkeeper.WithDrain(1500*time.Millisecond)
	r.Proxy.Delay(300 * time.Millisecond)
	err := r.Lock(r.LockName).Do(t.Context(), func(context.Context) error { return nil }, lease, drain)
	if !errors.Is(err, lockkeeper.ErrUnavailable) || errors.Is(err, lockkeeper.ErrInvalid) {
		t.Errorf("Do returns %v", err)
	}
	led, ended := make(chan bool, 1), make(chan error, 1)
	resign := r.Lock(r.LockName).Lead(func(ctx context.Context) error {
		led <- true
		<-ctx.Done()
		return ctx.Err()
	}, lease, drain, lockkeeper.WithEnded(func(err error) { ended <- err }))
	redistest.Eventually(t, "the grant", func() bool { return r.Exists(t) }) // its reply is on its way
	r.Proxy.Delay(0)
	select {
	case <-led:
	case err := <-ended:
		t.Errorf("the candidacy has ended: %v", err)
	}
	locktest.OK(t, resign(t.Context()))
}

func TestDrain_RefusesWhatCannotBeKept(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{CallTimeout: 2 * time.Second})
	l, never := s.Lock(k.LockName), func(context.Context) error { t.Error("the work has begun"); return nil }
	for _, test := range []struct {
		drain time.Duration
		more  []lockkeeper.WorkOption
		words string
	}{
		{0, nil, "less than 17.698s"},
		{-time.Second, nil, "more than 0"},
		{18 * time.Second, nil, "less than 17.698s: Watchdog"},
		{time.Second, []lockkeeper.WorkOption{lockkeeper.WithLease(time.Second)}, ": the lease"},
		{time.Second, []lockkeeper.WorkOption{lockkeeper.WithMaxHold(time.Second)}, ": the max hold"},
	} {
		err := l.Do(t.Context(), never, append(test.more, lockkeeper.WithDrain(test.drain))...)
		locktest.IsError(t, err, lockkeeper.ErrInvalid, test.words)
	}
	permits := s.ExpirableSemaphore(k.LockName + " permits")
	locktest.Check(t, permits.SetPermits(t.Context(), 1))
	permit := locktest.Must(permits.Acquire(t.Context()))(t)
	if left := permit.Left(); left <= 0 || left > 30*time.Second {
		t.Errorf("of a permit, %v is left", left)
	}
	locktest.OK(t, permit.Release(t.Context()))
	var none *lockkeeper.Hold
	locktest.Equal(t, none.Left(), 0, "of no hold, %v is left, want %v")
}
