package expirable_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
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

// Never are more permits held than there are, whatever their leases, and none is lost. Among the waiters of a
// process, permits are mostly handed off without Redis.
func TestExpirable_NeverExceedsThePermits(t *testing.T) {
	t.Parallel()
	const n, processes, goroutines, rounds = 3, 3, 8, 30
	server, name := redistest.Start(t), redistest.Name(t)
	var inside atomic.Int64
	var all sync.WaitGroup
	var last *lockkeeper.ExpirableSemaphore
	for range processes {
		_, p := open(t, server.URL(), name, n, lockkeeper.Config{})
		for i := range goroutines {
			all.Go(func() {
				for range rounds {
					var options []lockkeeper.Option
					if i == 0 {
						options = append(options, lockkeeper.WithLease(time.Minute))
					}
					permit, err := p.Acquire(t.Context(), options...)
					if err != nil {
						t.Error(err)
						return
					}
					if now := inside.Add(1); now > n || !permit.Valid() {
						t.Errorf("%d hold a permit, and this one is valid: %v", now, permit.Valid())
					}
					inside.Add(-1)
					locktest.Check(t, permit.Release(t.Context()))
				}
			})
		}
		last = p
	}
	all.Wait()
	awaitPermits(t, last, n, 0)
}

// The permits of a process are handed off among its waiters in memory.
func TestExpirable_HandsOffInMemory(t *testing.T) {
	t.Parallel()
	const goroutines, rounds = 64, 200
	server, name := redistest.Start(t), redistest.Name(t)
	_, p := open(t, server.URL(), name, 10, lockkeeper.Config{})
	var all sync.WaitGroup
	server.ResetStats(t)
	for range goroutines {
		all.Go(func() {
			for range rounds {
				permit, err := p.Acquire(t.Context())
				if err == nil {
					err = permit.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if calls := server.Calls(t)["evalsha"]; calls > goroutines*rounds/4 {
		t.Errorf("%d commands for %d grants", calls, goroutines*rounds)
	}
	awaitPermits(t, p, 10, 0)
}

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
	waiter := soon(locktest.Within(t), there)
	other.AwaitWaiting(t, 1)
	first := ends(t, server, name)
	server.ResetStats(t)
	redistest.Eventually(t, "renewals", func() bool { return ends(t, server, name)[0].After(first[4]) })
	outlasts(t, s.System, name, watchdog*5/4) // without a renewal, a permit has expired by then
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
	if _, err := p.TrySetPermits(ctx, 9); err != nil {
		t.Fatal(err)
	}
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
	if _, err := r.Server.Do(t, "DEL", "{"+r.Name+"}:timeout").AsInt64(); err != nil {
		t.Fatal(err)
	}
	lost(deleted, messages.Reason_REASON_GONE)
	unnoticed := acquire(t, p, lockkeeper.WithLease(time.Minute)) // no command renews it
	if _, err := r.Server.Do(t, "DEL", "{"+r.Name+"}:timeout").AsInt64(); err != nil {
		t.Fatal(err)
	}
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

// A lost reply neither creates permits nor loses them.
func TestExpirable_LostReplyKeepsTheNumber(t *testing.T) {
	for name, script := range map[string]*scripts.Script{
		"acquire": scripts.ExpirableAcquire, "release": scripts.ExpirableRelease, "set": scripts.ExpirableSet, "renew": scripts.ExpirableRenew,
	} {
		for how, mode := range map[string]redistest.Mode{"lost": redistest.Lost, "silent": redistest.Silent} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				cfg := lockkeeper.Config{CallTimeout: locktest.Soon, Watchdog: time.Minute, Renewal: watchdog / 10}
				if mode == redistest.Silent {
					cfg.CallTimeout = time.Second // the duration of a lost command
				}
				r := locktest.NewRemote(t, redistest.Shared(t), cfg)
				p, ctx := r.ExpirableSemaphore(r.LockName), locktest.Within(t)
				loss := r.Proxy.DropRepliesTo(redistest.Script(script.SHA), 1, mode)
				locktest.Check(t, p.AddPermits(ctx, 3))
				held := []*lockkeeper.Permit{acquire(t, p), acquire(t, p)}
				awaitPermits(t, p, 1, 2)
				if name == "renew" {
					loss.Wait(t)
				}
				for _, permit := range held {
					locktest.Check(t, permit.Err())
				}
				for _, permit := range held {
					// A repeated release has little time left for its answer; it continues in the background.
					if err := permit.Release(ctx); err != nil && (mode == redistest.Lost || !errors.Is(err, lockkeeper.ErrUnavailable)) {
						t.Error(err)
					}
				}
				awaitPermits(t, p, 3, 0)
				loss.Wait(t)
			})
		}
	}
}

// The permits of a killed process expire after the TTL of the watchdog at most, and a waiter gets one without
// polling.
func TestExpirable_KilledHolderFreesItsPermits(t *testing.T) {
	t.Parallel()
	server, name := redistest.Shared(t), redistest.Name(t)
	_, p := open(t, server.URL(), name, 1, locktest.NoPolling)
	self := locktest.Must(os.Executable())(t)
	holder := exec.Command(self)
	holder.Env, holder.Stderr = append(os.Environ(), holderEnv+"="+server.URL()+" "+name), os.Stderr
	out, _ := holder.StdoutPipe()
	locktest.OK(t, holder.Start())
	defer func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	}()
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	waiter, before := soon(locktest.Within(t), p), ends(t, server, name)[0]
	redistest.Eventually(t, "renewals for longer than a lease", func() bool { return ends(t, server, name)[0].Sub(before) > watchdog*5/4 })
	locktest.NotYet(t, waiter, "granted although the holder lives")
	_ = holder.Process.Kill()
	locktest.Check(t, locktest.Await(t, "the permit", waiter))
	awaitPermits(t, p, 1, 0)
}

// Close gives back the permits of this process, and refuses its waiters.
func TestExpirable_CloseGivesBackPermits(t *testing.T) {
	t.Parallel()
	server, name := redistest.Shared(t), redistest.Name(t)
	s, p := open(t, server.URL(), name, 40, lockkeeper.Config{})
	_, there := open(t, server.URL(), name, 40, lockkeeper.Config{})
	var held []*lockkeeper.Permit
	for range 40 {
		held = append(held, acquire(t, p))
	}
	waiter := soon(locktest.Within(t), p)
	s.AwaitWaiting(t, 1)
	locktest.Stop(t, s)
	locktest.IsError(t, locktest.Await(t, "the refusal", waiter), lockkeeper.ErrClosed)
	locktest.IsError(t, held[0].Err(), lockkeeper.ErrClosed)
	locktest.Fails(p.TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrClosed)
	awaitPermits(t, there, 40, 0)
}

// An idle actor leaves, and the next one works with permits of its own.
func TestExpirable_IdleActorLeaves(t *testing.T) {
	t.Parallel()
	server, name := redistest.Shared(t), redistest.Name(t)
	s, p := open(t, server.URL(), name, 1, lockkeeper.Config{Idle: 10 * time.Millisecond})
	for range 3 {
		held := acquire(t, p)
		outlasts(t, s.System, name, 50*time.Millisecond) // it must not leave while it holds a permit
		if !held.Valid() {
			t.Error(held.Err())
		}
		before := s.Processes()
		release(t, held)
		redistest.Eventually(t, "the actor to leave", func() bool { return s.Processes() < before })
		locktest.IsError(t, held.Release(locktest.Within(t)), lockkeeper.ErrNotHeld)
	}
	awaitPermits(t, p, 1, 0)
}

// When Redis does not answer, Close ends with its context; the permits that it leaves expire.
func TestExpirable_CloseWithoutRedisEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := locktest.NewRemote(t, redistest.Shared(t), lockkeeper.Config{Watchdog: watchdog})
	r.SkipCloseCheck = true
	_, there := open(t, r.Server.URL(), r.LockName, 2, lockkeeper.Config{CallTimeout: locktest.Soon})
	p := r.ExpirableSemaphore(r.LockName)
	held, waiter := []*lockkeeper.Permit{acquire(t, p), acquire(t, p)}, soon(locktest.Within(t), p)
	r.AwaitWaiting(t, 1)
	r.Proxy.Freeze(true)
	locktest.InTime(t, "Close", func() {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closed: %v", err)
		}
	})
	locktest.IsError(t, locktest.Await(t, "the refusal", waiter), lockkeeper.ErrClosed)
	locktest.IsError(t, held[0].Err(), lockkeeper.ErrClosed)
	awaitPermits(t, there, 2, 0)
}

// A permit keeps its lease although each reply to a renewal comes after the next renewal is due, as in a process
// whose processors are busy.
func TestRenewal_KeepsLeaseWhenRepliesAreLate(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Watchdog: 4 * time.Second, Renewal: time.Second, CallTimeout: 100 * time.Millisecond}
	r := locktest.NewRemote(t, redistest.Shared(t), cfg)
	p := r.ExpirableSemaphore(r.LockName)
	redistest.Eventually(t, "the number of permits to be set", func() bool { return p.SetPermits(locktest.Within(t), 2) == nil })
	permits := []*lockkeeper.Permit{acquire(t, p), acquire(t, p)}
	r.Proxy.Delay(300 * time.Millisecond) // in each direction
	end := time.Now().Add(cfg.Watchdog * 3 / 2)
	redistest.Eventually(t, "a lease and a half to pass", func() bool { return time.Now().After(end) || permits[0].Err() != nil })
	r.Proxy.Delay(0)
	for _, permit := range permits {
		locktest.Check(t, permit.Err())
	}
}
