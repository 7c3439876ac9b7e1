package kinds_test

// The fair lock: who is granted when, and what stands in its queue in Redis.

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// More wait than stand in the queue in Redis: all are served, in their order.
func TestFairMoreWaitersThanEntries(t *testing.T) {
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
	k.awaitLine(t, most)
	if entries := k.Number(t, "ZCARD", k.timeouts); entries != most {
		t.Errorf("%d timeouts for %d in the queue", entries, most)
	}
	for i, waiter := range waiters {
		locktest.Release(t, hold)
		hold = locktest.Got(t, waiter).Hold
		for _, later := range waiters[i+1:] {
			locktest.Pending(t, later, "it is not its turn")
		}
		if line := k.line(t); len(line) > most {
			t.Fatalf("%d waiters of one process in the queue", len(line))
		}
	}
	locktest.Release(t, hold)
	k.awaitNothing(t)
}

// The head has not heard that the lock is free, and gives up: it is for the next now.
func TestFairHeadThatGivesUpWakesTheNext(t *testing.T) {
	t.Parallel()
	r := locktest.Far(t, redistest.Shared(t), locktest.NoPolling)
	next := locktest.Far(t, r.Server, locktest.NoPolling)
	k := newFairKey(t, r.Server)
	hold := locktest.Acquire(t, k.of(locktest.Open(t, r.Server.URL(), locktest.NoPolling)))
	ctx, giveUp := context.WithCancel(locktest.Within(t))
	wait := func(ctx context.Context, r *locktest.Remote) <-chan locktest.Grant {
		tries := counted(r.Proxy, redistest.Script(scripts.SyncQueue.SHA))
		granted, entry := k.enqueue(t, ctx, r.Site)
		k.awaitListener(t, entry) // a try of its own after it has begun to listen would find the lock free
		redistest.Eventually(t, "two tries", func() bool { return tries.Load() >= 2 })
		return granted
	}
	head, second := wait(ctx, r), wait(locktest.Within(t), next)
	r.Proxy.DropMessages(true)
	locktest.Release(t, hold)
	locktest.Pending(t, head, "it was not told")
	locktest.Pending(t, second, "it is not its turn")
	giveUp()
	locktest.Ends(t, head, context.Canceled)
	locktest.Release(t, locktest.Got(t, second).Hold) // which does not look by itself
	k.awaitNothing(t)
}

// While nothing happens, each process looks once in a while, however many wait in it.
func TestFairWaitersDoNotSpin(t *testing.T) {
	t.Parallel()
	const poll, processes, each, looks = 200 * time.Millisecond, 3, 5, 30
	for what, block := range map[string]func(t *testing.T, k fairKey){
		"held":                     func(t *testing.T, k fairKey) { k.TakeAs(t, locktest.Redisson, time.Minute) },
		"held without an end":      func(t *testing.T, k fairKey) { k.TakeAs(t, locktest.Redisson, -1) },
		"a dead stranger is first": func(t *testing.T, k fairKey) { k.stand(t, locktest.Redisson) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Start(t))
			block(t, k)
			strangers := len(k.line(t))
			ctx, giveUp := context.WithCancel(locktest.Within(t))
			var waiting []<-chan locktest.Grant
			for _, s := range sites(t, k.Key, lockkeeper.Config{Poll: poll}, processes) {
				for range each {
					waiting = append(waiting, locktest.AcquireSoon(ctx, k.of(s)))
				}
			}
			k.awaitLine(t, strangers+len(waiting))
			calls := func() int64 {
				calls := k.Server.Calls(t)
				return calls["evalsha"] + calls["eval"]
			}
			k.Server.ResetStats(t)
			began := time.Now()
			redistest.Eventually(t, "some looks", func() bool { return calls() >= looks })
			passed, made := time.Since(began), calls()
			// The pauses are half of the poll bound at least; the rest is for the arrivals.
			if most := processes * (int64(passed/(poll/2)) + 6); made > most {
				t.Errorf("%d scripts within %v, more than %d", made, passed, most)
			}
			giveUp()
			for _, granted := range waiting {
				locktest.Ends(t, granted, context.Canceled)
			}
			k.awaitLine(t, strangers)
		})
	}
}

// With nothing but ended leases to move it on, a fair lock goes round in order; what Redis
// keeps is the lease of whom it was passed on to.
func TestFairLeasesEndInOrder(t *testing.T) {
	t.Parallel()
	const lease = 400 * time.Millisecond
	k := newFairKey(t, redistest.Shared(t))
	s := sites(t, k.Key, brisk, 2)
	hold := locktest.Acquire(t, k.of(s[0]))
	var waiters []<-chan locktest.Grant
	for i := range 4 {
		waiter, _ := k.enqueue(t, locktest.Within(t), s[i/2], lockkeeper.WithLease(lease)) // passed on here, and there
		waiters = append(waiters, waiter)
	}
	last, _ := k.enqueue(t, locktest.Within(t), s[0])
	locktest.Release(t, hold)
	for i, waiter := range waiters {
		leased := locktest.Got(t, waiter).Hold
		if ttl := k.Ttl(t); ttl > lease {
			t.Errorf("the TTL is %v, and the lease %v", ttl, lease)
		}
		locktest.EndedBy(t, leased, messages.Reason_REASON_EXPIRED)
		for _, later := range append(waiters[i+1:], last)[1:] {
			locktest.Pending(t, later, "it is not its turn")
		}
	}
	locktest.Release(t, locktest.Got(t, last).Hold)
	k.awaitNothing(t)
}

// Waiters that live keep their places for longer than a dead one would.
func TestFairEntriesAreKeptAlive(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Poll: 200 * time.Millisecond, WaiterTimeout: 2 * time.Second}
	k := newFairKey(t, redistest.Shared(t))
	s := sites(t, k.Key, cfg, 2)
	k.TakeAs(t, locktest.Redisson, time.Minute)
	first, entry := k.enqueue(t, locktest.Within(t), s[0])
	second, _ := k.enqueue(t, locktest.Within(t), s[1])
	line, began := k.line(t), k.timeout(t, entry)
	redistest.Eventually(t, "the patience to be over twice", func() bool {
		return k.lives(t, entry)-began > 2*cfg.WaiterTimeout.Milliseconds()
	})
	if now := k.line(t); !slices.Equal(now, line) {
		t.Fatalf("the queue was %v and is %v", line, now)
	}
	k.pass(t)
	k.handOver(t, locktest.Got(t, first).Hold, second)
}
