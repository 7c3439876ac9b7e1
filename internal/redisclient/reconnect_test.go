package redisclient

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redisclient/pubsub"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// If the master behind an address becomes a replica and keeps its connections open, calls and
// subscriptions of every kind of client still move to the new master.
func TestReconnect_FollowsTheMasterBehindOneAddress(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]rueidis.ClientOption{
		"one connection":         {PipelineMultiplex: -1, DisableRetry: true},
		"four connections":       {PipelineMultiplex: 2},
		"always pipelining":      {AlwaysPipelining: true},
		"a connection each call": {DisableAutoPipelining: true},
		"RESP2":                  {AlwaysRESP2: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
			replica := redistest.Replica(t, master)
			p := redistest.NewProxy(t, master.Addr())
			client := redistest.ConnectWith(t, p.Addr(), options)
			r := open(t, client)
			_, e := subscribe(t, r, "c")
			for i := range 20 { // so that all connections are in use
				acquire(t, r, fmt.Sprint("before", i))
			}
			// As an operator would; new connections lead to the new master.
			replica.MustDo(t, "REPLICAOF", "NO", "ONE")
			replica.AwaitMaster(t)
			master.MustDo(t, "REPLICAOF", "127.0.0.1", replica.Addr()[len("127.0.0.1:"):])
			p.Redirect(replica.Addr())
			redistest.Eventually(t, "every call to reach the new master", func() bool {
				for i := range 20 {
					if acquire(t, r, fmt.Sprint("after", i)).Err != nil {
						return false
					}
				}
				return true
			})
			replica.AwaitSubscribers(t, "c", 1)
			master.AwaitSubscribers(t, "c", 0)
			redistest.PublishAndAwait(t, replica, e, "c")
			if n := e.Count("subscribed c"); n != 1 {
				t.Errorf("%d subscriptions were reported: there was a gap", n)
			}
		})
	}
}

// The address may lead to the new master only long after the connections were closed: the next call and the
// subscription still find it.
func TestReconnect_FindsAnAddressThatFollowsLate(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	replica := redistest.Replica(t, master)
	p := redistest.NewProxy(t, master.Addr())
	r := open(t, redistest.ConnectWith(t, p.Addr(), rueidis.ClientOption{PipelineMultiplex: -1, DisableRetry: true}))
	_, e := subscribe(t, r, "c")
	replica.MustDo(t, "REPLICAOF", "NO", "ONE")
	replica.AwaitMaster(t)
	master.MustDo(t, "REPLICAOF", "127.0.0.1", replica.Addr()[len("127.0.0.1:"):])
	redistest.ExpectError(t, "before the address has followed", acquire(t, r, "k").Err, redistest.Passing)
	redistest.Eventually(t, "the subscription to be replaced", func() bool { return master.Calls(t)["subscribe"] > 1 && master.Calls(t)["quit"] > 0 })
	time.Sleep(2 * lastReplaceDelay) // no further replacement is planned, so that only the next call can find the new master
	p.Redirect(replica.Addr())
	redistest.Eventually(t, "a call to reach the new master", func() bool { return acquire(t, r, "k").Err == nil })
	replica.AwaitSubscribers(t, "c", 1)
	redistest.PublishAndAwait(t, replica, e, "c")
}

// A server that stays a replica gets only a few new connections.
func TestReconnect_RarelyToAReplicaThatStaysOne(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--replicaof", "127.0.0.1 1")
	r := open(t, redistest.Connect(t, s.URL()))
	subscribe(t, r, "c")
	began := time.Now()
	redistest.Eventually(t, "a few connections to be given up", func() bool {
		if err := acquire(t, r, "k").Err; err == nil {
			t.Fatal("a replica has granted a lock")
		}
		return s.Calls(t)["quit"] >= 4*quitsPerRound
	})
	took := time.Since(began)
	subscribed := int64(-1)
	redistest.Eventually(t, "the end of replacements, without any call", func() bool {
		before := subscribed
		if subscribed = s.Calls(t)["subscribe"]; subscribed == before {
			return true
		}
		time.Sleep(2 * lastReplaceDelay) // the next one would come in this time
		return false
	})
	if took < 5*minReplacePause {
		t.Errorf("so many connections were closed in %v", took)
	}
}

// A reply after its connection was cut may come from a former master.
func TestReply_AfterACutIsDoubtful(t *testing.T) {
	client := &spy{Client: redistest.Connect(t, redistest.Shared(t).URL())}
	r, in, hash := open(t, client), newInbox(), redistest.Name(t)
	letGo := client.hold(hash)
	demoted := lua("return redis.error_reply('READONLY it is a replica')", number)
	r.Run(Call{Script: demoted, Keys: []string{hash}, Deadline: redistest.Soon(), To: in})
	redistest.Eventually(t, "the call to be under way", func() bool { return len(client.sent()) == 1 })
	r.pool.disconnects.Add(1)
	letGo()
	redistest.ExpectError(t, "an old reply", in.await(t, 0).Err, redistest.Doubtful)
	if !r.reconnector.lastReconnect.IsZero() {
		t.Error("connections to the new master are closed because of it")
	}
	if reply := acquire(t, r, hash+"after"); reply.Err != nil {
		t.Error(reply.Err)
	}
}

// A client of Sentinels reports another master, and replies of the former one are recognized.
func TestOnMove_ReportsAnotherMaster(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	redistest.Replica(t, master)
	url, sentinels := redistest.Sentinels(t, master, 1)
	r := open(t, redistest.Connect(t, url))
	var moves, stopped atomic.Int64
	r.OnMove(func() { moves.Add(1) })
	r.OnMove(func() { stopped.Add(1) })()
	sentinels[0].MustDo(t, "SENTINEL", "FAILOVER", "master")
	redistest.Eventually(t, "a move", func() bool { return moves.Load() > 0 })
	if r.pool.disconnects.Load() == 0 || stopped.Load() > 0 {
		t.Errorf("connections were closed %d times, and a function was called %d times after stop", r.pool.disconnects.Load(), stopped.Load())
	}
}

// subscribe opens subscriptions to channels, which are closed when the test ends.
func subscribe(t *testing.T, r *Redis, channels ...string) (*pubsub.Subscriptions, *redistest.Events) {
	t.Helper()
	e := redistest.NewEvents()
	subs := r.NewSubscriptions(e, "the first")
	t.Cleanup(subs.Close)
	redistest.Listen(t, subs, e, channels...)
	return subs, e
}
