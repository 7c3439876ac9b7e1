package kinds_test

// The fair lock as a foreign client sees and uses it.

import (
	"context"
	"fmt"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// fairKey is a fair lock as a foreign client sees it.
type fairKey struct {
	locktest.Key
	queue, timeouts string
}

func newFairKey(t testing.TB, server *redistest.Server) fairKey {
	k := locktest.NewKey(t, server)
	return fairKey{k, "redisson_lock_queue:{" + k.Name + "}", "redisson_lock_timeout:{" + k.Name + "}"}
}

func (k fairKey) of(s *locktest.Site) *lockkeeper.Lock { return s.FairLock(k.LockName) }

// entries returns the entries of the queue in Redis.
func (k fairKey) entries(t testing.TB) []string {
	t.Helper()
	queue := locktest.Must(k.Do(t, "LRANGE", k.queue, "0", "-1").AsStrSlice())(t)
	return queue
}

func (k fairKey) awaitEntries(t testing.TB, n int) []string {
	t.Helper()
	var queue []string
	redistest.Eventually(t, fmt.Sprintf("%d in the queue", n), func() bool {
		queue = k.entries(t)
		return len(queue) == n
	})
	return queue
}

// enqueue acquires on a goroutine, and returns the request's entry in the queue.
func (k fairKey) enqueue(t testing.TB, ctx context.Context, s *locktest.Site, options ...lockkeeper.Option) (granted <-chan locktest.Grant, entry string) {
	t.Helper()
	n := len(k.entries(t))
	granted = locktest.AcquireSoon(ctx, k.of(s), options...)
	return granted, k.awaitEntries(t, n+1)[n]
}

// now is the time of the Redis server, in ms.
func (k fairKey) now(t testing.TB) int64 {
	t.Helper()
	clock := locktest.Must(k.Do(t, "TIME").AsIntSlice())(t)
	return clock[0]*1000 + clock[1]/1000
}

// timeout is when a waiter counts as dead, in ms; 0 if it has no timeout.
func (k fairKey) timeout(t testing.TB, owner string) int64 {
	t.Helper()
	score, err := k.Do(t, "ZSCORE", k.timeouts, owner).AsFloat64()
	if err != nil {
		return 0
	}
	return int64(score)
}

// awaitNothing waits until no key of the lock is left in Redis.
func (k fairKey) awaitNothing(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, "nothing to be left in Redis", func() bool {
		return k.Number(t, "EXISTS", k.Name, k.queue, k.timeouts) == 0
	})
}

// releaseInOrder releases the hold, and checks that the waiters are granted the lock in their order.
func (k fairKey) releaseInOrder(t testing.TB, hold *lockkeeper.Hold, waiters ...<-chan locktest.Grant) {
	t.Helper()
	locktest.Release(t, hold)
	for i, waiter := range waiters {
		next := locktest.Got(t, waiter).Hold
		for _, later := range waiters[i+1:] {
			locktest.Pending(t, later, "an earlier waiter is granted the lock first")
		}
		locktest.Release(t, next)
	}
	k.awaitNothing(t)
}

// javaWait is the timeout of an entry of Redisson's, in ms.
const javaWait = 300_000

// enqueueForeign puts a waiter of Redisson's at the end of the queue.
func (k fairKey) enqueueForeign(t testing.TB, owner string) {
	t.Helper()
	last := k.now(t)
	if queue := k.entries(t); len(queue) > 0 {
		last = k.timeout(t, queue[len(queue)-1])
	} else if left := k.Number(t, "PTTL", k.Name); left > 0 {
		last += left
	}
	k.Atomically(t, `redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2]) redis.call('RPUSH', KEYS[2], ARGV[2])`,
		[]string{k.timeouts, k.queue}, fmt.Sprint(last+javaWait), owner)
}
