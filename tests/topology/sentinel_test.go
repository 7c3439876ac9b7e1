package topology_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// takeover is the longest time that clients may take for a failover, from the moment of the new master. Sentinel
// notices after a second; clients that waited for its end took from 6 s to 11 s.
const takeover = 5 * time.Second

// Two processes take turns while another server becomes the master. Both move there with their subscriptions; the
// tokens of each process grow; holds that the new master lacks are not trusted; and the old master, if it lives, gets
// no further commands. The new master may lack the last turns, as no process waits for replicas:
// TestReplicas_TakeoverGrantsNoLockTwice has exclusion.
func TestSentinel_ClientsFollowTheMaster(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(t *testing.T, master, sentinel *redistest.Server){
		"planned": func(t *testing.T, _, sentinel *redistest.Server) {
			locktest.OK(t, sentinel.Do(t, "SENTINEL", "FAILOVER", "master").Error())
		},
		"killed": func(t *testing.T, master, _ *redistest.Server) { master.Kill(t) },
		"hung":   func(t *testing.T, master, _ *redistest.Server) { master.Pause(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := redistest.Start(t)
			replicas := []*redistest.Server{redistest.Replica(t, master), redistest.Replica(t, master)}
			url, sentinels := redistest.Sentinels(t, master, len(replicas))
			a, b := locktest.Open(t, url, locktest.NoPolling), locktest.Open(t, url, locktest.NoPolling)
			kept, lost := locktest.NewKey(t, master), redistest.Name(t)+"lost"
			hold, doomed := a.Acquire(t, kept), locktest.Acquire(t, a.Lock(lost))
			for _, r := range replicas {
				redistest.Eventually(t, "the holds to be on the replica", func() bool { return len(r.Keys(t, "*")) == 2 })
				r.Do(t, "CONFIG", "SET", "replica-read-only", "no")
				r.Do(t, "DEL", lost) // as if it had lagged
			}
			turns := takeTurns(t, redistest.Name(t)+"turns", a, b)
			turns.await(t, 20)

			fault(t, master, sentinels[0])
			var now *redistest.Server
			redistest.Eventually(t, "another master", func() bool {
				i := slices.IndexFunc(replicas, func(r *redistest.Server) bool { return r.IsMaster(t) })
				if i >= 0 {
					now = replicas[i]
				}
				return i >= 0
			})
			began := time.Now()
			within := func(what string, cond func() bool) {
				redistest.Eventually(t, what, cond)
				if took := time.Since(began); took > takeover {
					t.Errorf("%s: it took %v, longer than a takeover", what, took)
				} else {
					t.Logf("%s: %v", what, took)
				}
			}
			within("writes to the new master", func() bool { return now.Calls(t)["evalsha"]+now.Calls(t)["eval"] > 0 })
			within("subscriptions to the new master", func() bool {
				return now.Subscribers(t, keyspace.TurnChannel(a.ID())) == 1 && now.Subscribers(t, keyspace.TurnChannel(b.ID())) == 1
			})
			within("the notification of the loss", func() bool { return doomed.Context().Err() != nil && !doomed.Valid() })
			turns.await(t, 20)
			if name == "planned" {
				before := master.Calls(t)["evalsha"]
				turns.await(t, 20)
				if after := master.Calls(t)["evalsha"]; after != before {
					t.Errorf("the old master got %d scripts more", after-before)
				}
			}
			turns.stop()
			locktest.Release(t, hold)
		})
	}
}

// A Sentinel has chosen a replica, which does not become the master: clients leave the old one alone for a while, and
// then continue with it.
func TestSentinel_ClientsReturnAfterAFailedFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Replica(t, master)
	url, sentinels := redistest.Sentinels(t, master, 1)
	s, other, k := locktest.Open(t, url, locktest.NoPolling), locktest.Open(t, url, locktest.NoPolling), locktest.NewKey(t, master)
	hold := s.Acquire(t, k)
	waiter := other.AcquireSoon(t, k)
	k.AwaitSubscribers(t, 1)
	replica.Pause(t)
	locktest.OK(t, sentinels[0].Do(t, "SENTINEL", "FAILOVER", "master").Error())
	k.AwaitSubscribers(t, 0)
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, waiter).Hold)
}

// turnTaking are processes that take a fenced lock in turn.
type turnTaking struct {
	turns atomic.Int64
	stop  func()
}

// takeTurns lets sites take turns. The tokens of each site grow, whatever its server has lost.
func takeTurns(t *testing.T, name string, sites ...*locktest.Site) *turnTaking {
	turns := &turnTaking{}
	ctx, cancel := context.WithCancel(locktest.Within(t))
	var all sync.WaitGroup
	for _, s := range sites {
		all.Go(func() {
			var last int64
			for ctx.Err() == nil {
				hold, err := s.FencedLock(name).Acquire(ctx)
				if err != nil {
					continue
				}
				if hold.Token() <= last {
					t.Errorf("token %d after %d", hold.Token(), last)
				}
				last = hold.Token()
				turns.turns.Add(1)
				_ = hold.Release(context.WithoutCancel(ctx))
			}
		})
	}
	turns.stop = func() {
		cancel()
		all.Wait()
	}
	t.Cleanup(turns.stop)
	return turns
}

// await waits for so many more turns.
func (u *turnTaking) await(t *testing.T, more int64) {
	t.Helper()
	before := u.turns.Load()
	redistest.Eventually(t, "turns", func() bool { return u.turns.Load() >= before+more })
}
