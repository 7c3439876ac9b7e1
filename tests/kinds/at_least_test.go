package kinds_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A job takes a moment, and the clocks of the four processes that start it differ by 50 ms. It runs once in each period,
// whether its process ends or goes on.
func TestAtLeast_JobRunsOnceInEachPeriod(t *testing.T) {
	t.Parallel()
	const minimum = 600 * time.Millisecond
	kinds := map[string]locktest.Kind{"MultiLock": func(s *locktest.Site, name string) *lockkeeper.Lock {
		return lockkeeper.MultiLock(s.Lock(name), s.FencedLock(name+" too"))
	}}
	for _, kind := range locktest.Words(locktest.HasMinimumTime) {
		kinds[kind] = locktest.Kinds[kind]
	}
	for kind, lock := range kinds {
		for _, closes := range []bool{false, true} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				url, name := redistest.Shared(t).URL(), redistest.Name(t)
				ran := 0
				try := func(s *locktest.Site) {
					err := lock(s, name).Do(t.Context(), func(context.Context) error { ran++; return nil },
						lockkeeper.WithWait(0), lockkeeper.WithAtLeast(minimum))
					if err != nil && !errors.Is(err, lockkeeper.ErrHeld) {
						t.Error(err)
					}
				}
				var sites []*locktest.Site
				for range 4 {
					sites = append(sites, locktest.Open(t, url, lockkeeper.Config{}))
				}
				for round := 1; round <= 2; round++ {
					began := time.Now()
					for i, s := range sites {
						try(s)
						if closes && i == 0 && round == 2 {
							locktest.Stop(t, s.System)
						}
						if i > 0 {
							try(s) // its clock is not that good
						}
					}
					if ran != round && time.Since(began) < minimum {
						t.Fatalf("it ran %d times in period %d", ran, round)
					}
					// The next period begins when a waiter gets the lock, after the minimum time.
					hold := locktest.Acquire(t, lock(sites[3], name))
					if took := time.Since(began); took < minimum {
						t.Errorf("the lock is free after %v", took)
					}
					locktest.Release(t, hold)
				}
			})
		}
	}
}

// A minimum time that cannot be kept is refused, by goroutine and by message.
func TestAtLeast_IsRefusedWhereItCannotBeKept(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	rw := s.ReadWriteLock(k.LockName)
	for what, acquire := range map[string]func(o ...lockkeeper.Option) error{
		"a reader": func(o ...lockkeeper.Option) error { _, err := rw.Read().Acquire(t.Context(), o...); return err },
		"a member": func(o ...lockkeeper.Option) error {
			_, err := lockkeeper.MultiLock(rw.Write()).Acquire(t.Context(), o...)
			return err
		},
		"a permit": func(o ...lockkeeper.Option) error {
			_, err := s.ExpirableSemaphore(k.LockName).Acquire(t.Context(), o...)
			return err
		},
		"a lease less": func(o ...lockkeeper.Option) error {
			_, err := s.Lock(k.LockName).Acquire(t.Context(), append(o, lockkeeper.WithLease(time.Minute-1))...)
			return err
		},
	} {
		if err := acquire(lockkeeper.WithAtLeast(time.Minute)); !errors.Is(err, lockkeeper.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, d := range []time.Duration{-1, 0, time.Millisecond, 1 << 62} {
		if _, err := s.Lock(k.LockName).Acquire(t.Context(), lockkeeper.WithAtLeast(d)); !errors.Is(err, lockkeeper.ErrInvalid) {
			t.Errorf("%v: %v", d, err)
		}
		m := &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(time.Hour), AtLeast: durationpb.New(d)}
		answer := locktest.Must(lockkeeper.Ask(t.Context(), s.Actors.Root, s.Guardian(), m))(t)
		if refusal, is := answer.(*messages.NotAcquired); !is || refusal.Reason != messages.Reason_REASON_INVALID {
			t.Errorf("%v: answered %v", d, answer)
		}
	}
}

// The process that has kept a lock does not take it for one that an earlier term has left behind: it would release it. A new
// lock actor handles the name.
func TestAtLeast_IsKeptAlsoFromItsOwnProcess(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{Idle: 10 * time.Millisecond})
	began, before := time.Now(), s.Processes()
	answer := locktest.Must(lockkeeper.Ask(t.Context(), s.Actors.Root, s.Guardian(),
		&messages.Acquire{Lock: k.Message(), MaxHold: durationpb.New(time.Hour), AtLeast: durationpb.New(500 * time.Millisecond)}))(t)
	locktest.Must(lockkeeper.Ask(t.Context(), s.Actors.Root, s.Guardian(), &messages.Release{Lock: k.Message(), HoldId: answer.(*messages.Acquired).HoldId}))(t)
	redistest.Eventually(t, "the lock actor to leave", func() bool { return s.Processes() == before })
	hold := locktest.Acquire(t, s.Lock(k.LockName))
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("it is free after %v", took)
	}
	locktest.Release(t, hold)
}

