package pubsub

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// A proxy that closes the connection at SUBSCRIBE is reported once, with the error, and so is the
// recovery.
func TestSubscriptions_ReportAFailureOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	subs, e := subscribe(t, redistest.Connect(t, p.URL()))
	p.DropRepliesTo(redistest.Command("SUBSCRIBE"), 0)
	subs.Add("c")
	e.Await(t, "failing SUBSCRIBE at ", 1)
	if e.Failure() == nil || !e.Failure().Transient || !strings.Contains(e.Failure().Error(), "EOF") {
		t.Errorf("reported %v", e.Failure())
	}
	before := s.Calls(t)["subscribe"]
	redistest.Eventually(t, "further attempts", func() bool { return s.Calls(t)["subscribe"] >= before+3 })
	if n := e.Count("failing SUBSCRIBE at "); n != 1 || e.Count("recovered SUBSCRIBE at ") != 0 {
		t.Errorf("the failure was reported %d times, the recovery %d times", n, e.Count("recovered SUBSCRIBE at "))
	}
	p.Heal()
	e.Await(t, "recovered SUBSCRIBE at ", 1)
	e.Await(t, "subscribed c", 1)
	redistest.PublishAndAwait(t, s, e, "c")
}

// A server that is down is reported by the calls, and not by the subscriptions.
func TestSubscriptions_DoNotReportAServerThatIsDown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var first, last atomic.Int64 // when a connection could not be opened
	client := redistest.ConnectWith(t, s.Addr(), rueidis.ClientOption{DialCtxFn: func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			now := time.Now().UnixNano()
			first.CompareAndSwap(0, now)
			last.Store(now)
		}
		return conn, err
	}})
	_, e := subscribe(t, client, "c")
	s.Kill(t)
	redistest.Eventually(t, "an attempt to fail after the time in which a failure is reported", func() bool {
		return time.Duration(last.Load()-first.Load()) > failingAfter
	})
	s.Restart(t)
	e.Await(t, "subscribed c", 2)
	if n := e.Count("failing SUBSCRIBE at "); n != 0 {
		t.Errorf("the failure was reported %d times", n)
	}
}

// In a cluster, only the server is reported at which SSUBSCRIBE fails.
func TestShards_ReportOnlyTheServerThatFails(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	p := redistest.NewProxy(t, servers[1].Addr())
	p.DropRepliesTo(redistest.Command("SSUBSCRIBE"), 0)
	client, err := redisio.ConnectWith(t.Context(), rueidis.ClientOption{
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
	e := redistest.NewEvents()
	subs := NewShards(client, e, func() {})
	t.Cleanup(subs.Close)
	for _, channel := range []string{"a", "b", "c", "d"} { // in both halves of the slots
		subs.Add(channel)
	}
	at := " at " + servers[1].Addr()
	e.Await(t, "failing SSUBSCRIBE"+at, 1)
	if n := e.Count("failing SSUBSCRIBE at " + servers[0].Addr()); n != 0 || e.Count("failing SSUBSCRIBE"+at) != 1 {
		t.Errorf("the server that works was reported %d times", n)
	}
	p.Heal()
	e.Await(t, "recovered SSUBSCRIBE"+at, 1)
	for _, channel := range []string{"a", "b", "c", "d"} {
		e.Await(t, "subscribed "+channel, 1)
	}
}
