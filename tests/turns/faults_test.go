package turns_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// queued is a fenced lock with a holder, a process that is next in line, and one behind it.
type queued struct {
	locktest.Key
	proxy      *redistest.Proxy // between the next and Redis
	first      *lockkeeper.Hold
	next       *process
	last       *locktest.Site
	lastBecame <-chan locktest.Grant
}

func queue(t *testing.T, server *redistest.Server, cfg lockkeeper.Config) *queued {
	t.Helper()
	q := &queued{Key: locktest.NewKey(t, server)}
	url := server.URL()
	if !isCluster(t, server) { // whose clients would go past the proxy
		q.proxy = redistest.NewProxy(t, server.Addr())
		url = q.proxy.URL()
	}
	first := locktest.Open(t, server.URL(), cfg)
	q.last = locktest.Open(t, server.URL(), cfg)
	q.first = locktest.Acquire(t, first.FencedLock(q.LockName))
	q.next = startNext(t, url, q.LockName, cfg)
	q.awaitPlace(t, q.next.id)
	q.lastBecame = locktest.AcquireSoon(locktest.Within(t), q.last.FencedLock(q.LockName))
	q.awaitPlace(t, q.last.ID())
	return q
}

func isCluster(t *testing.T, server *redistest.Server) bool {
	t.Helper()
	info, err := server.Do(t, "INFO", "cluster").ToString()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(info, "cluster_enabled:1")
}

// awaitPlace waits until a System stands in the line, and hears of transfers.
func (q *queued) awaitPlace(t *testing.T, id string) {
	t.Helper()
	redistest.Eventually(t, "a place in the line", func() bool {
		place, err := q.Do(t, "HGET", redisio.WaitQueue(q.Name), id).ToString()
		words := strings.Fields(place)
		return err == nil && len(words) > 7 && words[7] == "1"
	})
}

// lastGets waits until the last has the lock, and lets go of it after others were looked at.
func (q *queued) lastGets(t *testing.T) (token int64) {
	t.Helper()
	hold := locktest.Got(t, q.lastBecame).Hold
	locktest.ExpectValid(t, hold)
	q.next.waitsStill(t)
	locktest.ExpectValid(t, hold)
	locktest.Release(t, hold)
	return hold.Token()
}

// nextGets does the same with the next.
func (q *queued) nextGets(t *testing.T) (token int64) {
	t.Helper()
	token = q.next.granted(t)
	locktest.Pending(t, q.lastBecame, "the next has the lock")
	q.next.release(t)
	return token
}

// Whatever befalls who is next in the line: the lock is not stuck, nobody has it beside another,
// tokens rise.
func TestWhoIsNext(t *testing.T) {
	polling := lockkeeper.Config{Watchdog: locktest.NoPolling.Watchdog, Poll: 500 * time.Millisecond}
	slowly := polling
	slowly.Poll = 3 * time.Second
	for what, c := range map[string]struct {
		cfg     lockkeeper.Config
		cluster bool
		// test gives the tokens in the order in which the lock was held.
		test func(t *testing.T, q *queued) []int64
	}{
		// The server knows, and the one behind gets the lock without looking.
		"killed": {locktest.NoPolling, false, func(t *testing.T, q *queued) []int64 {
			q.next.kill(t, q.Server)
			locktest.Release(t, q.first)
			return []int64{q.lastGets(t)}
		}},
		// Nobody knows, and its place costs the TTL of a transfer.
		"killed in a cluster": {polling, true, func(t *testing.T, q *queued) []int64 {
			q.next.kill(t, q.Server)
			locktest.Release(t, q.first)
			if left := q.Ttl(t); left > 2*polling.Poll {
				t.Errorf("the lock is left to a dead process for %v", left)
			}
			return []int64{q.lastGets(t)}
		}},
		"not told": {slowly, false, func(t *testing.T, q *queued) []int64 {
			q.proxy.DropMessages(true)
			locktest.Release(t, q.first)
			return []int64{q.nextGets(t), q.lastGets(t)}
		}},
		"told too late": {polling, false, func(t *testing.T, q *queued) []int64 {
			q.next.signal(t, redistest.SigPause)
			locktest.Release(t, q.first)
			hold := locktest.Got(t, q.lastBecame).Hold
			q.Server.ResetStats(t)
			q.next.signal(t, redistest.SigResume)
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
			if tokens := append([]int64{q.first.Token()}, c.test(t, q)...); !slices.IsSorted(tokens) || len(slices.Compact(slices.Clone(tokens))) != len(tokens) {
				t.Errorf("the tokens are %v, and must rise", tokens)
			}
		})
	}
}

