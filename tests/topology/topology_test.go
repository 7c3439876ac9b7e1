// Package topology_test tests locks on clusters, Sentinels and replicas, and the URLs that name them.
package topology_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// outlives holds a lock, and waits for it, while something happens to its server: the hold is then renewed on another
// server, and the waiter gets the lock there. Nothing is left.
func outlives(t *testing.T, url, name string, then *redistest.Server, event func()) {
	t.Helper()
	s, other, k := locktest.Open(t, url, lockkeeper.Config{}), locktest.Open(t, url, lockkeeper.Config{}), locktest.Key{LockName: name}
	hold := locktest.Acquire(t, s.Lock(name))
	waiter := other.AcquireSoon(t, k)
	other.AwaitWaiters(t, k, 1)
	event()
	redistest.Eventually(t, "the hold to be renewed", func() bool {
		err := hold.Ensure(locktest.Within(t), 29*time.Second)
		if err != nil && !errors.Is(err, lockkeeper.ErrUnavailable) { // clients take a moment to notice
			t.Fatal(err)
		}
		return err == nil
	})
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, waiter).Hold)
	redistest.Eventually(t, "nothing to be left", func() bool { return len(then.Keys(t, "*")) == 0 })
}

// firstHalf names a lock whose slot belongs to the first of two servers.
func firstHalf(t *testing.T) (name string, slot int) {
	for n := 0; ; n++ {
		name = fmt.Sprint(redistest.Name(t), n)
		if slot = int(keyspace.Slot(name)); slot < 8192 {
			return name, slot
		}
	}
}

// A master dies: its replica has the hold, and takes over.
func TestCluster_HoldSurvivesFailover(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	replica := redistest.ClusterReplica(t, servers)
	name, _ := firstHalf(t)
	outlives(t, servers[1].URL(), name, replica, func() {
		redistest.Eventually(t, "the hold to be on the replica", func() bool { return len(replica.Keys(t, "*")) > 0 })
		servers[0].Kill(t)
		replica.Do(t, "CLUSTER", "FAILOVER", "TAKEOVER")
		replica.AwaitMaster(t)
	})
}

// In a cluster without sharded pub/sub, a waiter may subscribe on another server, where the script does not count it.
// Without a visible waiter, a lock is kept free for a second; this waiter need not wait for that each time.
func TestCluster_WaiterOnAnotherServerIsNotDelayed(t *testing.T) {
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
		locktest.OK(t, hold.Release(ctx))
	}
}

// Without sharded pub/sub, messages go to all servers of a cluster. A server that leaves the cluster no longer gets
// messages, keeps its subscribers and tells them nothing: they must leave the server by themselves.
func TestCluster_SubscribersLeaveAServerThatHasLeft(t *testing.T) {
	t.Parallel()
	for how, c := range map[string]struct {
		leave    func(s *redistest.Server, t testing.TB, others ...*redistest.Server)
		endpoint string // how the servers name each other
	}{
		"reset":                              {(*redistest.Server).Leave, "ip"},
		"only forgotten":                     {(*redistest.Server).Forgotten, "ip"},
		"only forgotten, with unknown names": {(*redistest.Server).Forgotten, "unknown-endpoint"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			servers := redistest.Cluster(t, 2)
			for _, s := range servers {
				s.Do(t, "CONFIG", "SET", "cluster-preferred-endpoint-type", c.endpoint)
			}
			name, _ := firstHalf(t)
			channel := keyspace.Channel(name)
			s := listensOnSecond(t, servers, name)
			replica := redistest.ClusterReplica(t, []*redistest.Server{servers[1], servers[0]})
			replica.Do(t, "CONFIG", "SET", "cluster-preferred-endpoint-type", c.endpoint)
			hold := locktest.Acquire(t, locktest.Open(t, servers[0].URL(), lockkeeper.Config{ShardedPubSub: lockkeeper.ShardedOff}).Lock(name))
			waiter := locktest.AcquireSoon(locktest.Within(t), s.Lock(name))
			servers[1].AwaitSubscribers(t, channel, 1)
			replica.Do(t, "CLUSTER", "FAILOVER")
			replica.AwaitMaster(t)
			c.leave(servers[1], t, servers[0], replica)
			redistest.Eventually(t, "its subscription on a member", func() bool {
				return servers[0].Subscribers(t, channel)+replica.Subscribers(t, channel) == 1
			})
			locktest.Release(t, hold)
			locktest.Release(t, locktest.Got(t, waiter).Hold)
		})
	}
}

// listensOnSecond is a site that has subscribed on the second of two servers; the client chooses it at random.
func listensOnSecond(t *testing.T, servers []*redistest.Server, name string) *locktest.Site {
	channel := keyspace.Channel(name)
	holder := locktest.Open(t, servers[0].URL(), lockkeeper.Config{ShardedPubSub: lockkeeper.ShardedOff})
	hold := locktest.Acquire(t, holder.Lock(name))
	defer locktest.Release(t, hold)
	for {
		s := locktest.Open(t, servers[0].URL(), lockkeeper.Config{Poll: time.Hour, ShardedPubSub: lockkeeper.ShardedOff})
		ctx, giveUp := context.WithCancel(locktest.Within(t))
		waiter := locktest.AcquireSoon(ctx, s.Lock(name))
		redistest.Eventually(t, "its subscription", func() bool {
			return servers[0].Subscribers(t, channel)+servers[1].Subscribers(t, channel) == 1
		})
		there := servers[1].Subscribers(t, channel) == 1
		giveUp()
		<-waiter
		redistest.Eventually(t, "the end of its subscription", func() bool {
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
