package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// numberCalls change a number in Redis. left is what is left of 3 after a call that has its effect but is
// refused: what it has taken is given back.
var numberCalls = map[string]struct {
	call func(ctx context.Context, s *locktest.Remote) error
	left int64
}{
	"release": {func(ctx context.Context, s *locktest.Remote) error { return s.Semaphore(s.LockName).Release(ctx, 1) }, 4},
	"add":     {func(ctx context.Context, s *locktest.Remote) error { return s.Semaphore(s.LockName).AddPermits(ctx, 1) }, 4},
	"drain": {func(ctx context.Context, s *locktest.Remote) error {
		_, err := s.Semaphore(s.LockName).Drain(ctx)
		return err
	}, 3},
	"acquire":    {func(ctx context.Context, s *locktest.Remote) error { return s.Semaphore(s.LockName).Acquire(ctx, 1) }, 3},
	"count-down": {func(ctx context.Context, s *locktest.Remote) error { return s.Latch(s.LockName).CountDown(ctx) }, 2},
	"add, with a lease": {func(ctx context.Context, s *locktest.Remote) error {
		return s.ExpirableSemaphore(s.LockName).AddPermits(ctx, 1)
	}, 4},
}

func evaluates(cmd []string) bool { return strings.HasPrefix(strings.ToLower(cmd[0]), "eval") }

// A command runs, its reply is lost, and its next try is rejected for a reason that does not pass, such as a changed
// password. The error does not say that nothing was done, and what was taken is given back.
func TestCounts_RejectedRepetitionMayHaveBeenCarriedOut(t *testing.T) {
	t.Parallel()
	for what, test := range numberCalls {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := locktest.NewRemote(t, redistest.Start(t), locktest.ShortCallTimeout)
			s.Do(t, "SET", s.LockName, "3")
			loss := s.Proxy.DropRepliesTo(evaluates, 1, redistest.Silent)
			done := make(chan error, 1)
			go func() { done <- test.call(locktest.Within(t), s) }()
			loss.Wait(t)
			locktest.OK(t, s.Do(t, "ACL", "SETUSER", "default", "-evalsha", "-eval").Error())
			err := <-done
			locktest.OK(t, s.Do(t, "ACL", "SETUSER", "default", "+@all").Error())
			want := lockkeeper.ErrUnavailable
			if what == "acquire" {
				want = lockkeeper.ErrRejected
			}
			locktest.IsError(t, err, want)
			redistest.Eventually(t, "the effect", func() bool { return s.Number(t, "GET", s.LockName) == test.left })
		})
	}
}

// A Drain that is refused after it has run, or whose caller has left, leaves a number below zero as it was. Otherwise
// there would be more permits than AddPermits has left.
func TestDrain_RefusedLeavesANegativeNumber(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		t.Run(map[bool]string{false: "refused", true: "left"}[leaves], func(t *testing.T) {
			t.Parallel()
			s := locktest.NewRemote(t, redistest.Start(t), locktest.ShortCallTimeout)
			s.Do(t, "SET", s.LockName, "-2")
			ctx, leave := context.WithCancel(locktest.Within(t))
			defer leave()
			loss := s.Proxy.DropRepliesTo(evaluates, 1, redistest.Silent)
			done := locktest.Go(func() error { _, err := s.Semaphore(s.LockName).Drain(ctx); return err })
			loss.Wait(t)
			want := lockkeeper.ErrUnavailable
			if leaves {
				leave()
				want = context.Canceled
			} else {
				locktest.OK(t, s.Do(t, "ACL", "SETUSER", "default", "-evalsha", "-eval").Error())
			}
			err := locktest.Await(t, "the answer", done)
			locktest.OK(t, s.Do(t, "ACL", "SETUSER", "default", "+@all").Error())
			locktest.IsError(t, err, want)
			redistest.Eventually(t, "the number from before", func() bool { return s.Number(t, "GET", s.LockName) == -2 })
		})
	}
}