// A grant that no caller has got is given back at once: else the job would run in no process.
func TestAtLeast_IsNotKeptForACallerThatHasLeft(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := locktest.Open(t, proxy.URL(), lockkeeper.Config{})
	name := redistest.Name(t)
	locktest.Release(t, locktest.Acquire(t, s.Lock(name))) // so that Redis has the script
	held := proxy.Hold(redistest.Script(scripts.Acquire.SHA), redistest.Silent)
	asked := s.Actors.Root.RequestFuture(s.Guardian(), &messages.Acquire{
		Lock: &messages.Lock{Name: name}, MaxHold: durationpb.New(time.Hour), AtLeast: durationpb.New(time.Hour),
	}, 50*time.Millisecond)
	held.Wait(t)
	if answer, err := asked.Result(); err == nil {
		t.Fatalf("answered %v", answer)
	}
	server.ResetStats(t)
	held.Release(t)
	redistest.Eventually(t, "the grant to be given back", func() bool { return server.Calls(t)["evalsha"] >= 2 && len(server.Keys(t, name)) == 0 })
	locktest.ExpectGranted(t, s.Lock(name))
}

// A future re-enters the hold of an actor, and gives up before the answer. The minimum time of the actor's hold stays.
func TestAtLeast_StaysWhenAReentryIsGivenBack(t *testing.T) {
	t.Parallel()
	server, name := redistest.Start(t), redistest.Name(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s, other := locktest.Open(t, proxy.URL(), lockkeeper.Config{}), locktest.Open(t, server.URL(), lockkeeper.Config{})
	lock, answers := &messages.Lock{Name: name}, make(chan any, 10)
	owner := s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *messages.Acquire, *messages.Release:
			lockkeeper.Request(ctx, m)
		case *messages.Acquired, *messages.Released, *messages.NotAcquired, *messages.NotReleased:
			answers <- m
		}
	}))
	s.Actors.Root.Send(owner, &messages.Acquire{Lock: lock, AtLeast: durationpb.New(time.Minute)})
	granted, ok := (<-answers).(*messages.Acquired)
	if !ok {
		t.Fatal("not acquired")
	}
	held := proxy.Hold(redistest.Script(scripts.Acquire.SHA), redistest.Silent)
	asked := s.Actors.Root.RequestFuture(s.Guardian(), &messages.Acquire{Lock: lock, Owner: owner}, 50*time.Millisecond)
	held.Wait(t)
	if answer, err := asked.Result(); err == nil {
		t.Fatalf("answered %v", answer)
	}
	server.ResetStats(t)
	held.Release(t)
	redistest.Eventually(t, "the re-entry to be given back", func() bool { return server.Calls(t)["evalsha"] >= 2 })
	s.Actors.Root.Send(owner, &messages.Release{Lock: lock, HoldId: granted.HoldId})
	if released, ok := (<-answers).(*messages.Released); !ok {
		t.Fatalf("the release was answered %v", released)
	}
	if hold, err := other.Lock(name).TryAcquire(t.Context()); !errors.Is(err, lockkeeper.ErrHeld) {
		t.Errorf("another process has got %v, %v within the minimum time", hold, err)
	}
}
