package kinds_test

// The fair lock when replies get lost, and beside waiters that are not ours.

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// What is done though nobody hears of it is done once.
func TestFairLostReplies(t *testing.T) {
	t.Parallel()
	locktest.Losing(t, scripts.SyncQueue, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		k, ctx := newFairKey(t, r.Server), r.Context(t)
		lose()
		hold := locktest.AcquireIn(t, ctx, k.of(r.Site))
		k.HeldBy(t, r.Site, "1")
		lose()
		r.Release(t, hold)
		k.awaitNothing(t)

		k.TakeAs(t, locktest.Redisson, time.Minute)
		lose()
		first, entry := k.enqueue(t, ctx, r.Site)
		k.awaitListener(t, entry)
		if line := k.line(t); len(line) != 1 {
			t.Errorf("one waiter, and the queue is %v", line)
		}
		second, _ := k.enqueue(t, ctx, r.Site)
		k.pass(t)
		hold = locktest.Got(t, first).Hold
		lose() // while it is passed on
		r.Release(t, hold)
		hold = locktest.Got(t, second).Hold
		k.HeldBy(t, r.Site, "1")
		r.Release(t, hold)
		k.awaitNothing(t)
	})
}

// A waiter that gives up while Redis is silent leaves its place in the queue.
func TestFairWaiterGivesUpWhileRedisIsSilent(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Watchdog: 2 * redistest.Limit, CallTimeout: 200 * time.Millisecond, Poll: 300 * time.Millisecond}
	r := locktest.Far(t, redistest.Shared(t), cfg)
	k := newFairKey(t, r.Server)
	hold := locktest.Acquire(t, k.of(r.Site))
	first, entry := k.enqueue(t, locktest.Within(t), locktest.Open(t, k.Server.URL(), cfg))
	r.Proxy.Freeze(true)
	_, err := k.of(r.Site).Acquire(locktest.Within(t), lockkeeper.WithWait(500*time.Millisecond))
	r.Proxy.Freeze(false)
	if !errors.Is(err, lockkeeper.ErrTimeout) && !errors.Is(err, lockkeeper.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	redistest.Eventually(t, "the first to be alone in the queue", func() bool { return slices.Equal(k.line(t), []string{entry}) })
	k.handOver(t, hold, first)
}

// Whoever finds the head dead wakes the next.
func TestFairDeadHeadIsFoundByAStranger(t *testing.T) {
	t.Parallel()
	waiter := locktest.Far(t, redistest.Shared(t), locktest.NoPolling)
	k := newFairKey(t, waiter.Server)
	k.stand(t, locktest.Redisson)
	tries := counted(waiter.Proxy, redistest.Script(scripts.SyncQueue.SHA))
	granted, entry := k.enqueue(t, locktest.Within(t), waiter.Site)
	k.awaitListener(t, entry)
	redistest.Eventually(t, "the try after that", func() bool { return tries.Load() >= 2 })
	locktest.Pending(t, granted, "another is first")
	k.Do(t, "ZADD", k.timeouts, fmt.Sprint(k.now(t)-1), locktest.Redisson)
	locktest.Refused(t, lockkeeper.ErrHeld, k.of(locktest.Open(t, k.Server.URL(), locktest.NoPolling)))
	k.handOver(t, locktest.Got(t, granted).Hold) // which does not look by itself
}

// A foreign head that does not come keeps its place until its timeout, and no longer. If
// nobody can tell it, since its process is dead, it costs no more than one of ours, whatever
// its timeout; one without a timeout, which would stand there for ever, costs nothing.
func TestFairForeignHeadThatDoesNotCome(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	briefly := lockkeeper.Config{Poll: 200 * time.Millisecond, WaiterTimeout: time.Second}
	waited := func(cfg lockkeeper.Config, until int64) {
		t.Helper()
		hold := locktest.Acquire(t, k.of(locktest.Open(t, k.Server.URL(), cfg)))
		if early := until - k.now(t); early > 1 {
			t.Errorf("granted %d ms before the foreign waiter's time was over", early)
		}
		if line := k.line(t); len(line) != 0 {
			t.Errorf("the queue is %v", line)
		}
		k.handOver(t, hold)
	}
	k.stand(t, locktest.Redisson)
	until := k.now(t) + 1000
	k.Do(t, "ZADD", k.timeouts, fmt.Sprint(until), locktest.Redisson)
	waited(locktest.NoPolling, until)

	k.stand(t, locktest.Redisson) // for five minutes
	waited(briefly, k.now(t)+briefly.WaiterTimeout.Milliseconds())

	k.Do(t, "RPUSH", k.queue, locktest.Redisson)
	waited(locktest.NoPolling, 0)
}
