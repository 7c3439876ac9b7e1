package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Thousands of acquires that are cancelled at random moments leave nothing behind: not of
// locks that are free, held here, or held by somebody else, and not with lock actors that
// come and go.
func TestUnusedLocksLeaveNothingBehind(t *testing.T) {
	const (
		workers  = 50
		acquires = 100
		// standing bounds the goroutines that a system and its client keep: 24 workers,
		// and two for each of a few connections.
		standing = 24 + 10
	)
	s, here := locktest.Alone(t, lockkeeper.Config{Idle: 10 * time.Millisecond})
	server, foreign := here.Server, locktest.NewKey(t, here.Server)
	processes, goroutines := s.Processes(), runtime.NumGoroutine()
	hold := s.Acquire(t, here)
	foreign.TakeAs(t, locktest.Redisson, -1)

	var granted, cancelled atomic.Int64
	acquire := func(name string) {
		ctx, cancel := context.WithTimeout(context.Background(), rand.N(4*time.Millisecond))
		defer cancel()
		hold, err := s.Lock(name).Acquire(ctx)
		switch {
		case err == nil:
			granted.Add(1)
			if err := hold.Release(context.Background()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case errors.Is(err, context.DeadlineExceeded):
			cancelled.Add(1)
		default:
			t.Errorf("%s: %v", name, err)
		}
	}
	var storm sync.WaitGroup
	for range workers {
		storm.Go(func() {
			for range acquires {
				acquire([]string{here.LockName, foreign.LockName, "contended", fmt.Sprint("free ", rand.IntN(1000))}[rand.IntN(4)])
			}
		})
	}
	storm.Wait()
	if granted.Load() < 20 || cancelled.Load() < 500 {
		t.Errorf("%d granted, %d cancelled: the moments were not random enough", granted.Load(), cancelled.Load())
	}

	s.AwaitWaiters(t, here, 0)
	s.AwaitWaiters(t, foreign, 0)
	here.HeldBy(t, s, "1")
	if owners := foreign.Owners(t); len(owners) != 1 || owners[locktest.Redisson] != "1" {
		t.Errorf("%s is held by %v", foreign.Name, owners)
	}
	locktest.Release(t, hold)
	foreign.Unlock(t)
	redistest.Eventually(t, "keys and subscriptions to go", func() bool {
		return len(server.Channels(t)) == 0 && len(server.Keys(t, "*")) == 0
	})
	redistest.Eventually(t, "the lock actors to retire", func() bool { return s.Processes() == processes })
	redistest.Eventually(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines+standing })
	s.Passes(t, here)
	s.Passes(t, foreign)
}

func TestPassivationLosesNoRequest(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{Idle: 10 * time.Millisecond})
	ctx := locktest.Within(t)
	var work sync.WaitGroup
	for i := range 16 {
		work.Go(func() {
			for n := range 120 {
				hold, err := s.Lock(fmt.Sprint(k.LockName, i%4)).Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if err := hold.Release(ctx); err != nil {
					t.Error(err)
				}
				<-time.After(time.Duration(n%15) * time.Millisecond) // about as long as the actor may idle
			}
		})
	}
	work.Wait()
}

// Whoever waits is woken by his context, whatever the lock does, and told its cause; the
// others go on waiting.
func TestCancelledWithACause(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	hold := s.Acquire(t, k)
	why := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	failed := locktest.AcquireSoon(ctx, s.Lock(k.LockName))
	s.AwaitWaiters(t, k, 1)
	granted := s.AcquireSoon(t, k)
	s.AwaitWaiters(t, k, 2)
	cancel(why)
	err := locktest.Await(t, "the error", failed).Err
	if locktest.IsError(t, err, why) != messages.Reason_REASON_CANCELLED {
		t.Errorf("error %v, want the context's cause", err)
	}
	if _, err := s.Lock(k.LockName).TryAcquire(ctx); !errors.Is(err, why) {
		t.Errorf("error %v of a context that had ended, want its cause", err)
	}
	s.AwaitWaiters(t, k, 1)
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, granted).Hold)
	k.IsFree(t)
}

// An acquire that is under way when its context ends does not wait for Redis, and what it
// gets, now or by the command that is sent again, is given back.
func TestCancelledWhileUnderWay(t *testing.T) {
	t.Parallel()
	for what, begin := range map[string]func(r *locktest.Remote) (underWay func()){
		"granted": func(r *locktest.Remote) func() {
			r.Proxy.Delay(500 * time.Millisecond)
			return func() { redistest.Eventually(t, "Redis to grant the lock", func() bool { return r.Exists(t) }) }
		},
		"of unknown outcome": func(r *locktest.Remote) func() {
			loss := r.Proxy.DropRepliesTo(redistest.Script(scripts.Acquire.SHA), 1, redistest.Silent)
			return func() { loss.Wait(t) }
		},
	} {
		cfg := locktest.NoPolling
		cfg.CallTimeout = locktest.Soon
		if what != "granted" { // the command is sent again
			cfg = locktest.Impatient
		}
		r := locktest.Far(t, redistest.Shared(t), cfg)
		underWay := begin(r)
		ctx, cancel := context.WithCancel(context.Background())
		failed := locktest.AcquireSoon(ctx, r.Lock(r.LockName))
		underWay()
		cancel()
		if err := locktest.Await(t, "the error", failed).Err; !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", what, err)
		}
		if !r.Exists(t) {
			t.Errorf("%s: the acquire waited for Redis though its context had ended", what)
		}
		r.Proxy.Heal()
		r.AwaitFree(t)
	}
}

// The end of a context ends the wait that it was given for, neither the hold nor the work
// under it; nor does it keep a release from its way.
func TestContextEndsTheWaitAlone(t *testing.T) {
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
	locktest.Good(t, hold, inner)
	for _, h := range []*lockkeeper.Hold{inner, hold} {
		if err := h.Release(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	k.AwaitFree(t)
}

// A deadline that is over is a time-out, and keeps its own cause.
func TestDeadlineIsATimeout(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	defer s.Release(t, s.Acquire(t, k))
	why := errors.New("because")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Millisecond, why)
	defer cancel()
	for range 2 { // while it waits, and before
		_, err := s.Lock(k.LockName).Acquire(ctx)
		for _, want := range []error{lockkeeper.ErrTimeout, context.DeadlineExceeded, why} {
			if reason := locktest.IsError(t, err, want); reason != messages.Reason_REASON_TIMED_OUT {
				t.Errorf("reason %v", reason)
			}
		}
	}
}

// Cancel withdraws what an actor waits for, and nothing that it has.
func TestCancelByMessage(t *testing.T) {
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
