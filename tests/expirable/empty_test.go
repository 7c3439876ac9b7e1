package expirable_test

// Redis has lost its data: permits are refused with a reason of their own, or set again.

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// logs is the log of a System. It is safe for concurrent use.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}

// Without the number, requests are refused at once, also requests that could wait. This is logged once, and not
// if only the number is asked for. A late release does not create the semaphore.
func TestExpirable_RefusesWithoutANumber(t *testing.T) {
	t.Parallel()
	server, name := redistest.Start(t), redistest.Name(t)
	var log logs
	s, p := open(t, server.URL(), name, 10, lockkeeper.Config{Watchdog: locktest.Watchdog, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	semaphore := s.Semaphore(name + " too")
	locktest.Must(semaphore.TrySetPermits(locktest.Within(t), 10, 0))(t)
	held := acquire(t, p)
	locktest.OK(t, semaphore.Acquire(locktest.Within(t), 1))
	server.Do(t, "FLUSHALL")
	for what, count := range map[string]func(context.Context) (int, error){
		"available": p.Available, "acquired": p.Acquired, "total": p.Total, "available of the semaphore": semaphore.Available,
	} {
		if n, err := count(locktest.Within(t)); !errors.Is(err, lockkeeper.ErrNoPermits) {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
	for range 3 {
		locktest.Fails(p.Acquire(locktest.Within(t)))(t, lockkeeper.ErrNoPermits)
		locktest.Fails(p.TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrNoPermits)
		locktest.IsError(t, semaphore.Acquire(locktest.Within(t), 1), lockkeeper.ErrNoPermits)
		locktest.IsError(t, semaphore.TryAcquire(locktest.Within(t), 1), lockkeeper.ErrNoPermits)
	}
	_ = held.Release(locktest.Within(t)) // it may have been lost before
	locktest.IsError(t, semaphore.Release(locktest.Within(t), 1), lockkeeper.ErrNoPermits)
	if n, err := server.Do(t, "EXISTS", name, name+" too").AsInt64(); n != 0 || err != nil {
		t.Errorf("a late release has created %d semaphores, %v", n, err)
	}
	redistest.Eventually(t, "a log line", func() bool { return log.count("no number of permits is set") > 0 })
	locktest.Equal(t, log.count("level=WARN msg=\"no number of permits is set\""), 1, "it was logged %d times")
	locktest.Equal(t, log.count(" too\""), 0, "the first line is not of a request for permits")
}

// The number is set again once no permit from before is trusted. The permits of a System that still trusts them stay
// taken, and the permits of other Systems have been lost by then.
func TestExpirable_RestoresItsNumberAfterDataLoss(t *testing.T) {
	t.Parallel()
	const watchdog = 2 * time.Second
	server, name := redistest.Start(t), redistest.Name(t)
	cfg := lockkeeper.Config{Watchdog: watchdog, Poll: 200 * time.Millisecond}
	here, there := locktest.Open(t, server.URL(), cfg), locktest.Open(t, server.URL(), cfg)
	p, q := here.ExpirableSemaphore(name).WithTotal(2), there.ExpirableSemaphore(name).WithTotal(2)
	locktest.Must(p.TrySetPermits(locktest.Within(t), 2))(t)
	long, renewed := acquire(t, p, lockkeeper.WithLease(time.Minute)), acquire(t, q)
	server.Do(t, "FLUSHALL")
	lost := time.Now()
	locktest.Fails(p.Acquire(locktest.Within(t), lockkeeper.WithWait(watchdog/2)))(t, lockkeeper.ErrTimeout, "is being set")
	again := acquire(t, p)
	if after := time.Since(lost); after < watchdog {
		t.Errorf("a permit was granted %v after Redis had lost its data, before others could notice", after)
	}
	if renewed.Valid() {
		t.Error("a third permit is trusted")
	}
	locktest.IsError(t, renewed.Err(), lockkeeper.ErrLost)
	if !long.Valid() || !again.Valid() {
		t.Errorf("the permits are valid: %v, %v", long.Valid(), again.Valid())
	}
	awaitPermits(t, p, 0, 2)
	locktest.Fails(q.TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrHeld)
	for _, permit := range []*lockkeeper.Permit{long, again} {
		locktest.Check(t, permit.Release(locktest.Within(t)))
	}
	awaitPermits(t, p, 2, 0)
}

// After a second loss of the number, a System waits again: there may be permits that were taken since.
func TestExpirable_WaitsAfterEachDataLoss(t *testing.T) {
	t.Parallel()
	server, name := redistest.Start(t), redistest.Name(t)
	cfg := lockkeeper.Config{Watchdog: 2 * time.Second, Poll: 200 * time.Millisecond}
	here, there := locktest.Open(t, server.URL(), cfg), locktest.Open(t, server.URL(), cfg)
	here.SkipCloseCheck, there.SkipCloseCheck = true, true // their permits were deleted
	first := acquire(t, here.ExpirableSemaphore(name).WithTotal(1))
	server.Do(t, "DEL", name, keyspace.Taken(name)) // as Redisson's delete does
	second := acquire(t, there.ExpirableSemaphore(name).WithTotal(1))
	if first.Valid() && second.Valid() {
		t.Error("two permits of one are trusted")
	}
}

// Tries, which do not wait, set the number together, also if they are far apart.
func TestExpirable_RareTriesRestoreItsNumber(t *testing.T) {
	t.Parallel()
	const watchdog = time.Second
	server, name := redistest.Start(t), redistest.Name(t)
	p := locktest.Open(t, server.URL(), lockkeeper.Config{Watchdog: watchdog}).ExpirableSemaphore(name).WithTotal(1)
	locktest.Fails(p.TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrNoPermits)
	tried := time.Now()
	redistest.Eventually(t, "more than two Watchdogs to pass", func() bool { return time.Since(tried) > 2*watchdog+100*time.Millisecond })
	permit, err := p.TryAcquire(locktest.Within(t))
	locktest.OK(t, err)
	release(t, permit)
}

// restoring acquires a permit of one on a goroutine, and returns when the number waits to be set again.
func restoring(t *testing.T, server *redistest.Server, p *lockkeeper.ExpirableSemaphore) <-chan *lockkeeper.Permit {
	t.Helper()
	got, ctx := make(chan *lockkeeper.Permit, 1), locktest.Within(t)
	go func() {
		permit, err := p.WithTotal(1).Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- permit
	}()
	redistest.Eventually(t, "a wait for the number", func() bool { return restoreTTL(t, server, p.Name()) > 0 })
	return got
}

// restoreTTL is the TTL of a number that waits to be set again, less an hour. That ends a Watchdog after the wait.
func restoreTTL(t *testing.T, server *redistest.Server, name string) time.Duration {
	t.Helper()
	ttl := locktest.Must(server.Do(t, "PTTL", keyspace.Calls(name)+":restore").AsInt64())(t)
	return time.Duration(ttl)*time.Millisecond - time.Hour
}

// A snapshot that was made while the number waited to be set brings the time of that wait back, but not the permits
// that were taken after it.
func TestExpirable_WaitsAnewAfterASnapshot(t *testing.T) {
	t.Parallel()
	server, name := redistest.Start(t), redistest.Name(t)
	cfg := lockkeeper.Config{Watchdog: watchdog, Poll: 200 * time.Millisecond}
	here, there := locktest.Open(t, server.URL(), cfg), locktest.Open(t, server.URL(), cfg)
	here.SkipCloseCheck, there.SkipCloseCheck = true, true // their permits are lost
	waiter := restoring(t, server, here.ExpirableSemaphore(name))
	locktest.Check(t, server.Do(t, "SAVE").Error())
	first := <-waiter
	server.Kill(t)
	server.Restart(t)
	if restoreTTL(t, server, name) <= 0 {
		t.Log("this machine is so busy that the wait in the snapshot has expired")
	}
	if second := acquire(t, there.ExpirableSemaphore(name).WithTotal(1)); first.Valid() && second.Valid() {
		t.Error("two permits of one are trusted")
	}
}

// If permits vanish while the number waits to be set again, their holders may trust them for longer than that: here one
// that is cut off just before it would notice.
func TestExpirable_WaitsAnewAfterPermitsVanish(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	cfg := lockkeeper.Config{Watchdog: watchdog, Poll: 200 * time.Millisecond}
	here, there := locktest.NewRemote(t, server, cfg), locktest.Open(t, server.URL(), cfg)
	here.SkipCloseCheck, there.SkipCloseCheck = true, true // their permits are lost
	name, p := here.LockName, here.ExpirableSemaphore(here.LockName)
	locktest.Must(p.TrySetPermits(locktest.Within(t), 1))(t)
	first := acquire(t, p)
	server.Do(t, "DEL", name)
	waiter := restoring(t, server, there.ExpirableSemaphore(name))
	redistest.Eventually(t, "the end of the wait", func() bool { return restoreTTL(t, server, name) < watchdog*5/4 })
	here.Proxy.Freeze(true)
	server.Do(t, "DEL", keyspace.Taken(name))
	if second := <-waiter; first.Valid() && second.Valid() {
		t.Error("two permits of one are trusted")
	}
	here.Proxy.Freeze(false)
}

// A System may find out, by an extension, that Redis has lost a permit with a long lease, while it sets the number
// again with that permit. The permit goes back, and is not taken for the long lease.
func TestExpirable_RestoresNoPermitWithoutAHolder(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	here := locktest.NewRemote(t, server, lockkeeper.Config{Watchdog: watchdog, Poll: 200 * time.Millisecond})
	here.SkipCloseCheck = true // a permit is lost
	name, p := here.LockName, here.ExpirableSemaphore(here.LockName).WithTotal(2)
	locktest.Must(p.TrySetPermits(locktest.Within(t), 2))(t)
	long := acquire(t, p, lockkeeper.WithLease(time.Hour))
	server.Do(t, "FLUSHALL")
	waiter := acquireSoon(locktest.Within(t), p)
	redistest.Eventually(t, "a wait for the number", func() bool { return restoreTTL(t, server, name) > 0 })
	redistest.Eventually(t, "the end of the wait", func() bool { return restoreTTL(t, server, name) < watchdog*13/12 })
	block := func(on bool) { here.Proxy.Set(func(r *rig.Rules) { r.Up.Blocked = on }) }
	block(true) // so that the extension is sent between the next try and its reply, after which the number is restored
	redistest.Eventually(t, "a try", func() bool { return restoreTTL(t, server, name) < watchdog*11/12 })
	extended := locktest.Go(func() error { return long.Extend(locktest.Within(t), 2*time.Hour) })
	redistest.Eventually(t, "an extension", func() bool { return restoreTTL(t, server, name) < watchdog*10/12 })
	block(false)
	locktest.IsError(t, <-extended, lockkeeper.ErrLost)
	locktest.OK(t, <-waiter)
	awaitPermits(t, p, 2, 0)
}

func TestWithTotal_RefusesInvalidNumbers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{})
	for _, n := range []int{-1, 0, 1 << 31} {
		locktest.Fails(s.ExpirableSemaphore("a").WithTotal(n).Acquire(locktest.Within(t)))(t, lockkeeper.ErrInvalid)
	}
}
