package pubsub

import (
	"context"
	"net"
	"strconv"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A server that hangs does not prevent the others from answering.
func TestHasShards_AsksPastASilentServer(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 3)
	servers[2].Pause(t)
	defer servers[2].Resume(t)
	for range 8 { // the order is random
		const never = 2 * redistest.Limit
		client := redistest.ConnectWith(t, servers[0].Addr(), rueidis.ClientOption{ConnWriteTimeout: never, Dialer: net.Dialer{Timeout: never, KeepAlive: never}})
		ctx, cancel := context.WithDeadline(t.Context(), redistest.Soon())
		has, err := HasShards(ctx, client)
		if cancel(); !has || err != nil {
			t.Fatalf("has shards: %v, %v", has, err)
		}
	}
}

// Redis 6.2 refuses the question to a user who has the rights for Redis 6.2.
func TestHasShards_IsFalseWithoutTheRight(t *testing.T) {
	t.Parallel()
	for version, older := range map[string]bool{"6.2.14": true, "7.0.15": false, "10.0.0": false, "?": false} {
		impostor := redistest.NewFakeServer(t)
		impostor.Version = version
		impostor.Answer("-NOPERM this user has no permissions to run the 'pubsub' command or its subcommand\r\n", 0)
		has, err := hasShards(t.Context(), redistest.Connect(t, impostor.URL()))
		if has || (err == nil) != older {
			t.Errorf("%s: has shards: %v, %v", version, has, err)
		}
	}
}

// A server that the client does not know yet is discovered without a message to subscribers.
func TestDiscover_PublishesNothing(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	client, e := redistest.Connect(t, servers[0].URL()), redistest.NewEvents()
	subs := NewShards(client, e, func() {})
	t.Cleanup(subs.Close)
	channel := keyspace.PermitsChannel(redistest.Name(t))
	added := redistest.Join(t, servers)
	slot := int(keyspace.Slot(channel))
	servers[slot*len(servers)/16384].MoveSlot(t, slot, added)
	listener, received := added.Client(t), make(chan string, 10)
	listening := make(chan struct{})
	ctx := rueidis.WithOnSubscriptionHook(t.Context(), func(rueidis.PubSubSubscription) { close(listening) })
	go func() {
		_ = listener.Receive(ctx, listener.B().Ssubscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { received <- m.Message })
	}()
	<-listening
	subs.Add(channel)
	e.Await(t, "subscribed "+channel, 1)
	added.MustDo(t, "SPUBLISH", channel, "7")
	if got := <-received; got != "7" {
		t.Errorf("subscribers received %s", strconv.Quote(got))
	}
}
