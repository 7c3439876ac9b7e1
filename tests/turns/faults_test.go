package turns_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// queued is a fenced lock with a holder, and two processes in its wait queue: next and, after it, last.
type queued struct {
	locktest.Key
	proxy      *redistest.Proxy // between next and Redis
	first      *lockkeeper.Hold
	next       *process
	last       *locktest.Site
	lastBecame <-chan locktest.Grant
}

func queue(t *testing.T, server *redistest.Server, cfg lockkeeper.Config) *queued {
	t.Helper()
	q := &queued{Key: locktest.NewKey(t, server)}
	url := server.URL()
	if !isCluster(t, server) { // clients of a cluster would bypass the proxy
		q.proxy = redistest.NewProxy(t, server.Addr())
		url = q.proxy.URL()
	}
	first := locktest.Open(t, server.URL(), cfg)
	q.last = locktest.Open(t, server.URL(), cfg)
	q.first = locktest.Acquire(t, first.FencedLock(q.LockName))
	q.next = startNext(t, url, q.LockName, cfg)
	q.awaitEntry(t, q.next.id)
	q.lastBecame = locktest.AcquireSoon(locktest.Within(t), q.last.FencedLock(q.LockName))
	q.awaitEntry(t, q.last.ID())
	return q
}

func isCluster(t *testing.T, server *redistest.Server) bool {
	t.Helper()
	info := locktest.Must(server.Do(t, "INFO", "cluster").ToString())(t)
	return strings.Contains(info, "cluster_enabled:1")
}

// awaitEntry waits until a System has an entry in the wait queue, and has subscribed to transfers.
func (q *queued) awaitEntry(t *testing.T, id string) {
	t.Helper()
	redistest.Eventually(t, "an entry in the wait queue", func() bool {
		entry, err := q.Do(t, "HGET", keyspace.WaitQueue(q.Name), id).ToString()
		words := strings.Fields(entry)
		return err == nil && len(words) > 7 && words[7] == "1"
	})
}

// lastGets waits until last has the lock, and releases it after it has checked the others.
func (q *queued) lastGets(t *testing.T) (token int64) {
	t.Helper()
	hold := locktest.Got(t, q.lastBecame).Hold
	locktest.ExpectValid(t, hold)
	q.next.waitsStill(t)
	locktest.ExpectValid(t, hold)
	locktest.Release(t, hold)
	return hold.Token()
}

// nextGets does the same for next.
func (q *queued) nextGets(t *testing.T) (token int64) {
	t.Helper()
	token = q.next.granted(t)
	locktest.Pending(t, q.lastBecame, "the next has the lock")
	q.next.release(t)
	return token
}

// No fault of the next process in the queue blocks the lock, or lets two processes hold it; and tokens grow.
func TestWaitQueue_FaultOfTheHeadIsHarmless(t *testing.T) {
	polling := lockkeeper.Config{Watchdog: locktest.NoPolling.Watchdog, Poll: 500 * time.Millisecond}
	slowly := polling
	slowly.Poll = 3 * time.Second
	for what, c := range map[string]struct {
		cfg     lockkeeper.Config
		cluster bool
		// test returns the tokens in the order in which the lock was held.
		test func(t *testing.T, q *queued) []int64
	}{
		// The server notices, and the last process gets the lock without polling.
		"killed": {locktest.NoPolling, false, func(t *testing.T, q *queued) []int64 {
			q.next.kill(t, q.Server)
			locktest.Release(t, q.first)
			return []int64{q.lastGets(t)}
		}},
		// In a cluster no server notices, and the entry costs the TTL of a transfer.
		"killed in a cluster": {polling, true, func(t *testing.T, q *queued) []int64 {
			q.next.kill(t, q.Server)
			locktest.Release(t, q.first)
			if left := q.TTL(t); left > 2*polling.Poll {
				t.Errorf("the lock is left to a dead process for %v", left)
			}
			return []int64{q.lastGets(t)}
		}},
		"not notified": {slowly, false, func(t *testing.T, q *queued) []int64 {
			q.proxy.DropMessages(true)
			locktest.Release(t, q.first)
			return []int64{q.nextGets(t), q.lastGets(t)}
		}},
		"notified too late": {polling, false, func(t *testing.T, q *queued) []int64 {
			q.next.pause(t)
			locktest.Release(t, q.first)
			hold := locktest.Got(t, q.lastBecame).Hold
			q.Server.ResetStats(t)
			q.next.resume(t)
			redistest.Eventually(t, "the next to be refused", func() bool { return q.Server.Calls(t)["hmget"] > 1 })
			q.next.waitsStill(t)
			locktest.ExpectValid(t, hold)
			locktest.Release(t, hold)
			return []int64{hold.Token(), q.next.granted(t)}
		}},
		"by force": {locktest.NoPolling, false, func(t *testing.T, q *queued) []int64 {
			if was, err := q.last.FencedLock(q.LockName).ForceRelease(locktest.Within(t)); err != nil || !was {
				t.Fatalf("ForceRelease: %v, %v", was, err)
			}
			return []int64{q.nextGets(t), q.lastGets(t)}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start
			if c.cluster {
				server = func(t testing.TB, _ ...string) *redistest.Server { return redistest.Cluster(t, 1)[0] }
			}
			q := queue(t, server(t), c.cfg)
			if tokens := append([]int64{q.first.Token()}, c.test(t, q)...); !slices.IsSorted(tokens) ||
				len(slices.Compact(slices.Clone(tokens))) != len(tokens) {
				t.Errorf("the tokens are %v, and must grow", tokens)
			}
		})
	}
}

