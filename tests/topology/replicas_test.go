package topology_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

var (
	kills = flag.Int("replicas.kills", 0, "how many masters to kill, with and without Config.Replicas")
	lag   = flag.Duration("replicas.lag", 30*time.Millisecond, "how long the replication takes, and its confirmation again")
)

var replicated = lockkeeper.Config{Replicas: 1}

// A grant is on the replica: the lease, its count, and the fencing token.
func TestReplicas_ConfirmEveryGrant(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, kind string, lockOf locktest.Kind) {
		master := redistest.Start(t)
		replica, link := redistest.ReplicaBehind(t, master)
		k := locktest.NewKey(t, replica)
		url := master.URL()
		if kind == "plain" {
			url = redistest.Sentinel(t, master)
		}
		s, other := locktest.Open(t, url, replicated), locktest.Open(t, url, replicated)
		link.Delay(*lag)

		hold := locktest.Acquire(t, lockOf(s, k.Name))
		owners := k.Owners(t)
		if len(owners) == 0 {
			t.Error("granted, and the lease is not on the replica")
		}
		if token := hold.Token(); token > 0 && k.Number(t, "GET", "redisson_lock_token:{"+k.Name+"}") < int64(token) {
			t.Error("granted, and the token is not on the replica")
		}
		again := locktest.AcquireIn(t, hold.Context(), lockOf(s, k.Name))
		if now := k.Owners(t); fmt.Sprint(now) == fmt.Sprint(owners) {
			t.Errorf("re-entered, and the replica has the counts %v", now)
		}
		locktest.Release(t, again)
		if kind == "read" {
			locktest.Release(t, hold)
			return
		}
		link.Delay(0) // no try is under way when the lock is released
		waiting := locktest.AcquireSoon(locktest.Within(t), lockOf(other, k.Name))
		redistest.Eventually(t, "a subscribed entry in the wait queue or the fair queue", func() bool {
			entries, _ := master.Do(t, "HVALS", locktest.WaitQueue(kind, k.Name)).AsStrSlice()
			return len(entries) == 1 && (kind == "multi" || strings.HasSuffix(entries[0], " 1")) || len(master.Keys(t, keyspace.Queue(k.Name))) == 1
		})
		link.Delay(*lag)
		locktest.Release(t, hold)
		locktest.Got(t, waiting)
		for owner := range k.Owners(t) {
			if owner != "mode" && owner[:18] != other.ID()[:18] {
				t.Errorf("granted elsewhere, and the replica has it as %s's", owner)
			}
		}
	})
}

// While no replica is reachable, no lock is granted, and no key stays. A hold ends before its lease ends on the
// replica, which may be a master by then.
func TestReplicas_UnreachableGrantsNothing(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica, link := redistest.ReplicaBehind(t, master)
	cfg := lockkeeper.Config{Replicas: 1, ReplicaTimeout: 100 * time.Millisecond, Watchdog: locktest.Watchdog, HandOffLimit: 1}
	s, k := locktest.Open(t, master.URL(), cfg), locktest.NewKey(t, replica)
	link.Freeze(true)
	t.Run("kinds", func(t *testing.T) {
		locktest.EachKind(t, func(t *testing.T, kind string, lockOf locktest.Kind) {
			l := lockOf(s, fmt.Sprint(k.Name, " ", kind))
			locktest.InTime(t, "a try", func() { locktest.ExpectRefused(t, lockkeeper.ErrNotReplicated, l) })
			redistest.Eventually(t, "a wait to end without a replica", func() bool { // and not before its own last try is withdrawn
				_, err := l.Acquire(locktest.Within(t), lockkeeper.WithWait(time.Second))
				return errors.Is(err, lockkeeper.ErrNotReplicated) && strings.Contains(err.Error(), "0 of the 1 replicas")
			})
		})
	})
	leavesNothing(t, master)

	link.Freeze(false)
	held, passedOn := locktest.GuardByContext(t, s, k), locktest.NewKey(t, master)
	first, waiting := s.Acquire(t, passedOn), s.AcquireSoon(t, passedOn)
	s.AwaitWaiters(t, passedOn, 1)
	link.Freeze(true)
	locktest.IsError(t, first.Extend(locktest.Within(t), time.Hour), lockkeeper.ErrNotReplicated)
	if left := first.Left(); left > locktest.Watchdog {
		t.Errorf("%v are left after an extension that no replica has confirmed", left)
	}
	locktest.Release(t, first) // the hand-off limit makes the release call Redis
	held.ExpectLossInTime(t, k.Expiry(t), true, messages.Reason_REASON_EXPIRED)
	locktest.Pending(t, waiting, "no replica has confirmed it")
	link.Freeze(false)
	locktest.Release(t, locktest.Got(t, waiting).Hold)
}

