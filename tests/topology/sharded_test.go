package topology_test

import (
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// redisson plays a client of Redisson's in a cluster of Redis 7: it listens on the shard channel, on
// the server that has the slot.
type redisson struct {
	locktest.Key
	heard chan string
}

func played(server *redistest.Server, name string) *redisson {
	return &redisson{locktest.Key{Server: server, LockName: name, Name: name, Channel: "redisson_lock__channel:{" + name + "}"}, make(chan string, 100)}
}

// listens is what Redisson does before it waits.
func (r *redisson) listens(t *testing.T) {
	t.Helper()
	connection, giveBack := r.Server.Client(t).Dedicate()
	t.Cleanup(func() { connection.Close(); giveBack() })
	connection.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { r.heard <- m.Message }})
	if err := connection.Do(locktest.Within(t), connection.B().Ssubscribe().Channel(r.Channel).Build()).Error(); err != nil {
		t.Fatal(err)
	}
}

// frees is what Redisson's release does.
func (r *redisson) frees(t *testing.T) {
	t.Helper()
	r.Atomically(t, `redis.call('DEL', KEYS[1]) redis.call('SPUBLISH', KEYS[2], '0')`, []string{r.Name, r.Channel})
}

// In a cluster of Redis 7, Redisson and Lockkeeper wake each other.
func TestClusterWithRedisson(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	name, _ := firstHalf(t)
	java := played(servers[0], name)
	java.listens(t)
	s := locktest.Open(t, servers[1].URL(), locktest.NoPolling)
	locktest.Release(t, locktest.Acquire(t, s.Lock(name)))
	if message := locktest.Await(t, "Redisson to be woken", java.heard); message != "0" {
		t.Errorf("Redisson heard %q", message)
	}
	java.TakeAs(t, locktest.Redisson, time.Minute)
	waiter := locktest.AcquireSoon(locktest.Within(t), s.Lock(name))
	redistest.Eventually(t, "it to listen where the slot is", func() bool { return servers[0].ShardSubscribers(t, java.Channel) == 2 })
	java.frees(t)
	locktest.Release(t, locktest.Got(t, waiter).Hold)
}

// A waiter goes on listening where the slot of its lock is, whatever happens to the server: the first
// of two that has it, with a replica.
func TestClusterWaitersFollowTheSlot(t *testing.T) {
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
			replica := redistest.ClusterReplica(t, servers)
			lock, slot := firstHalf(t)
			java := played(servers[0], lock)
			s := locktest.Open(t, servers[1].URL(), locktest.NoPolling)
			java.TakeAs(t, locktest.Redisson, time.Minute)
			waiter := locktest.AcquireSoon(locktest.Within(t), s.Lock(lock))
			listens := func(on *redistest.Server) {
				t.Helper()
				redistest.Eventually(t, "it to listen where the slot is", func() bool { return on.ShardSubscribers(t, java.Channel) == 1 })
			}
			listens(servers[0])
			redistest.Eventually(t, "the replica to know of the lock", func() bool { return len(replica.Keys(t, lock)) == 1 })
			java.Server = event(t, slot, servers[0], servers[1], replica)
			listens(java.Server)
			java.frees(t)
			locktest.Release(t, locktest.Got(t, waiter).Hold)
		})
	}
}

// Processes that hand a lock to each other cost the other servers of the cluster nothing: there is no
// message on its bus.
func TestClusterTurnsStayOnOneServer(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 3)
	name, turns := redistest.Name(t), 30
	var work sync.WaitGroup
	for _, from := range servers {
		s := locktest.Open(t, from.URL(), locktest.NoPolling)
		work.Go(func() {
			for range turns {
				hold, err := s.Lock(name).Acquire(locktest.Within(t))
				if err != nil {
					t.Error(err)
					return
				}
				if err := hold.Release(locktest.Within(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	for _, s := range servers {
		info, err := s.Do(t, "CLUSTER", "INFO").ToString()
		if sent := busPublications.FindString(info); err != nil || sent != "" {
			t.Errorf("%s has told the others: %s (%v)", s.Addr(), sent, err)
		}
	}
}

var busPublications = regexp.MustCompile(`cluster_stats_messages_publish\w*_sent:[1-9]\d*`)
