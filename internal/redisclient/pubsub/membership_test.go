package pubsub

import (
	"context"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A connection that has broken may be opened to the same server again. Only a server that has left is avoided, and it
// is left only if the connection still leads to it.
func TestReplacement_AvoidsOnlyAServerThatHasLeft(t *testing.T) {
	t.Parallel()
	s, e := redistest.Start(t), redistest.NewEvents()
	client := redistest.Connect(t, s.URL())
	subs := NewSubscriptions(client, e, first, func() {})
	avoided, servers := make(chan string, 10), []string{"one", "two", "three"}
	subs.dedicate = func(_, avoid string) *conn {
		avoided <- avoid
		server := servers[0]
		servers = servers[1:]
		return newConn(client, server)
	}
	left := make(chan string) // the server of each check
	subs.hasLeft = func(ctx context.Context, server string) bool {
		select {
		case left <- server:
		case <-ctx.Done():
		}
		return true
	}
	t.Cleanup(subs.Close)
	redistest.Listen(t, subs, e, "c")
	s.KillClients(t, "pubsub")
	e.Await(t, "subscribed c", 2)
	if server := <-left; server != "two" {
		t.Errorf("%s was checked", server)
	}
	e.Await(t, "subscribed c", 3)
	for _, want := range []string{"", "", "two"} {
		if avoid := <-avoided; avoid != want {
			t.Errorf("%q was avoided, expected %q", avoid, want)
		}
	}
}
