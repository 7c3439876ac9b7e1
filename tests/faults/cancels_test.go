package faults_test

import (
	"context"
	"errors"
	"flag"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// cancels is smaller with the race detector, which takes at most 8,000 goroutines.
var cancels = flag.Int("cancels", map[bool]int{false: 30_000, true: 5000}[raceEnabled()], "how many waiters are cancelled at once")

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// contested is a lock or permit that the test holds, and that many requests wait for.
type contested struct {
	name string
	// take makes the test its holder. lost is closed at a loss; it is nil if the hold cannot be lost.
	take func(t *testing.T, s *locktest.Site, name string) (release func(context.Context) error, lost <-chan struct{})
	// wait waits, and gives back what it is granted.
	wait func(ctx context.Context, s *locktest.Site, name string) error
}

func contestedLock(name string, of func(*locktest.Site, string) *lockkeeper.Lock) contested {
	return contested{
		name: name,
		take: func(t *testing.T, s *locktest.Site, name string) (func(context.Context) error, <-chan struct{}) {
			hold := locktest.AcquireIn(t, locktest.Within(t), of(s, name))
			return hold.Release, hold.Context().Done()
		},
		wait: func(ctx context.Context, s *locktest.Site, name string) error {
			hold, err := of(s, name).Acquire(ctx)
			if err != nil {
				return err
			}
			return hold.Release(context.Background())
		},
	}
}

// readersBehindAWriter are granted the lock together if they still wait when the writer releases it.
func readersBehindAWriter() contested {
	readers := contestedLock("read", func(s *locktest.Site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Read() })
	readers.take = func(t *testing.T, s *locktest.Site, name string) (func(context.Context) error, <-chan struct{}) {
		hold := locktest.AcquireIn(t, locktest.Within(t), s.ReadWriteLock(name).Write())
		return hold.Release, hold.Context().Done()
	}
	return readers
}

var allContested = []contested{
	contestedLock("plain", func(s *locktest.Site, name string) *lockkeeper.Lock { return s.Lock(name) }),
	contestedLock("write", func(s *locktest.Site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Write() }),
	readersBehindAWriter(),
	contestedLock("fair", func(s *locktest.Site, name string) *lockkeeper.Lock { return s.FairLock(name) }),
	{
		name: "permits",
		take: func(t *testing.T, s *locktest.Site, name string) (func(context.Context) error, <-chan struct{}) {
			locktest.OK(t, s.ExpirableSemaphore(name).SetPermits(locktest.Within(t), 1))
			permit := locktest.Must(s.ExpirableSemaphore(name).Acquire(locktest.Within(t)))(t)
			return permit.Release, permit.Context().Done()
		},
		wait: func(ctx context.Context, s *locktest.Site, name string) error {
			permit, err := s.ExpirableSemaphore(name).Acquire(ctx)
			if err != nil {
				return err
			}
			return permit.Release(context.Background())
		},
	},
	{
		name: "semaphore",
		take: func(t *testing.T, s *locktest.Site, name string) (func(context.Context) error, <-chan struct{}) {
			locktest.Must(s.Semaphore(name).TrySetPermits(locktest.Within(t), 1, 0))(t)
			locktest.OK(t, s.Semaphore(name).Acquire(locktest.Within(t), 1))
			return func(ctx context.Context) error { return s.Semaphore(name).Release(ctx, 1) }, nil
		},
		wait: func(ctx context.Context, s *locktest.Site, name string) error {
			if err := s.Semaphore(name).Acquire(ctx, 1); err != nil {
				return err
			}
			return s.Semaphore(name).Release(context.Background(), 1)
		},
	},
	{
		name: "latch",
		take: func(t *testing.T, s *locktest.Site, name string) (func(context.Context) error, <-chan struct{}) {
			locktest.Must(s.Latch(name).TrySetCount(locktest.Within(t), 1))(t)
			return s.Latch(name).CountDown, nil
		},
		wait: func(ctx context.Context, s *locktest.Site, name string) error { return s.Latch(name).Wait(ctx) },
	},
}

// The holder of a lock or a permit can release it, and keeps it until then, although many waiters of its process are
// cancelled at the same time. Afterwards a second process is granted the lock or permit.
func TestCancel_ManyAtOnceKeepTheHold(t *testing.T) {
	for _, c := range allContested {
		t.Run(c.name, func(t *testing.T) {
			s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{QueueLimit: 2 * *cancels, Watchdog: redistest.Limit, CallTimeout: redistest.Limit / 4})
			release, lost := c.take(t, s, k.LockName)
			wait, cancel := context.WithCancel(context.Background())
			defer cancel()
			var waiters sync.WaitGroup
			for range *cancels {
				waiters.Go(func() {
					if err := c.wait(wait, s, k.LockName); err != nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
			}
			s.AwaitWaiting(t, *cancels)
			cancel()
			ctx, end := context.WithTimeout(context.Background(), redistest.Limit)
			defer end()
			locktest.NotYet(t, lost, "the hold is lost")
			if err := release(ctx); err != nil {
				t.Errorf("release: %v", err)
			}
			waiters.Wait()
			s.AwaitWaiting(t, 0)
			other := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
			if err := c.wait(ctx, other, k.LockName); err != nil {
				t.Errorf("another process: %v", err)
			}
		})
	}
}
