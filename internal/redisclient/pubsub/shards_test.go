package pubsub

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Each channel is subscribed on the master of its slot, reported again after every break, and removed.
func TestShards_AreSubscribedOnTheirMasters(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 3)
	for _, s := range servers {
		s.MustDo(t, "ACL", "SETUSER", "user", "on", ">pw", "+@all", "~*", "resetchannels", "&c*")
	}
	masterOf := func(channel string) *redistest.Server { return servers[int(keyspace.Slot(channel))*len(servers)/16384] }
	e := redistest.NewEvents()
	subs := NewShards(redistest.Connect(t, "redis://user:pw@"+servers[0].Addr()), e, func() {})
	t.Cleanup(subs.Close)
	channels := make([]string, 40)
	for i := range channels {
		channels[i] = fmt.Sprint("c", i)
		subs.Add(channels[i])
	}
	subs.Add("no{c}", "co{c}")
	all := func(times int) {
		t.Helper()
		for _, channel := range channels {
			e.Await(t, "subscribed "+channel, times)
			masterOf(channel).MustDo(t, "SPUBLISH", channel, "0")
			e.Await(t, "message "+channel, times)
			if !subs.Confirmed(channel) {
				t.Errorf("%s is subscribed, and not confirmed", channel)
			}
		}
	}
	all(1)
	e.Await(t, "subscribed co{c}", 1)
	if n := e.Count("refused no{c}"); n != 1 || subs.Confirmed("no{c}") || subs.Confirmed("never added") {
		t.Errorf("refused %d times; what is confirmed", n)
	}
	for _, s := range servers {
		s.KillClients(t, "pubsub")
	}
	all(2)
	subs.Remove(channels...)
	subs.Remove("never added")
	for _, channel := range channels {
		redistest.Eventually(t, channel+" to be given up", func() bool { return masterOf(channel).ShardSubscribers(t, channel) == 0 })
	}
	subs.Close()
	redistest.Eventually(t, "the last to be given up", func() bool { return masterOf("co{c}").ShardSubscribers(t, "co{c}") == 0 })
	subs.Add("c0")
	if subs.Confirmed("c0") {
		t.Error("added after Close")
	}
}

// A replica also confirms subscriptions, and does not name its master. A client that has not noticed a failover,
// since it had no subscription there, still finds the master, even if it does not know that server yet.
func TestShards_AreNotLeftOnAReplica(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"locks:06S", "locks:{06S}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rights := []string{"ACL", "SETUSER", "user", "on", ">pw", "+@all", "~locks:*", "&redisson_lock__channel:*", "&lockkeeper_turn:*"}
			servers, channel := redistest.Cluster(t, 2), keyspace.Channel(name)
			if int(keyspace.Slot(channel))*len(servers)/16384 == 1 {
				slices.Reverse(servers)
			}
			former := servers[0]
			former.MustDo(t, rights...)
			servers[1].MustDo(t, rights...)
			e := redistest.NewEvents()
			subs := NewShards(redistest.Connect(t, "redis://user:pw@"+former.Addr()), e, func() {})
			t.Cleanup(subs.Close)
			subs.Add(channel)
			e.Await(t, "subscribed "+channel, 1)
			subs.Remove(channel)
			redistest.Eventually(t, "it to be given up", func() bool { return former.ShardSubscribers(t, channel) == 0 })
			master := redistest.ClusterReplica(t, servers)
			master.MustDo(t, rights...)
			master.MustDo(t, "CLUSTER", "FAILOVER")
			master.AwaitMaster(t)
			redistest.Eventually(t, "the former master to follow", func() bool { return !former.IsMaster(t) })
			subs.Add(channel)
			redistest.Eventually(t, "it to be subscribed on the master", func() bool { return master.ShardSubscribers(t, channel) == 1 })
			redistest.Eventually(t, "that to be known", func() bool { return subs.Confirmed(channel) })
			e.Await(t, "message "+channel, 1) // messages may have been missed
		})
	}
}

// A slot moves, and Redis says so of one channel after the other. A channel that is added meanwhile leaves the former
// master: otherwise it would stay there when nothing listens, and be subscribed when the slot comes back.
func TestShards_LeaveNoChannelBehind(t *testing.T) {
	t.Parallel()
	const first, second = "first{x}", "second{x}"
	s := NewShards(nil, redistest.NewEvents(), func() {})
	s.started = true // without goroutines
	s.masters = s.masters.With(keyspace.Slot(first), "former")
	former := s.at(first)
	former.started = true
	s.Add(first)
	s.Add(second)
	former.noteSlotsMoved([]string{first}, "")
	s.Add(second)
	former.noteSlotsMoved([]string{second}, "")
	s.Remove(first, second)
	if left := former.channels(); len(left) > 0 {
		t.Errorf("%q stay", left)
	}
}
