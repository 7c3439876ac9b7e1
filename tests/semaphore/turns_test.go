package semaphore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// queues waits until so many processes have an entry in the wait queue, and listen.
func queues(t *testing.T, k locktest.Key, processes int64) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint(processes, " entries"), func() bool {
		return k.Number(t, "ZCOUNT", keyspace.WaitOrder(k.LockName), "0", "+inf") == processes
	})
}

// A release wakes the process that has waited for the longest, and no other, however many wait.
func TestSemaphore_ReleaseWakesTheFirstProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	k, ctx := locktest.NewKey(t, server), locktest.Within(t)
	giver := locktest.Open(t, server.URL(), locktest.NoPolling).Semaphore(k.LockName)
	k.Do(t, "SET", k.LockName, "0")
	const processes = 8
	var waiting []<-chan error
	for i := range processes {
		waiting = append(waiting, acquireSoon(t, locktest.Open(t, server.URL(), locktest.NoPolling).Semaphore(k.LockName), 1))
		queues(t, k, int64(i+1))
	}
	server.ResetStats(t)
	for i := range processes {
		locktest.OK(t, giver.Release(ctx, 1))
		locktest.OK(t, locktest.Await(t, fmt.Sprint("the permit of process ", i), waiting[i]))
		for _, later := range waiting[i+1:] {
			locktest.NotYet(t, later, "a later process was served")
		}
	}
	// Two for each grant; and tries when a subscription is confirmed, and records of the processes.
	if sent := server.Calls(t)["evalsha"]; sent > 4*processes {
		t.Errorf("%d scripts for %d grants", sent, processes)
	}
}

// A process that gives up wakes the process that it has kept waiting.
func TestSemaphore_GivingUpWakesTheNextProcess(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		giveUp func(*lockkeeper.System, context.CancelFunc)
		answer error
	}{
		"cancelled": {func(_ *lockkeeper.System, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"closed":    {func(s *lockkeeper.System, _ context.CancelFunc) { _ = s.Close(context.Background()) }, lockkeeper.ErrClosed},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := locktest.NewKey(t, redistest.Shared(t))
			first := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
			second := locktest.Open(t, k.Server.URL(), locktest.NoPolling).Semaphore(k.LockName)
			k.Do(t, "SET", k.LockName, "2")
			ctx, cancel := context.WithCancel(locktest.Within(t))
			defer cancel()
			many := locktest.Go(func() error { return first.Semaphore(k.LockName).Acquire(ctx, 3) })
			queues(t, k, 1)
			one := acquireSoon(t, second, 1)
			queues(t, k, 2)
			locktest.IsError(t, second.TryAcquire(locktest.Within(t), 1), lockkeeper.ErrHeld)
			test.giveUp(first.System, cancel)
			locktest.IsError(t, locktest.Await(t, "the end of the first request", many), test.answer)
			locktest.OK(t, locktest.Await(t, "a permit", one))
		})
	}
}

// A request for more permits than nine digits can count is not overtaken either, and is woken when they suffice.
func TestSemaphore_ManyPermitsKeepTheirPlace(t *testing.T) {
	t.Parallel()
	here, there, k := locktest.NewTwo(t, locktest.NoPolling)
	k.Do(t, "SET", k.LockName, "1400000000")
	many := acquireSoon(t, here.Semaphore(k.LockName), 1_500_000_000)
	queues(t, k, 1)
	locktest.IsError(t, there.Semaphore(k.LockName).TryAcquire(locktest.Within(t), 1), lockkeeper.ErrHeld)
	locktest.OK(t, there.Semaphore(k.LockName).Release(locktest.Within(t), 100_000_000))
	locktest.OK(t, locktest.Await(t, "the permits", many))
}

// A process that does not reach Redis when its last waiter leaves the wait queue does so later. Until then it would
// keep the permits, since it still listens for another semaphore.
func TestSemaphore_LeavesTheQueueAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := locktest.NewRemote(t, redistest.Shared(t), locktest.ShortCallTimeout)
	other := locktest.Open(t, s.Server.URL(), locktest.NoPolling).Semaphore(s.LockName)
	s.Do(t, "SET", s.LockName, "2")
	s.Do(t, "SET", s.LockName+" elsewhere", "0")
	ctx, cancel := context.WithCancel(locktest.Within(t))
	defer cancel()
	many := locktest.Go(func() error { return s.Semaphore(s.LockName).Acquire(ctx, 3) })
	queues(t, s.Key, 1)
	one := acquireSoon(t, other, 1)
	queues(t, s.Key, 2)
	elsewhere := acquireSoon(t, s.Semaphore(s.LockName+" elsewhere"), 1)
	s.Proxy.Refuse(true)
	cancel()
	locktest.IsError(t, locktest.Await(t, "the end of the first request", many), context.Canceled)
	locktest.Fails(s.Semaphore(s.LockName).Available(locktest.Within(t)))(t, lockkeeper.ErrUnavailable)
	s.Proxy.Refuse(false)
	locktest.OK(t, locktest.Await(t, "a permit", one))
	locktest.OK(t, s.Semaphore(s.LockName+" elsewhere").AddPermits(locktest.Within(t), 1))
	locktest.OK(t, locktest.Await(t, "a permit elsewhere", elsewhere))
}
