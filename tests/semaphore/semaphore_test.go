package semaphore_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The behaviour of Redisson's semaphore, and its state in Redis, without its flaw: a TTL is kept.
func TestSemaphore_BehavesLikeRedissons(t *testing.T) {
	eachAPI(t, func(t *testing.T, _ *locktest.Site, k locktest.Key, f api) {
		ctx := locktest.Within(t)
		locktest.Fails(f.Available(ctx))(t, lockkeeper.ErrNoPermits)
		locktest.IsError(t, f.TryAcquire(ctx, 1), lockkeeper.ErrNoPermits)
		locktest.IsError(t, f.Acquire(ctx, 1), lockkeeper.ErrNoPermits)
		locktest.IsError(t, f.Release(ctx, 1), lockkeeper.ErrNoPermits)
		if done, err := f.ReleaseIfExists(ctx, 2); done || err != nil || k.Exists(t) {
			t.Errorf("released a semaphore that does not exist: %v, %v", done, err)
		}
		if done, err := f.TrySetPermits(ctx, 10, time.Hour); !done || err != nil {
			t.Errorf("set: %v, %v", done, err)
		}
		if done, err := f.TrySetPermits(ctx, 15, 0); done || err != nil {
			t.Errorf("set again: %v, %v", done, err)
		}
		locktest.OK(t, f.Acquire(ctx, 3))
		expectFree(t, f, 7)
		if n, err := f.Drain(ctx); n != 7 || err != nil {
			t.Errorf("drained %d, %v", n, err)
		}
		locktest.IsError(t, f.Acquire(ctx, 1, lockkeeper.WithWait(time.Second)), lockkeeper.ErrTimeout)
		locktest.OK(t, f.Release(ctx, 3))
		if done, err := f.ReleaseIfExists(ctx, 7); !done || err != nil {
			t.Errorf("released: %v, %v", done, err)
		}
		locktest.OK(t, f.AddPermits(ctx, -12))
		expectFree(t, f, -2)
		if n, err := f.Drain(ctx); n != -2 || err != nil {
			t.Errorf("drained %d, %v", n, err)
		}
		locktest.OK(t, f.AddPermits(ctx, 5))
		locktest.OK(t, f.TryAcquire(ctx, 1))
		if left := k.Number(t, "PTTL", k.LockName); left < 3000_000 || k.Do(t, "GET", k.LockName).Error() != nil {
			t.Errorf("the semaphore ends in %d ms", left)
		}
		locktest.IsError(t, f.AddPermits(ctx, 1<<31-1), lockkeeper.ErrRejected)
		locktest.Fails(f.TrySetPermits(ctx, -1, 0))(t, lockkeeper.ErrInvalid)
		locktest.IsError(t, f.Release(ctx, -1), lockkeeper.ErrInvalid)
	})
}

// Waiters are served in their order, by releases in any process; a request for many permits is not overtaken.
func TestSemaphore_ServesWaitersInOrder(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	f, other := s.Semaphore(k.LockName), locktest.Open(t, k.Server.URL(), locktest.NoPolling).Semaphore(k.LockName)
	ctx := locktest.Within(t)
	k.Do(t, "SET", k.LockName, "5")
	locktest.OK(t, f.Acquire(ctx, 3))
	many := acquireSoon(t, f, 4)
	awaitListeners(t, k, 1)
	locktest.IsError(t, f.TryAcquire(ctx, 1), lockkeeper.ErrHeld)
	one := acquireSoon(t, f, 1)
	s.AwaitWaiting(t, 2)
	locktest.OK(t, f.Release(ctx, 1)) // in this process, but not enough
	expectFree(t, f, 3)
	locktest.OK(t, other.Release(ctx, 1))
	locktest.OK(t, locktest.Await(t, "four permits", many))
	locktest.NotYet(t, one, "the later request was served")
	k.Atomically(t, "redis.call('PUBLISH', ARGV[1], redis.call('INCRBY', KEYS[1], 1))", []string{k.LockName}, "redisson_sc:{"+k.LockName+"}") // as Redisson
	locktest.OK(t, locktest.Await(t, "one permit", one))
	expectFree(t, f, 0)
}

// Never are more permits taken than there are, and none is lost, although processes compete.
func TestSemaphore_ProcessesNeverExceedThePermits(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	k := locktest.NewKey(t, server)
	k.Do(t, "SET", k.LockName, "4")
	var inside, most atomic.Int64
	var all sync.WaitGroup
	for range 3 {
		f := locktest.Open(t, server.URL(), lockkeeper.Config{}).Semaphore(k.LockName)
		for i := range 12 {
			all.Go(func() {
				for range 20 {
					n := 1 + i%2
					if err := f.Acquire(locktest.Within(t), n); err != nil {
						t.Error(err)
						return
					}
					if now := inside.Add(int64(n)); now > most.Load() {
						most.Store(now)
					}
					inside.Add(-int64(n))
					locktest.Check(t, f.Release(locktest.Within(t), n))
				}
			})
		}
	}
	all.Wait()
	if n := k.Number(t, "GET", k.LockName); n != 4 || most.Load() > 4 {
		t.Errorf("%d are free in the end, and up to %d were inside", n, most.Load())
	}
}