// Close waits no longer for the reply to a command that has run. The error does not say that nothing was done.
func TestCounts_ClosedMayHaveBeenCarriedOut(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"release", "add", "count-down"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := locktest.NewRemote(t, redistest.Shared(t), lockkeeper.Config{CallTimeout: locktest.Soon})
			s.SkipCloseCheck = true
			s.Do(t, "SET", s.LockName, "3")
			loss := s.Proxy.DropRepliesTo(evaluates, 0, redistest.Silent)
			done := make(chan error, 1)
			go func() { done <- numberCalls[what].call(locktest.Within(t), s) }()
			loss.Wait(t)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Close(ended); err == nil {
				t.Error("Close does not say what remains")
			}
			locktest.IsError(t, <-done, lockkeeper.ErrUnavailable, "may have")
			redistest.Eventually(t, "the effect", func() bool { return s.Number(t, "GET", s.LockName) == numberCalls[what].left })
		})
	}
}

// A release of several permits is handed off to a local waiter in whole, or refused in whole.
func TestSemaphore_RefusedReleaseHandsOnNothing(t *testing.T) {
	t.Parallel()
	for what, refuse := range map[string]string{"no right": "ACL SETUSER default -incrby", "no number": "DEL NAME", "foreign": "SET NAME text"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			cfg := locktest.NoPolling
			cfg.HandOffLimit = locktest.Soon
			k, s := locktest.NewKey(t, server), locktest.Open(t, server.URL(), cfg)
			sem := s.Semaphore(k.LockName)
			k.Do(t, "SET", k.LockName, "3")
			locktest.OK(t, sem.Acquire(locktest.Within(t), 3))
			ctx, cancel := context.WithCancel(t.Context())
			first := locktest.Go(func() error { return sem.Acquire(ctx, 1) })
			awaitListeners(t, k, 1)
			second := locktest.Go(func() error { return sem.Acquire(ctx, 3) })
			redistest.Eventually(t, "two waiters", func() bool {
				locks, err := s.Locks(locktest.Within(t))
				return err == nil && len(locks) == 1 && locks[0].Waiters == 2
			})
			locktest.OK(t, server.Do(t, strings.Fields(strings.Replace(refuse, "NAME", k.LockName, 1))...).Error())
			if err := sem.Release(locktest.Within(t), 3); err == nil {
				t.Error("the release is not refused")
			}
			cancel()
			if err := locktest.Await(t, "the first waiter", first); err == nil {
				t.Error("a waiter was granted a part of a release that is refused")
			}
			locktest.Await(t, "the second waiter", second)
			locktest.OK(t, server.Do(t, "ACL", "SETUSER", "default", "+@all").Error())
		})
	}
}

// A release and a count-down whose contexts have ended come while Close waits for Redis: Close reports that they are
// lost, since their callers do not know.
func TestClose_ReportsWhatCameTooLate(t *testing.T) {
	t.Parallel()
	actors := quiet.ActorSystem()
	t.Cleanup(actors.Shutdown)
	for what, give := range map[string]func(ctx context.Context, s *lockkeeper.System) error{
		"permits": func(ctx context.Context, s *lockkeeper.System) error { return s.Semaphore("s").Release(ctx, 1) },
		"latch":   func(ctx context.Context, s *lockkeeper.System) error { return s.Latch("l").CountDown(ctx) },
		"message without a sender": func(_ context.Context, s *lockkeeper.System) error {
			actors.Root.Send(s.Guardian(), &messages.ReleasePermits{Semaphore: &messages.Semaphore{Name: "s"}})
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			server := redistest.Start(t)
			s := locktest.Must(lockkeeper.Open(locktest.Within(t), server.URL(), lockkeeper.WithActorSystem(actors)))(t)
			locktest.Must(s.Semaphore("s").TrySetPermits(t.Context(), 2, 0))(t)
			locktest.Must(s.Latch("l").TrySetCount(t.Context(), 2))(t)
			locktest.OK(t, s.Semaphore("s").Acquire(t.Context(), 1))
			locktest.Acquire(t, s.Lock("busy"))
			server.Do(t, "CLIENT", "PAUSE", "2000", "ALL")
			closed := make(chan error, 1)
			go func() { closed <- s.Close(locktest.Within(t)) }()
			redistest.Eventually(t, "the System to be closing", func() bool {
				_, err := s.Lock("another").TryAcquire(t.Context())
				return errors.Is(err, lockkeeper.ErrClosed)
			})
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			given := give(ended, s)
			if err := <-closed; err == nil && !errors.Is(given, lockkeeper.ErrClosed) {
				t.Errorf("the caller gets %v, and Close reports nothing", given)
			}
		})
	}
}
