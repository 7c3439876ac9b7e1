package semaphore_test

import (
	"context"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

// A wait has nothing to give back when it passes a latch and its caller has left.
func TestLatch_LeftWaitCountsNothingDown(t *testing.T) {
	t.Parallel()
	faults, s, k := locktest.NewFaultInjector(t, lockkeeper.Config{})
	l := s.Latch(k.LockName)
	goOn := leaveBeforeTheReply(t, faults, func(ctx context.Context) error { return l.Wait(ctx) })
	closes(t, locktest.Open(t, k.Server.URL(), lockkeeper.Config{}).Latch(k.LockName), 3, true)
	goOn()
	counts(t, l, 3)
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
