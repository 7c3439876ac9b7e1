package redisio

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// demote makes a replica the master, and the master its replica, as an operator would,
// and leads new connections through the proxy to the new master.
func demote(t *testing.T, p *redistest.Proxy, master, replica *redistest.Server) {
	t.Helper()
	do(t, replica, "REPLICAOF", "NO", "ONE")
	replica.AwaitMaster(t)
	host, port := "127.0.0.1", replica.Addr()[len("127.0.0.1:"):]
	do(t, master, "REPLICAOF", host, port)
	p.Redirect(replica.Addr())
}

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
			options.InitAddress, options.DisableCache = []string{p.Addr()}, true
			client, err := rueidis.NewClient(options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			r, e := open(t, client), newEars()
			subs := r.NewSubscriptions(e)
			t.Cleanup(subs.Close)
			subs.Add("c")
			e.awaitSubscribed(t, "c", 1)
			for i := range 20 { // so that all connections are in use
				acquire(t, r, fmt.Sprint("before", i))
			}
			demote(t, p, master, replica)
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
			publish(t, replica, "c")
			e.awaitHeard(t, "c", 1)
			if n := e.count(e.subscribed, "c"); n != 1 {
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
	began := time.Now()
	for n := 0; time.Since(began) < 3*time.Second; n++ {
		if err := acquire(t, r, "k").Err; err == nil {
			t.Fatal("a replica has taken a lock")
		}
		time.Sleep(time.Millisecond)
	}
	if n := s.Calls(t)["quit"]; n < 2 || n > 8 {
		t.Errorf("%d connections were given up in 3 s", n)
	}
}