// Processes differ in how often they look. Who looks seldom keeps its place beside who looks often,
// and has what it gets from that one for as long as it trusts it.
func TestTurnsOfUnequals(t *testing.T) {
	t.Parallel()
	often := lockkeeper.Config{Watchdog: locktest.NoPolling.Watchdog, Poll: 50 * time.Millisecond}
	hasty, k := locktest.New(t, often)
	slow, late := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), often)
	first := hasty.Acquire(t, k)
	granted := slow.AcquireSoon(t, k)
	q := &queued{Key: k}
	q.awaitPlace(t, slow.ID())
	entered := time.Now()
	after := late.AcquireSoon(t, k)
	q.awaitPlace(t, late.ID())
	redistest.Eventually(t, "more time than the hasty would wait for anybody", func() bool { return time.Since(entered) > 4*often.Poll })
	hasty.Release(t, first)
	hold := locktest.Got(t, granted).Hold
	if left := k.Ttl(t); left < locktest.NoPolling.Watchdog/2 {
		t.Errorf("Redis drops the lock in %v, long before its holder looks", left)
	}
	locktest.Pending(t, after, "another holds the lock")
	slow.Release(t, hold)
	late.Release(t, locktest.Got(t, after).Hold)
}

// A Redis that forgets the line as well as the lock lets everybody in, one after another.
func TestLineForgotten(t *testing.T) {
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
		case line := <-q.next.lines:
			if !strings.HasPrefix(line, "granted ") {
				t.Fatalf("the next says %q", line)
			}
			q.next.release(t)
		case <-time.After(redistest.Limit):
			t.Fatal("nobody gets the lock")
		}
	}
	q.AwaitFree(t)
}

// A full Redis has no room for places, and gives no lock that is free. Who has a place gets its turn.
func TestLineOfAFullRedis(t *testing.T) {
	t.Parallel()
	q := queue(t, redistest.Start(t), locktest.NoPolling)
	late := locktest.Open(t, q.Server.URL(), locktest.NoPolling).FencedLock(q.LockName)
	q.Do(t, "CONFIG", "SET", "maxmemory", "1")
	_, err := late.TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld, "is held by")
	_, err = late.Acquire(locktest.Within(t), lockkeeper.WithWait(100*time.Millisecond))
	locktest.IsError(t, err, lockkeeper.ErrTimeout, "is held by")
	patient := locktest.AcquireSoon(locktest.Within(t), late)
	q.AwaitSubscribers(t, 3)
	locktest.Release(t, q.first)
	q.nextGets(t)
	q.lastGets(t)
	q.IsFree(t)
	_, err = q.last.FencedLock(q.LockName).TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrUnavailable, "OOM")
	q.Do(t, "CONFIG", "SET", "maxmemory", "0")
	locktest.Release(t, locktest.Got(t, patient).Hold)
}

// Redis refuses to change the hold count, and to make the next the owner. The last release frees the
// lock all the same, and the next hears of it.
func TestReleaseInSpiteOfRefusals(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Start(t))
	k.Do(t, "ACL", "SETUSER", "holder", "on", ">pw", "~*", "&*", "+@all")
	cfg := locktest.NoPolling
	cfg.CallTimeout = time.Second
	s, other := locktest.Open(t, locktest.URLAs(k.Server, "holder", "pw"), cfg), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	outer := s.Acquire(t, k)
	inner := s.AcquireIn(t, outer.Context(), k)
	next := other.AcquireSoon(t, k)
	(&queued{Key: k}).awaitPlace(t, other.ID())
	k.Do(t, "ACL", "SETUSER", "holder", "-hset")
	ctx := locktest.Within(t)
	_, again := s.Lock(k.LockName).Acquire(outer.Context())
	locktest.IsError(t, again, lockkeeper.ErrRejected, "the ACL user may not run a command")
	partial := make(chan error, 1)
	go func() { partial <- inner.Release(ctx) }()
	locktest.IsError(t, locktest.Await(t, "the answer to the partial release", partial), lockkeeper.ErrRejected, "the ACL user may not run a command")
	locktest.Release(t, outer)
	locktest.Release(t, locktest.Got(t, next).Hold)
	k.IsFree(t)
}
