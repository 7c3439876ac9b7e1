package semaphore_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// logLines gets the lines of a log.
type logLines chan string

func (l logLines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// warnings are the lines so far that say that what is given back is rejected.
func (l logLines) warnings() (n int) {
	for len(l) > 0 {
		if strings.Contains(<-l, "Redis rejects what is given back") {
			n++
		}
	}
	return n
}

// leaveRejected has a call's context end before Redis has answered, and Redis reject the call's command: the user lacks
// those rights.
func leaveRejected(t *testing.T, s *locktest.Remote, what string, rights ...string) {
	t.Helper()
	s.Proxy.Freeze(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	locktest.IsError(t, numberCalls[what].call(ctx, s), context.DeadlineExceeded)
	locktest.OK(t, s.Do(t, append([]string{"ACL", "SETUSER", "default"}, rights...)...).Error())
	s.Proxy.Freeze(false)
}

func awaitRejection(t *testing.T, k locktest.Key) {
	t.Helper()
	redistest.Eventually(t, "a rejection", func() bool { return len(locktest.Must(k.Do(t, "ACL", "LOG").ToArray())(t)) > 0 })
}

func allowAll(t *testing.T, k locktest.Key) {
	t.Helper()
	locktest.OK(t, k.Do(t, "ACL", "SETUSER", "default", "+@all").Error())
}

// The caller of a release or a count-down waits no longer when Redis rejects it. It goes on in the background, since
// the caller must not repeat it, and the log says so once.
func TestCounts_LeftByTheirCallerGoOnAfterARejection(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"release", "count-down"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			log := make(logLines, 1000)
			s := locktest.NewRemote(t, redistest.Start(t), lockkeeper.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
			s.Do(t, "SET", s.LockName, "3")
			leaveRejected(t, s, what, "-evalsha", "-eval")
			warnings := 0
			redistest.Eventually(t, "the warning", func() bool {
				warnings += log.warnings()
				return warnings > 0
			})
			allowAll(t, s.Key)
			redistest.Eventually(t, "the effect", func() bool { return s.Number(t, "GET", s.LockName) == numberCalls[what].left })
			locktest.Check(t, s.Close(locktest.Within(t)))
			locktest.Equal(t, warnings+log.warnings(), 1, "%d warnings, want %d")
			locktest.Equal(t, s.Number(t, "GET", s.LockName), numberCalls[what].left, "the number is %d, want %d")
		})
	}
}

// A permit is granted to a request that has left, and Redis rejects the release that gives it back.
func TestSemaphore_PermitOfALeftRequestGoesBackAfterARejection(t *testing.T) {
	t.Parallel()
	faults := &locktest.FaultInjector{}
	k := locktest.NewKey(t, redistest.Start(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{}, faults.Middleware)
	k.Do(t, "SET", k.LockName, "1")
	goOn := leaveBeforeTheReply(t, faults, func(ctx context.Context) error { return s.Semaphore(k.LockName).Acquire(ctx, 1) })
	locktest.OK(t, k.Do(t, "ACL", "SETUSER", "default", "-incrby").Error())
	goOn()
	awaitRejection(t, k)
	allowAll(t, k)
	redistest.Eventually(t, "the permit to be free", func() bool { return k.Number(t, "GET", k.LockName) == 1 })
}

// A wait has nothing to give back when it passes a latch and its caller has left.
func TestLatch_LeftWaitCountsNothingDown(t *testing.T) {
	t.Parallel()
	faults, s, k := locktest.NewFaultInjector(t, lockkeeper.Config{})
	l := s.Latch(k.LockName)
	goOn := leaveBeforeTheReply(t, faults, func(ctx context.Context) error { return l.Wait(ctx) })
	expectClose(t, locktest.Open(t, k.Server.URL(), lockkeeper.Config{}).Latch(k.LockName), 3, true)
	goOn()
	expectCount(t, l, 3)
}

// leaveBeforeTheReply has a call's context end when Redis has answered, and before the lock actor knows that; goOn lets
// it know.
func leaveBeforeTheReply(t *testing.T, faults *locktest.FaultInjector, call func(ctx context.Context) error) (goOn func()) {
	t.Helper()
	stalled, goOn := faults.Stall("*kinds.Reply")
	t.Cleanup(goOn)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	called := locktest.Go(func() error { return call(ctx) })
	locktest.Await(t, "the reply", stalled)
	cancel()
	locktest.IsError(t, locktest.Await(t, "the call", called), context.Canceled)
	return goOn
}

// While Redis rejects what a process gives back, its other requests go on, and Close ends.
func TestSemaphore_RejectedReleaseHoldsUpNothing(t *testing.T) {
	t.Parallel()
	s := locktest.NewRemote(t, redistest.Start(t), lockkeeper.Config{Watchdog: locktest.Watchdog})
	s.SkipCloseCheck = true
	s.Do(t, "SET", s.LockName, "3")
	leaveRejected(t, s, "release", "-incrby")
	sem := s.Semaphore(s.LockName)
	for range 3 {
		locktest.OK(t, sem.TryAcquire(locktest.Within(t), 1))
	}
	locktest.OK(t, sem.Acquire(locktest.Within(t), 1)) // what is to be given back
	locktest.IsError(t, sem.Release(locktest.Within(t), 2), lockkeeper.ErrRejected)
	leaveRejected(t, s, "release")
	err := s.Close(locktest.Within(t))
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("closed: %v", err)
	}
	locktest.ExpectWords(t, err.Error(), "permits of a semaphore may stay taken")
}