// The release of a lock that is kept for a minimum time is confirmed when a replica has that, too.
func TestReplicas_ConfirmAMinimumTime(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica, link := redistest.ReplicaBehind(t, master)
	s := locktest.Open(t, master.URL(), lockkeeper.Config{Replicas: 1, ReplicaTimeout: time.Second, Watchdog: locktest.Watchdog})
	for kind, lock := range map[string]*lockkeeper.Lock{
		"plain": s.Lock("plain"), "fair": s.FairLock("fair"), "multi": lockkeeper.MultiLock(s.Lock("multi"), s.FencedLock("multi too")),
	} {
		t.Run(kind, func(t *testing.T) {
			hold := locktest.Acquire(t, lock, lockkeeper.WithAtLeast(time.Hour))
			link.Freeze(true)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if err := hold.Release(ctx); err == nil {
				t.Error("confirmed, and the replica does not know it")
			}
			link.Freeze(false)
			redistest.Eventually(t, "the replica to keep the lock", func() bool {
				ttl, _ := replica.Do(t, "PTTL", kind).AsInt64()
				return ttl > time.Minute.Milliseconds()
			})
		})
	}
}

// In a cluster, the replicas of the server with the lock confirm. While the client follows a slot to another server,
// the replicas of the former server confirm nothing.
func TestReplicas_InAClusterAreThoseOfTheSlot(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	replica := redistest.ClusterReplica(t, servers)
	s, k := locktest.Open(t, servers[1].URL(), lockkeeper.Config{Replicas: 1, ReplicaTimeout: 50 * time.Millisecond}), locktest.Key{}
	var slot int
	k.LockName, slot = firstHalf(t)
	locktest.ExpectGranted(t, s.FencedLock(k.LockName)) // the counter of its tokens does not move
	refused := func() {
		locktest.ExpectRefused(t, lockkeeper.ErrNotReplicated, s.Lock(k.LockName), s.FencedLock(k.LockName))
		leavesNothing(t, servers[1])
	}
	servers[0].BeginMove(t, slot, servers[1])
	refused()                                           // by the server of the ASK reply
	servers[0].Do(t, "DEL", keyspace.Token(k.LockName)) // a server gives no slot away that has keys
	servers[0].EndMove(t, slot, servers[1])
	refused() // by the server of the MOVED reply
	servers[1].MoveSlot(t, slot, servers[0])
	redistest.Eventually(t, "the lock to be granted again", func() bool {
		hold, err := s.Lock(k.LockName).TryAcquire(locktest.Within(t))
		return err == nil && len(replica.Keys(t, k.LockName)) == 1 && hold.Release(locktest.Within(t)) == nil
	})
}

// A user without the right to wait for replicas gets an error.
func TestReplicas_NeedARight(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	master.Do(t, "ACL", "SETUSER", "locker", "on", ">secret", "~*", "&*", "+@all", "-wait")
	s := locktest.Open(t, locktest.URLAs(master, "locker", "secret"), replicated)
	_, err := s.Lock("a").Acquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrRejected, "+wait")
	leavesNothing(t, master)
}

// leavesNothing waits until a server has only counters of tokens.
func leavesNothing(t *testing.T, s *redistest.Server) {
	t.Helper()
	redistest.Eventually(t, "nothing to be left", func() bool {
		return !slices.ContainsFunc(s.Keys(t, "*"), func(key string) bool { return !strings.HasPrefix(key, "redisson_lock_token:") })
	})
}

// A master dies, and its replica, which lags, takes over: no trusted lock is granted to another holder.
func TestReplicas_TakeoverGrantsNoLockTwice(t *testing.T) {
	t.Parallel()
	if twice := takeOver(t, replicated); twice > 0 {
		t.Errorf("%d locks have two holders", twice)
	}
	without := 0
	for n := range *kills {
		with := takeOver(t, replicated)
		without += takeOver(t, lockkeeper.Config{})
		t.Logf("%d killed: %d locks with two holders; without Replicas %d so far", n+1, with, without)
		if with > 0 {
			t.Errorf("%d locks have two holders", with)
		}
	}
	if *kills > 0 && without == 0 {
		t.Error("without Replicas no lock had two holders: the test proves nothing")
	}
}

// takeOver kills a master while many locks are taken, and counts the locks with two holders that trust them.
func takeOver(t *testing.T, cfg lockkeeper.Config) (twice int) {
	master := redistest.Start(t)
	replica, link := redistest.ReplicaBehind(t, master)
	before, after := locktest.Open(t, master.URL(), cfg), locktest.Open(t, replica.URL(), lockkeeper.Config{})
	before.SkipCloseCheck = true
	link.Delay(*lag)

	ctx, stop := context.WithCancel(locktest.Within(t))
	defer stop()
	var crowd sync.WaitGroup
	var granted atomic.Int64
	var holds sync.Map
	for i := range 32 {
		crowd.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprint(i, "-", n)
				if hold, err := before.Lock(name).Acquire(ctx); err == nil {
					holds.Store(name, hold)
					granted.Add(1)
				}
			}
		})
	}
	redistest.Eventually(t, "many locks to be taken", func() bool { return granted.Load() > 500 })
	master.Kill(t)
	link.Refuse(true) // commands that were under way are lost
	stop()
	crowd.Wait()
	replica.Do(t, "REPLICAOF", "NO", "ONE")
	replica.AwaitMaster(t)
	for name, hold := range holds.Range {
		switch _, err := after.Lock(name.(string)).TryAcquire(locktest.Within(t)); {
		case err == nil && hold.(*lockkeeper.Hold).Valid():
			twice++
		case err != nil && !errors.Is(err, lockkeeper.ErrHeld):
			t.Error(err)
		}
	}
	ctx, stop = context.WithTimeout(ctx, time.Millisecond)
	defer stop()
	_ = before.Close(ctx) // its Redis does not run
	return twice
}
