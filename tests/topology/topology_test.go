package topology_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// outlives has a lock held and waited for while something happens to its server: the hold is
// renewed where the lock is then, and the waiter gets it there. Nothing is left.
func outlives(t *testing.T, url, name string, then *redistest.Server, event func()) {
	t.Helper()
	s, other, k := locktest.Open(t, url, lockkeeper.Config{}), locktest.Open(t, url, lockkeeper.Config{}), locktest.Key{LockName: name}
	hold := locktest.Acquire(t, s.Lock(name))
	waiter := other.AcquireSoon(t, k)
	other.AwaitWaiters(t, k, 1)
	event()
	redistest.Eventually(t, "the hold to be renewed", func() bool {
		err := hold.Ensure(locktest.Within(t), 29*time.Second)
		if err != nil && !errors.Is(err, lockkeeper.ErrUnavailable) { // clients take a moment to hear of it
			t.Fatal(err)
		}
		return err == nil
	})
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, waiter).Hold)
	redistest.Eventually(t, "nothing to be left", func() bool { return len(then.Keys(t, "*")) == 0 })
}

// The master dies: its replica is promoted, and knows of the hold.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Replica(t, master)
	outlives(t, redistest.Sentinel(t, master), redistest.Name(t), replica, func() {
		redistest.Eventually(t, "the replica to know of the hold", func() bool { return len(replica.Keys(t, "*")) > 0 })
		master.Kill(t)
		replica.AwaitMaster(t)
	})
}

// firstHalf names a lock whose slot belongs to the first of two servers.
func firstHalf(t *testing.T) (name string, slot int) {
	for n := 0; ; n++ {
		name = fmt.Sprint(redistest.Name(t), n)
		if slot = int(redisio.Slot(name)); slot < 8192 {
			return name, slot
		}
	}
}

// A master dies: its replica knows of the hold, and goes on.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	replica := redistest.ClusterReplica(t, servers)
	name, _ := firstHalf(t)
	outlives(t, servers[1].URL(), name, replica, func() {
		redistest.Eventually(t, "the replica to know of the hold", func() bool { return len(replica.Keys(t, "*")) > 0 })
		servers[0].Kill(t)
		replica.Do(t, "CLUSTER", "FAILOVER", "TAKEOVER")
		replica.AwaitMaster(t)
	})
}

// A slot moves to another server while its lock is held and waited for.
func TestClusterMovesASlot(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	name, slot := firstHalf(t)
	outlives(t, servers[0].URL(), name, servers[1], func() {
		servers[0].MoveSlot(t, slot, servers[1])
		if len(servers[1].Keys(t, name)) != 1 {
			t.Fatal("the lock has not moved")
		}
	})
}

// In a cluster without sharded pub/sub a waiter may listen on another server, where it is not seen. It need not wait
// each time for the second that a lock is kept which nobody is seen to wait for.
func TestClusterWaitersOnAnotherServer(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	name, _ := firstHalf(t)
	greedy, guest := locktest.Open(t, servers[0].URL(), lockkeeper.Config{ShardedPubSub: lockkeeper.ShardedOff}), listensOnSecond(t, servers, name)
	ctx, stop := context.WithCancel(locktest.Within(t))
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer stop()
	for range 4 {
		crowd.Go(func() {
			for ctx.Err() == nil {
				if hold, err := greedy.Lock(name).Acquire(ctx); err == nil {
					_ = hold.Release(context.WithoutCancel(ctx))
				}
			}
		})
	}
	for n := range 60 { // at a second each they would take longer than the test may
		hold, err := guest.Lock(name).Acquire(ctx)
		if err != nil {
			t.Fatalf("after %d turns: %v", n, err)
		}
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// listensOnSecond is a site that listens on the second of two servers, which chance decides.
func listensOnSecond(t *testing.T, servers []*redistest.Server, name string) *locktest.Site {
	channel := redisio.Channel(name)
	holder := locktest.Open(t, servers[0].URL(), lockkeeper.Config{ShardedPubSub: lockkeeper.ShardedOff})
	hold := locktest.Acquire(t, holder.Lock(name))
	defer locktest.Release(t, hold)
	for {
		s := locktest.Open(t, servers[0].URL(), lockkeeper.Config{Poll: time.Minute, ShardedPubSub: lockkeeper.ShardedOff})
		ctx, giveUp := context.WithCancel(locktest.Within(t))
		waiter := locktest.AcquireSoon(ctx, s.Lock(name))
		redistest.Eventually(t, "it to listen", func() bool {
			return servers[0].Subscribers(t, channel)+servers[1].Subscribers(t, channel) == 1
		})
		there := servers[1].Subscribers(t, channel) == 1
		giveUp()
		<-waiter
		redistest.Eventually(t, "it to listen no more", func() bool {
			return servers[0].Subscribers(t, channel)+servers[1].Subscribers(t, channel) == 0
		})
		if there {
			return s
		}
	}
}

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}
