package redisio

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Behind one address the master becomes a replica, and its connections stay open: calls
// and subscriptions move to the new master all the same, whatever the client.
func TestMasterDemotedBehindOneAddress(t *testing.T) {
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
			client := customized(t, p.Addr(), options)
			r := open(t, client)
			_, e := subscribeOver(t, r, "c")
			for i := range 20 { // so that all connections are in use
				acquire(t, r, fmt.Sprint("before", i))
			}
			// As an operator would; new connections lead to the new master.
			do(t, replica, "REPLICAOF", "NO", "ONE")
			replica.AwaitMaster(t)
			do(t, master, "REPLICAOF", "127.0.0.1", replica.Addr()[len("127.0.0.1:"):])
			p.Redirect(replica.Addr())
			redistest.Eventually(t, "every call to reach the new master", func() bool {
				for i := range 20 {
					if acquire(t, r, fmt.Sprint("after", i)).Err != nil {
						return false
					}
				}
				return true
			})
			awaitSubscribers(t, replica, "c", 1)
			awaitSubscribers(t, master, "c", 0)
			hears(t, replica, e, "c")
			if n := e.count("subscribed c"); n != 1 {
				t.Errorf("told of %d subscriptions: there was a gap", n)
			}
		})
	}
}

// A server that stays a replica is not troubled with more than a few new connections.
func TestReplicaThatStaysOne(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--replicaof", "127.0.0.1 1")
	r := open(t, connect(t, s.URL()))
	for began := time.Now(); time.Since(began) < 3*time.Second; time.Sleep(5 * time.Millisecond) {
		if err := acquire(t, r, "k").Err; err == nil {
			t.Fatal("a replica has taken a lock")
		}
	}
	if n := s.Calls(t)["quit"]; n < 2 || n > 8 {
		t.Errorf("%d connections were given up in 3 s", n)
	}
}