// Processes poll at different intervals. A process that polls rarely keeps its entry behind a process that polls often,
// and keeps the lock that this one transfers to it for as long as it trusts its lease.
func TestWaitQueue_RarePollerKeepsItsEntry(t *testing.T) {
	t.Parallel()
	often := lockkeeper.Config{Watchdog: locktest.NoPolling.Watchdog, Poll: 50 * time.Millisecond}
	hasty, k := locktest.New(t, often)
	slow, late := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), often)
	first := hasty.Acquire(t, k)
	granted := slow.AcquireSoon(t, k)
	q := &queued{Key: k}
	q.awaitEntry(t, slow.ID())
	entered := time.Now()
	after := late.AcquireSoon(t, k)
	q.awaitEntry(t, late.ID())
	redistest.Eventually(t, "more time than the entry timeout of the hasty process", func() bool { return time.Since(entered) > 4*often.Poll })
	hasty.Release(t, first)
	hold := locktest.Got(t, granted).Hold
	if left := k.TTL(t); left < locktest.NoPolling.Watchdog/2 {
		t.Errorf("Redis drops the lock in %v, long before its holder polls", left)
	}
	locktest.Pending(t, after, "another holds the lock")
	slow.Release(t, hold)
	late.Release(t, locktest.Got(t, after).Hold)
}

// When Redis loses the wait queue and the lock, all waiters get the lock, one after another.
func TestWaitQueue_ItsLossLetsAllIn(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Watchdog: locktest.Watchdog, Renewal: 100 * time.Millisecond, Poll: 500 * time.Millisecond}
	q := queue(t, redistest.Start(t), cfg)
	q.Server.Restart(t)
	locktest.EndedBy(t, q.first, messages.Reason_REASON_GONE, messages.Reason_REASON_TAKEN)
	for range 2 { // in either order
		select {
		case g := <-q.lastBecame:
			if g.Err != nil {
				t.Fatal(g.Err)
			}
			q.next.waitsStill(t)
			locktest.ExpectValid(t, g.Hold)
			locktest.Release(t, g.Hold)
			q.lastBecame = nil
		case line := <-q.next.output:
			if !strings.HasPrefix(line, "granted ") {
				t.Fatalf("the next process prints %q", line)
			}
			q.next.release(t)
		case <-time.After(redistest.Limit):
			t.Fatal("no process gets the lock")
		}
	}
	q.AwaitFree(t)
}

// A full Redis has no memory for new entries, and grants no free lock, unless the script has removed something before.
// Processes with an entry get the lock in their turn.
func TestWaitQueue_WorksWhileRedisIsFull(t *testing.T) {
	t.Parallel()
	q := queue(t, redistest.Start(t), locktest.NoPolling)
	late := locktest.Open(t, q.Server.URL(), locktest.NoPolling).FencedLock(q.LockName)
	q.Do(t, "CONFIG", "SET", "maxmemory", "1")
	locktest.Fails(late.TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrHeld, "the holder is")
	locktest.Fails(late.Acquire(locktest.Within(t), lockkeeper.WithWait(100*time.Millisecond)))(t, lockkeeper.ErrTimeout, "the holder is")
	locktest.Release(t, q.first)
	q.nextGets(t)
	q.lastGets(t)
	q.IsFree(t)
	locktest.Fails(q.last.FencedLock(q.LockName).TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrUnavailable, "OOM")
	patient := locktest.AcquireSoon(locktest.Within(t), late)
	locktest.Pending(t, patient, "Redis is full")
	q.Do(t, "CONFIG", "SET", "maxmemory", "0")
	locktest.Release(t, locktest.Got(t, patient).Hold)
}

// Redis refuses to change the hold count, and to make the next process the owner. The last release still frees the
// lock and notifies the next process.
func TestRelease_WorksWhenTransfersAreRefused(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Start(t))
	k.Do(t, "ACL", "SETUSER", "holder", "on", ">pw", "~*", "&*", "+@all")
	cfg := locktest.NoPolling
	cfg.CallTimeout = time.Second
	s, other := locktest.Open(t, locktest.URLAs(k.Server, "holder", "pw"), cfg), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	outer := s.Acquire(t, k)
	inner := s.AcquireIn(t, outer.Context(), k)
	next := other.AcquireSoon(t, k)
	(&queued{Key: k}).awaitEntry(t, other.ID())
	k.Do(t, "ACL", "SETUSER", "holder", "-hset")
	ctx := locktest.Within(t)
	_, again := s.Lock(k.LockName).Acquire(outer.Context())
	locktest.IsError(t, again, lockkeeper.ErrRejected, "the ACL user may not run a command")
	partial := locktest.Go(func() error { return inner.Release(ctx) })
	locktest.IsError(t, locktest.Await(t, "the answer to the partial release", partial), lockkeeper.ErrRejected, "the ACL user may not run a command")
	locktest.Release(t, outer)
	locktest.Release(t, locktest.Got(t, next).Hold)
	k.IsFree(t)
}
