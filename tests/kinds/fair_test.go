package kinds_test

// The fair lock: the order of the grants, and the entries of its queue in Redis.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// All waiters are served in their order, although the queue in Redis has fewer entries than there are waiters.
func TestFair_ServesMoreWaitersThanEntries(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	hold := locktest.Acquire(t, k.of(s))
	const n, most = 150, 100
	var waiters []<-chan locktest.Grant
	for i := range n {
		waiters = append(waiters, locktest.AcquireSoon(locktest.Within(t), k.of(s)))
		locktest.AwaitWaiters(t, k.of(s), i+1)
	}
	k.awaitEntries(t, most)
	if entries := k.Number(t, "ZCARD", k.timeouts); entries != most {
		t.Errorf("%d timeouts for %d entries of the queue", entries, most)
	}
	for i, waiter := range waiters {
		locktest.Release(t, hold)
		hold = locktest.Got(t, waiter).Hold
		for _, later := range waiters[i+1:] {
			locktest.Pending(t, later, "an earlier waiter is granted the lock first")
		}
		if queue := k.entries(t); len(queue) > most {
			t.Fatalf("%d entries of one process in the queue", len(queue))
		}
	}
	locktest.Release(t, hold)
	k.awaitNothing(t)
}

// While nothing changes, each process polls once for all its waiters.
func TestFair_ProcessPollsOnceForAllItsWaiters(t *testing.T) {
	t.Parallel()
	const poll, processes, each, polls = 200 * time.Millisecond, 3, 5, 30
	for what, block := range map[string]func(t *testing.T, k fairKey){
		"held":                           func(t *testing.T, k fairKey) { k.TakeAs(t, locktest.Redisson, time.Minute) },
		"held without an end":            func(t *testing.T, k fairKey) { k.TakeAs(t, locktest.Redisson, -1) },
		"a dead foreign waiter is first": func(t *testing.T, k fairKey) { k.enqueueForeign(t, locktest.Redisson) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Start(t))
			block(t, k)
			foreign := len(k.entries(t))
			ctx, giveUp := context.WithCancel(locktest.Within(t))
			var waiting []<-chan locktest.Grant
			for _, s := range openSites(t, k.Key, lockkeeper.Config{Poll: poll}, processes) {
				for range each {
					waiting = append(waiting, locktest.AcquireSoon(ctx, k.of(s)))
				}
			}
			k.awaitEntries(t, foreign+len(waiting))
			calls := func() int64 {
				calls := k.Server.Calls(t)
				return calls["evalsha"] + calls["eval"]
			}
			k.Server.ResetStats(t)
			began := time.Now()
			redistest.Eventually(t, "some polls", func() bool { return calls() >= polls })
			passed, made := time.Since(began), calls()
			// The pauses are half of the poll bound at least; the rest is for the arrivals.
			if most := processes * (int64(passed/(poll/2)) + 6); made > most {
				t.Errorf("%d scripts within %v, more than %d", made, passed, most)
			}
			giveUp()
			for _, granted := range waiting {
				locktest.ExpectEnd(t, granted, context.Canceled)
			}
			k.awaitEntries(t, foreign)
		})
	}
}

// A waiter that gives up while Redis is silent removes its entry.
func TestFair_RemovesEntryOfWaiterThatGaveUpWhileRedisWasSilent(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Watchdog: 2 * redistest.Limit, CallTimeout: time.Second, Poll: 300 * time.Millisecond}
	r := locktest.NewRemote(t, redistest.Shared(t), cfg)
	k := newFairKey(t, r.Server)
	hold := locktest.Acquire(t, k.of(r.Site))
	first, entry := k.enqueue(t, locktest.Within(t), locktest.Open(t, k.Server.URL(), cfg))
	r.Proxy.Freeze(true)
	_, err := k.of(r.Site).Acquire(locktest.Within(t), lockkeeper.WithWait(500*time.Millisecond))
	r.Proxy.Freeze(false)
	if !errors.Is(err, lockkeeper.ErrTimeout) && !errors.Is(err, lockkeeper.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	redistest.Eventually(t, "the first to be alone in the queue", func() bool { return slices.Equal(k.entries(t), []string{entry}) })
	k.releaseInOrder(t, hold, first)
}

// A foreign head that does not take the lock keeps its entry until its timeout, and no longer. If its process is dead,
// so that no subscriber receives its notification, it costs at most as much as an entry of Lockkeeper, whatever its
// timeout. An entry without a timeout would stay for ever: it costs nothing.
func TestFair_SkipsForeignHeadAfterItsTimeout(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	briefly := lockkeeper.Config{Poll: 200 * time.Millisecond, WaiterTimeout: time.Second}
	waited := func(cfg lockkeeper.Config, until int64) {
		t.Helper()
		hold := locktest.Acquire(t, k.of(locktest.Open(t, k.Server.URL(), cfg)))
		if early := until - k.now(t); early > 1 {
			t.Errorf("granted %d ms before the timeout of the foreign waiter", early)
		}
		if queue := k.entries(t); len(queue) != 0 {
			t.Errorf("the queue is %v", queue)
		}
		k.releaseInOrder(t, hold)
	}
	k.enqueueForeign(t, locktest.Redisson)
	until := k.now(t) + 1000
	k.Do(t, "ZADD", k.timeouts, fmt.Sprint(until), locktest.Redisson)
	waited(locktest.NoPolling, until)

	k.enqueueForeign(t, locktest.Redisson) // for five minutes
	waited(briefly, k.now(t)+briefly.WaiterTimeout.Milliseconds())

	k.Do(t, "RPUSH", k.queue, locktest.Redisson)
	waited(locktest.NoPolling, 0)
}
