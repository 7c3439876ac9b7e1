package redisio

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A proxy that closes the connection at SUBSCRIBE is reported once, with the error, and so is the
// recovery.
func TestSubscriptionsThatKeepFailing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	subs, e := subscribe(t, connect(t, p.URL()))
	p.DropRepliesTo(redistest.Command("SUBSCRIBE"), 0)
	subs.Add("c")
	e.await(t, "failing SUBSCRIBE at ", 1)
	if e.failure == nil || !e.failure.Transient || !strings.Contains(e.failure.Error(), "EOF") {
		t.Errorf("reported %v", e.failure)
	}
	before := s.Calls(t)["subscribe"]
	redistest.Eventually(t, "further attempts", func() bool { return s.Calls(t)["subscribe"] >= before+3 })
	if n := e.count("failing SUBSCRIBE at "); n != 1 || e.count("recovered SUBSCRIBE at ") != 0 {
		t.Errorf("the failure was reported %d times, the recovery %d times", n, e.count("recovered SUBSCRIBE at "))
	}
	p.Heal()
	e.await(t, "recovered SUBSCRIBE at ", 1)
	e.await(t, "subscribed c", 1)
	publishAndAwait(t, s, e, "c")
}

// A server that is down is reported by the calls, and not by the subscriptions.
func TestSubscriptionsWithoutAServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	_, e := subscribe(t, connect(t, s.URL()), "c")
	s.Kill(t)
	time.Sleep(failingAfter + 2*reconnectMost) // several attempts
	s.Restart(t)
	e.await(t, "subscribed c", 2)
	if n := e.count("failing SUBSCRIBE at "); n != 0 {
		t.Errorf("the failure was reported %d times", n)
	}
}

// In a cluster, only the server is reported at which SSUBSCRIBE fails.
func TestShardsThatKeepFailing(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	p := redistest.NewProxy(t, servers[1].Addr())
	p.DropRepliesTo(redistest.Command("SSUBSCRIBE"), 0)
	client, err := ConnectWith(t.Context(), rueidis.ClientOption{
		InitAddress: []string{servers[0].Addr()},
		DialCtxFn: func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if address == servers[1].Addr() {
				address = p.Addr()
			}
			return d.DialContext(ctx, "tcp", address)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	e := &eventCounter{events: map[string]int{}}
	subs := open(t, client).NewShards(e)
	t.Cleanup(subs.Close)
	for _, channel := range []string{"a", "b", "c", "d"} { // in both halves of the slots
		subs.Add(channel)
	}
	at := " at " + servers[1].Addr()
	e.await(t, "failing SSUBSCRIBE"+at, 1)
	if n := e.count("failing SSUBSCRIBE at " + servers[0].Addr()); n != 0 || e.count("failing SSUBSCRIBE"+at) != 1 {
		t.Errorf("the server that works was reported %d times", n)
	}
	p.Heal()
	e.await(t, "recovered SSUBSCRIBE"+at, 1)
	for _, channel := range []string{"a", "b", "c", "d"} {
		e.await(t, "subscribed "+channel, 1)
	}
}
