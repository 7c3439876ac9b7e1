package fair_test

// A fair lock as a foreign client sees it, and plays on it.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
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

func (k fairKey) fair() *messages.Lock {
	return &messages.Lock{Name: k.LockName, Kind: messages.Kind_KIND_FAIR}
}

// line is the queue in Redis.
func (k fairKey) line(t testing.TB) []string {
	t.Helper()
	line, err := k.Do(t, "LRANGE", k.queue, "0", "-1").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func (k fairKey) awaitLine(t testing.TB, n int) []string {
	t.Helper()
	var line []string
	redistest.Eventually(t, fmt.Sprintf("%d in the queue", n), func() bool {
		line = k.line(t)
		return len(line) == n
	})
	return line
}

// enqueue acquires on a goroutine, and gives the request's entry in the queue.
func (k fairKey) enqueue(t testing.TB, ctx context.Context, s *locktest.Site, options ...lockkeeper.Option) (granted <-chan locktest.Grant, entry string) {
	t.Helper()
	n := len(k.line(t))
	granted = locktest.AcquireSoon(ctx, k.of(s), options...)
	return granted, k.awaitLine(t, n+1)[n]
}

// now is Redis's clock, in ms.
func (k fairKey) now(t testing.TB) int64 {
	t.Helper()
	clock, err := k.Do(t, "TIME").AsIntSlice()
	if err != nil {
		t.Fatal(err)
	}
	return clock[0]*1000 + clock[1]/1000
}

// timeout is when a waiter counts as dead; 0 if it has no timeout.
func (k fairKey) timeout(t testing.TB, owner string) int64 {
	t.Helper()
	score, err := k.Do(t, "ZSCORE", k.timeouts, owner).AsFloat64()
	if err != nil {
		return 0
	}
	return int64(score)
}

// awaitEar waits until the waiter at the head of the queue listens, and can be told.
func (k fairKey) awaitEar(t testing.TB, owner string) {
	t.Helper()
	redistest.Eventually(t, "the head to listen", func() bool { return k.Server.Subscribers(t, k.Channel+":"+owner) == 1 })
}

// awaitNothing waits until the lock has left nothing in Redis.
func (k fairKey) awaitNothing(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, "nothing to be left in Redis", func() bool {
		return k.Number(t, "EXISTS", k.Name, k.queue, k.timeouts) == 0
	})
}

// The patience of Redisson's waiters, ms.
const javaWait = 300_000

// stand puts a waiter of Redisson's at the end of the queue.
func (k fairKey) stand(t testing.TB, owner string) {
	t.Helper()
	last := k.now(t)
	if line := k.line(t); len(line) > 0 {
		last = k.timeout(t, line[len(line)-1])
	} else if left := k.Number(t, "PTTL", k.Name); left > 0 {
		last += left
	}
	k.Do(t, "ZADD", k.timeouts, fmt.Sprint(last+javaWait), owner)
	k.Do(t, "RPUSH", k.queue, owner)
}

// attend has a waiter of Redisson's listen on its channel, as they all do.
func (k fairKey) attend(t testing.TB, owner string) {
	t.Helper()
	client, err := lockkeeper.Connect(k.Server.URL())
	if err != nil {
		t.Fatal(err)
	}
	connection, giveBack := client.Dedicate()
	t.Cleanup(func() { giveBack(); client.Close() })
	if err := connection.Do(locktest.Within(t), connection.B().Subscribe().Channel(k.Channel+":"+owner).Build()).Error(); err != nil {
		t.Fatal(err)
	}
}

// step has the head of the queue take the free lock, as Redisson does.
func (k fairKey) step(t testing.TB, owner string) {
	t.Helper()
	k.Atomically(t, `
		if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('LINDEX', KEYS[2], 0) ~= ARGV[1] then
			return redis.error_reply('ERR it is not the turn of ' .. ARGV[1])
		end
		redis.call('LPOP', KEYS[2])
		redis.call('ZREM', KEYS[3], ARGV[1])
		for _, other in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
			redis.call('ZINCRBY', KEYS[3], -ARGV[2], other)
		end
		redis.call('HSET', KEYS[1], ARGV[1], 1)
		redis.call('PEXPIRE', KEYS[1], 60000)`,
		[]string{k.Name, k.queue, k.timeouts}, owner, strconv.Itoa(javaWait))
}

// pass frees the lock and tells the head of the queue, as Redisson does.
func (k fairKey) pass(t testing.TB) {
	t.Helper()
	k.Atomically(t, `
		redis.call('DEL', KEYS[1])
		local head = redis.call('LINDEX', KEYS[2], 0)
		if head then redis.call('PUBLISH', KEYS[3] .. ':' .. head, '0') end`,
		[]string{k.Name, k.queue, k.Channel})
}

// turns has waiters of several sites queue up in a known order, and notes in which
// order they are served.
type turns struct {
	mu      sync.Mutex
	served  []int
	waiters sync.WaitGroup
}

func (k fairKey) queueUp(t *testing.T, sites []*locktest.Site, n int, arrived func(i int)) *turns {
	t.Helper()
	o := &turns{}
	for i := range n {
		s := sites[rand.IntN(len(sites))]
		o.waiters.Go(func() {
			hold, err := k.of(s).Acquire(locktest.Within(t))
			if err != nil {
				t.Error(err)
				return
			}
			o.mu.Lock()
			o.served = append(o.served, i)
			o.mu.Unlock()
			if err := hold.Release(locktest.Within(t)); err != nil {
				t.Error(err)
			}
		})
		arrived(i)
	}
	return o
}

func (o *turns) inOrder(t testing.TB, n int) {
	t.Helper()
	o.waiters.Wait()
	if len(o.served) != n || !slices.IsSorted(o.served) {
		t.Errorf("%d waiters, served in the order %v", n, o.served)
	}
}