// A request that gives up, or whose sender dies, leaves neither an entry in the queue nor a taken permit.
func TestSemaphore_GiveUpTakesNothing(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	f, p := s.Semaphore(k.LockName), s.Probe(t)
	k.Do(t, "SET", k.LockName, "1")
	named := &messages.Semaphore{Name: k.LockName}
	locktest.Ask[*messages.PermitsAcquired](t, p, &messages.AcquirePermits{Semaphore: named})
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := locktest.Go(func() error { return f.Acquire(ctx, 1) })
	p.Send(&messages.AcquirePermits{Semaphore: named})
	s.AwaitWaiting(t, 2)
	awaitListeners(t, k, 1)
	cancel()
	locktest.IsError(t, locktest.Await(t, "the end", cancelled), context.Canceled)
	p.Send(&messages.CancelPermits{Semaphore: named})
	for range 2 { // in any order
		switch m := (<-p.Mail).(type) {
		case *messages.PermitsRefused:
			if m.Reason != messages.Reason_REASON_CANCELLED {
				t.Errorf("the request that was cancelled: %v", m)
			}
		case *messages.PermitsChanged:
			if !m.Done || m.Permits != 1 {
				t.Errorf("the cancel: %v", m)
			}
		default:
			t.Errorf("neither was answered: %T", m)
		}
	}
	p.Send(&messages.AcquirePermits{Semaphore: named})
	s.AwaitWaiting(t, 1)
	p.Die()
	if _, err := s.Actors.Root.RequestFuture(s.Guardian(), &messages.AcquirePermits{Semaphore: named}, time.Millisecond).Result(); err == nil {
		t.Error("a permit that is taken was granted")
	}
	locktest.OK(t, f.Release(locktest.Within(t), 1))
	redistest.Eventually(t, "the permit to be free", func() bool { return k.Number(t, "GET", k.LockName) == 1 })
}

// A sender on another node gets no permits: its death would go unnoticed.
func TestSemaphore_RefusesRemoteSenders(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	k.Do(t, "SET", k.LockName, "1")
	p, named := s.Probe(t), &messages.Semaphore{Name: k.LockName}
	s.SendAs(actor.NewPID("elsewhere:1", "one"), &messages.AcquirePermits{Semaphore: named})
	if m := locktest.Ask[*messages.PermitsChanged](t, p, &messages.InspectPermits{Semaphore: named}); m.Permits != 1 {
		t.Errorf("a request without a known sender has taken a permit: %v", m)
	}
	locktest.Ask[*messages.PermitsRefused](t, p, &messages.InspectPermits{})
}

// A name has one kind at a time: lock, expirable semaphore, semaphore or latch.
func TestName_HasOneKindAtATime(t *testing.T) {
	t.Parallel()
	uses := map[string]func(ctx context.Context, s *locktest.Site, name string) error{
		"lock": func(ctx context.Context, s *locktest.Site, name string) error {
			_, err := s.Lock(name).Acquire(ctx)
			return err
		},
		"permits": func(ctx context.Context, s *locktest.Site, name string) error {
			_, err := s.ExpirableSemaphore(name).TrySetPermits(ctx, 2)
			return err
		},
		"semaphore": func(ctx context.Context, s *locktest.Site, name string) error {
			_, err := s.Semaphore(name).TrySetPermits(ctx, 2, 0)
			return err
		},
		"latch": func(ctx context.Context, s *locktest.Site, name string) error {
			_, err := s.Latch(name).TrySetCount(ctx, 2)
			return err
		},
	}
	// Redis cannot tell the numbers of these kinds apart.
	givesBack := map[string]func(ctx context.Context, s *locktest.Site, name string) error{
		"permits": func(ctx context.Context, s *locktest.Site, name string) error {
			return s.ExpirableSemaphore(name).ReleaseID(ctx, strings.Repeat("0", 32))
		},
		"semaphore": func(ctx context.Context, s *locktest.Site, name string) error {
			return s.Semaphore(name).Release(ctx, 1)
		},
		"latch": func(ctx context.Context, s *locktest.Site, name string) error { return s.Latch(name).CountDown(ctx) },
	}
	for first, use := range uses {
		s, k := locktest.New(t, lockkeeper.Config{})
		if err := use(locktest.Within(t), s, k.LockName); err != nil {
			t.Fatal(first, err)
		}
		for second, giveBack := range givesBack {
			if first != "lock" && second != first {
				locktest.IsError(t, giveBack(locktest.Within(t), s, k.LockName), lockkeeper.ErrInvalid)
				locktest.Equal(t, k.Number(t, "GET", k.LockName), 2, "the number is %d")
			}
		}
		for second, misuse := range uses {
			locks := first == "permits" && second == "lock" // an idle one makes room for the other
			if second != first && !locks {
				locktest.IsError(t, misuse(locktest.Within(t), s, k.LockName), lockkeeper.ErrInvalid)
			}
		}
	}
}

