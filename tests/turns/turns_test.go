// Package turns_test tests the order in which several processes are granted a lock.
package turns_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

const (
	// hold is longer than the hand-off limit: every hold is a turn.
	hold = 20 * time.Millisecond
	// away is the delay between the far process and Redis, in each direction.
	away = time.Millisecond
	// workers is the number of goroutines of each process.
	workers = 4
	// enough is the number of turns to count, from when each process has had a turn: before, some processes have no
	// competitors.
	enough = 60
	// maxRatio is the largest allowed ratio between the turns of two processes.
	maxRatio = 1.3
)

// register counts the turns of processes.
type register struct {
	t *testing.T

	mu      sync.Mutex
	holding int
	came    bool // all processes have had a turn
	all     int
	turns   []int
	done    chan struct{} // closed when enough turns are counted
}

func newRegister(t *testing.T, processes int) *register {
	return &register{t: t, turns: make([]int, processes), done: make(chan struct{})}
}

func (r *register) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// held is the work of a holder; it fails if another process holds the lock.
func (r *register) held(process int) {
	r.enter(process)
	<-time.After(hold)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holding--
}

func (r *register) enter(process int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holding++; r.holding > 1 {
		r.t.Error("two processes hold the lock")
	}
	if r.all == enough {
		return
	}
	r.turns[process]++
	if !r.came {
		if r.came = slices.Min(r.turns) > 0; r.came {
			clear(r.turns)
		}
		return
	}
	if r.all++; r.all == enough {
		close(r.done)
	}
}

// expectEqualTurns checks that all processes had about as many turns.
func expectEqualTurns(t *testing.T, turns []int) {
	t.Helper()
	if least, most := slices.Min(turns), slices.Max(turns); float64(most) > maxRatio*float64(least) {
		t.Errorf("the processes had %v turns: the largest number is more than %v times the smallest", turns, maxRatio)
	}
}

// nearAndFar returns processes and their lock. The last process is further away from Redis.
func nearAndFar(t *testing.T) ([]*locktest.Site, locktest.Key) {
	one, k := locktest.New(t, lockkeeper.Config{})
	far := locktest.NewRemote(t, k.Server, lockkeeper.Config{})
	far.Proxy.Delay(away)
	return []*locktest.Site{one, locktest.Open(t, k.Server.URL(), lockkeeper.Config{}), far.Site}, k
}

// takeTurns takes a lock repeatedly, until enough turns are counted.
func takeTurns(ctx context.Context, t *testing.T, r *register, process int, s *locktest.Site, kind, name string) {
	l := both(s, name)
	if kind != "MultiLock" {
		l = locktest.Kinds[kind](s, name)
	}
	for !r.over() {
		granted, err := l.Acquire(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		r.held(process)
		if err := granted.Release(ctx); err != nil {
			t.Error(err)
			return
		}
	}
}

// both is a MultiLock.
func both(s *locktest.Site, name string) *lockkeeper.Lock {
	return lockkeeper.MultiLock(s.Lock(name), s.FencedLock(name+" too"))
}

// contend lets workers of all processes take the lock until enough turns are counted.
func contend(t *testing.T, r *register, sites []*locktest.Site, kind, name string) *sync.WaitGroup {
	ctx, work := locktest.Within(t), &sync.WaitGroup{}
	for process, s := range sites {
		for range workers {
			work.Go(func() { takeTurns(ctx, t, r, process, s, kind, name) })
		}
	}
	return work
}

// Processes have equally many turns, at any distance from Redis.
func TestTurns_AreEqualForAllProcesses(t *testing.T) {
	for _, kind := range append(locktest.Words(locktest.Exclusive), "MultiLock") {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			sites, k := nearAndFar(t)
			r := newRegister(t, len(sites))
			contend(t, r, sites, kind, k.LockName).Wait()
			expectEqualTurns(t, r.turns)
			k.AwaitFree(t)
		})
	}
}

// A client like Redisson's, without an entry in the wait queue, has its share of turns, and leaves the others theirs.
// Between its release and its next try it does not wait, so it may have fewer turns.
func TestTurns_ForeignClientHasItsShare(t *testing.T) {
	t.Parallel()
	sites, k := nearAndFar(t)
	r := newRegister(t, len(sites)+1)
	work := contend(t, r, sites, "plain", k.LockName)
	foreign := newForeign(t, k)
	for !r.over() {
		foreign.lock(t)
		r.held(len(sites))
		k.Unlock(t)
	}
	work.Wait()
	ours, its := r.turns[:len(sites)], r.turns[len(sites)]
	expectEqualTurns(t, ours)
	if most := slices.Max(ours); most > 2*its {
		t.Errorf("the foreign client had %d turns, a process %d", its, most)
	}
	k.AwaitFree(t)
}

// One goroutine that takes the lock again and again is never in the wait queue when it releases it, and its next request
// comes sooner than the request of a foreign client, which is far away. They have the lock in turn all the same.
func TestTurns_ForeignClientHasItsShareWithOneGoroutine(t *testing.T) {
	for _, kind := range []string{"plain", "fenced"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.New(t, lockkeeper.Config{})
			r := newRegister(t, 2)
			var work sync.WaitGroup
			work.Go(func() { takeTurns(locktest.Within(t), t, r, 0, s, kind, k.LockName) })
			foreign := newForeign(t, k)
			foreign.away = away
			for !r.over() {
				foreign.lock(t)
				r.held(1)
				k.Unlock(t)
			}
			work.Wait()
			expectEqualTurns(t, r.turns)
			k.AwaitFree(t)
		})
	}
}

// foreign waits as a lock of Redisson's does: it subscribes, and tries again at every message and at the end of the
// holder's TTL.
type foreign struct {
	locktest.Key
	woken chan struct{}
	away  time.Duration // how long each try takes
}

func newForeign(t *testing.T, k locktest.Key) *foreign {
	t.Helper()
	s := &foreign{Key: k, woken: make(chan struct{}, 1)}
	client := locktest.Connect(t, k.Server.URL())
	connection, giveBack := client.Dedicate()
	t.Cleanup(func() { giveBack(); client.Close() })
	connection.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {
		select {
		case s.woken <- struct{}{}:
		default:
		}
	}})
	locktest.OK(t, connection.Do(locktest.Within(t), connection.B().Subscribe().Channel(k.Channel).Build()).Error())
	return s
}

// lock is Redisson's tryLock, repeated as its waiters do.
func (s *foreign) lock(t *testing.T) {
	t.Helper()
	const attempt = `if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
		redis.call('HINCRBY', KEYS[1], ARGV[2], 1) redis.call('PEXPIRE', KEYS[1], ARGV[1]) return nil
	end return redis.call('PTTL', KEYS[1])`
	for limit := time.After(redistest.Limit); ; {
		<-time.After(s.away)
		ttl, err := s.Do(t, "EVAL", attempt, "1", s.Name, "30000", locktest.Redisson).AsInt64()
		if rueidis.IsRedisNil(err) {
			return
		}
		select {
		case <-s.woken:
		case <-time.After(time.Duration(ttl) * time.Millisecond):
		case <-limit:
			t.Fatalf("the foreign client did not get the lock within %v", redistest.Limit)
		}
	}
}
