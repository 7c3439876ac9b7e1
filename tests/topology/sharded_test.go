package topology_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// redisson acts as a client of Redisson's in a cluster of Redis 7. Its server has the slot of its lock.
type redisson struct{ locktest.Key }

func newRedisson(server *redistest.Server, name string) redisson {
	return redisson{locktest.Key{Server: server, LockName: name, Name: name, Channel: keyspace.Channel(name)}}
}

// subscribed subscribes to a shard channel, on the server that has its slot, as Redisson does before it waits.
func subscribed(t *testing.T, server *redistest.Server, channel string) <-chan string {
	t.Helper()
	received := make(chan string, 1000)
	connection, giveBack := server.Client(t).Dedicate()
	t.Cleanup(func() { connection.Close(); giveBack() })
	connection.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { received <- m.Message }})
	locktest.OK(t, connection.Do(locktest.Within(t), connection.B().Ssubscribe().Channel(channel).Build()).Error())
	return received
}

// frees releases the lock as Redisson does.
func (r redisson) frees(t *testing.T) {
	t.Helper()
	r.Atomically(t, `redis.call('DEL', KEYS[1]) redis.call('SPUBLISH', KEYS[2], '0')`, []string{r.Name, r.Channel})
}

// In a cluster of Redis 7, Redisson and Lockkeeper wake each other.
func TestCluster_WakesRedissonAndIsWoken(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	name, _ := firstHalf(t)
	java := newRedisson(servers[0], name)
	received := subscribed(t, java.Server, java.Channel)
	s := locktest.Open(t, servers[1].URL(), locktest.NoPolling)
	locktest.Release(t, locktest.Acquire(t, s.Lock(name)))
	if message := locktest.Await(t, "Redisson to be woken", received); message != "0" {
		t.Errorf("Redisson received %q", message)
	}
	java.TakeAs(t, locktest.Redisson, time.Minute)
	waiter := locktest.AcquireSoon(locktest.Within(t), s.Lock(name))
	redistest.Eventually(t, "a subscription on the server with the slot", func() bool { return servers[0].ShardSubscribers(t, java.Channel) == 2 })
	java.frees(t)
	locktest.Release(t, locktest.Got(t, waiter).Hold)

	java.TakeAs(t, locktest.Redisson, time.Minute)
	for change, err := range s.Lock(name).Watch(locktest.Within(t)) {
		switch {
		case err != nil:
			t.Fatal(err)
		case change.Locked:
			redistest.Eventually(t, "a subscription of the watch", func() bool { return servers[0].ShardSubscribers(t, java.Channel) == 2 })
			java.frees(t)
			continue
		}
		break
	}
}

// A waiter stays subscribed on the server with the slot of its lock, whatever happens to the server: the first of two
// that has the slot, with a replica.
func TestCluster_WaitersFollowTheSlot(t *testing.T) {
	for name, event := range map[string]func(t *testing.T, slot int, first, second, replica *redistest.Server) (then *redistest.Server){
		"the slot moves": func(t *testing.T, slot int, first, second, _ *redistest.Server) *redistest.Server {
			first.MoveSlot(t, slot, second)
			return second
		},
		"the master becomes a replica": func(t *testing.T, _ int, first, _, replica *redistest.Server) *redistest.Server {
			replica.Do(t, "CLUSTER", "FAILOVER")
			replica.AwaitMaster(t)
			return replica
		},
		"the master dies": func(t *testing.T, _ int, first, _, replica *redistest.Server) *redistest.Server {
			first.Kill(t)
			replica.Do(t, "CLUSTER", "FAILOVER", "TAKEOVER")
			replica.AwaitMaster(t)
			return replica
		},
		"the server leaves alive": func(t *testing.T, slot int, first, second, replica *redistest.Server) *redistest.Server {
			replica.Do(t, "CLUSTER", "FAILOVER")
			replica.AwaitMaster(t)
			first.Leave(t, second, replica)
			return replica
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.Cluster(t, 2)
			s := locktest.Open(t, servers[1].URL(), locktest.NoPolling) // it does not know the replica
			replica := redistest.ClusterReplica(t, servers)
			lock, slot := firstHalf(t)
			java := newRedisson(servers[0], lock)
			java.TakeAs(t, locktest.Redisson, time.Minute)
			waiter := locktest.AcquireSoon(locktest.Within(t), s.Lock(lock))
			listens := func(on *redistest.Server) {
				t.Helper()
				redistest.Eventually(t, "a subscription on the server with the slot", func() bool { return on.ShardSubscribers(t, java.Channel) == 1 })
			}
			listens(servers[0])
			redistest.Eventually(t, "the lock to be on the replica", func() bool { return len(replica.Keys(t, lock)) == 1 })
			java.Server = event(t, slot, servers[0], servers[1], replica)
			listens(java.Server)
			java.frees(t)
			locktest.Release(t, locktest.Got(t, waiter).Hold)
		})
	}
}

// Processes transfer a lock to each other, and the other servers of the cluster get no message on its bus.
func TestCluster_TransfersStayOnOneServer(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 3)
	name := redistest.Name(t)
	master := servers[int(keyspace.Slot(name))*len(servers)/16384]
	hold := locktest.Acquire(t, locktest.Open(t, servers[0].URL(), locktest.NoPolling).Lock(name))
	for _, from := range servers {
		next := locktest.Open(t, from.URL(), locktest.NoPolling)
		transferred := subscribed(t, master, keyspace.ShardTurnChannel(next.ID(), keyspace.Waiters(name)))
		waiter := locktest.AcquireSoon(locktest.Within(t), next.Lock(name))
		redistest.Eventually(t, "a subscribed entry in the wait queue", func() bool {
			entry, _ := master.Do(t, "HGET", keyspace.WaitQueue(name), next.ID()).ToString()
			return strings.HasSuffix(entry, " 1")
		})
		redistest.Eventually(t, "a time at which the lock is transferred", func() bool { // every 2 s, it is left to foreign clients instead
			now := time.Now().UnixMilli() % 2000
			return 500 < now && now < 1500
		})
		locktest.Release(t, hold)
		hold = locktest.Got(t, waiter).Hold
		locktest.Await(t, "the transfer", transferred)
	}
	locktest.Release(t, hold)
	for _, s := range servers {
		info, err := s.Do(t, "CLUSTER", "INFO").ToString()
		if sent := busPublications.FindString(info); err != nil || sent != "" {
			t.Errorf("%s has sent messages to the others: %s (%v)", s.Addr(), sent, err)
		}
	}
}

var busPublications = regexp.MustCompile(`cluster_stats_messages_publish\w*_sent:[1-9]\d*`)