// Permits can be released although a lock of that name was tried.
func TestSemaphore_ReleaseWorksAfterAnotherKind(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	k.Do(t, "SET", k.LockName, "1")
	if _, err := s.Lock(k.LockName).TryAcquire(locktest.Within(t)); err == nil {
		t.Fatal("the lock was granted under the name of a semaphore")
	}
	locktest.OK(t, s.Semaphore(k.LockName).Release(locktest.Within(t), 1))
	locktest.Equal(t, k.Number(t, "GET", k.LockName), 2, "%d are free")
}

// The name of an expirable semaphore can become the name of a semaphore: the commands of each have their own numbers.
func TestSemaphore_FollowsAnExpirableOne(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{Idle: 50 * time.Millisecond})
	ctx := locktest.Within(t)
	before := s.ExpirableSemaphore(k.LockName)
	locktest.Must(before.TrySetPermits(ctx, 1))(t)
	if permit, err := before.Acquire(ctx); err != nil {
		t.Fatal(err)
	} else {
		locktest.OK(t, permit.Release(ctx))
	}
	k.Do(t, "DEL", k.LockName, "{"+k.LockName+"}:timeout")
	redistest.Eventually(t, "the name to be idle", func() bool {
		_, err := s.Semaphore(k.LockName).TrySetPermits(ctx, 2, 0)
		return err == nil
	})
	locktest.OK(t, s.Semaphore(k.LockName).Acquire(ctx, 1))
	locktest.OK(t, s.Semaphore(k.LockName).Release(ctx, 1))
}

// A System lists the semaphores and latches that have waiters in it, by message or on a goroutine, and no others. If
// one cannot answer, the rest is listed.
func TestLocks_ListsSemaphoresAndLatchesWithWaiters(t *testing.T) {
	t.Parallel()
	faults, s, k := locktest.NewFaultInjector(t, locktest.NoPolling)
	semaphore, latch, p, ctx := s.Semaphore(k.LockName), s.Latch(k.LockName+" too"), s.Probe(t), locktest.Within(t)
	expectClose(t, latch, 1, true)
	k.Do(t, "SET", k.LockName, "0")
	began := time.Now()
	got, passed := acquireSoon(t, semaphore, 1), locktest.Go(func() error { return latch.Wait(ctx) })
	p.Send(&messages.AcquirePermits{Semaphore: &messages.Semaphore{Name: k.LockName}})
	p.Send(&messages.AwaitLatch{Latch: &messages.Latch{Name: k.LockName + " too"}})
	s.AwaitWaiting(t, 4)
	all := locktest.Must(s.Locks(ctx))(t)
	want := []lockkeeper.LockInfo{
		{Name: k.LockName, Kind: messages.Kind_KIND_SEMAPHORE, Waiters: 2},
		{Name: k.LockName + " too", Kind: messages.Kind_KIND_LATCH, Waiters: 2},
	}
	for i := range all {
		if waiting := all[i].Waiting; waiting <= 0 || waiting > time.Since(began) {
			t.Errorf("%+v, %v after the test began", all[i], time.Since(began))
		}
		all[i].Waiting = 0
	}
	if !slices.Equal(all, want) {
		t.Errorf("listed %+v, want %+v", all, want)
	}
	faults.Hit(locktest.Once("*request.Call"), nil)
	if all, err := s.Locks(ctx); len(all) != 1 || err != nil {
		t.Errorf("listed %+v, %v, while one of two crashes", all, err)
	}
	locktest.OK(t, semaphore.Release(ctx, 2))
	locktest.OK(t, locktest.Await(t, "the permit", got))
	locktest.OK(t, latch.CountDown(ctx))
	locktest.OK(t, locktest.Await(t, "the latch to open", passed))
	s.AwaitWaiting(t, 0)
	if all, err := s.Locks(ctx); err != nil || len(all) > 0 {
		t.Errorf("listed %+v, %v, want none", all, err)
	}
}
