package redisio

import (
	"fmt"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// After every break of the connection the channels are subscribed again, and the
// listener is told so.
func TestSubscriptionsSurvive(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	e := newEars()
	subs := subscribe(t, connect(t, p.URL()), e)
	subs.Add("gone")
	e.awaitSubscribed(t, "gone", 1)
	subs.Remove("gone")
	awaitSubscribers(t, s, "gone", 0)
	channels := []string{"a", "b", "c"}
	for _, channel := range channels {
		subs.Add(channel)
		e.awaitSubscribed(t, channel, 1)
	}
	for i, trouble := range []struct {
		name string
		do   func()
	}{
		{"client killed", func() { s.KillClients(t, "pubsub") }},
		{"connection cut", func() { p.Cut() }},
		{"server restarted", func() { s.Restart(t) }},
		{"server away", func() {
			s.Kill(t)
			redistest.Eventually(t, "the connection to be gone", func() bool { return p.Conns() == 0 })
			s.Restart(t)
		}},
		{"confirmation lost", func() {
			loss := p.DropRepliesTo(redistest.Command("SUBSCRIBE"), 1)
			p.Cut()
			loss.Wait(t)
		}},
		{"refused for a while", func() {
			p.Refuse(true)
			redistest.Eventually(t, "the connection to be gone", func() bool { return p.Conns() == 0 })
			p.Refuse(false)
		}},
	} {
		trouble.do()
		for _, channel := range channels {
			e.awaitSubscribed(t, channel, i+2)
			heard := e.count(e.heard, channel)
			publish(t, s, channel)
			e.awaitHeard(t, channel, heard+1)
		}
		if n := s.Subscribers(t, "gone"); n != 0 {
			t.Errorf("%s: what was removed came back", trouble.name)
		}
	}
	if n := e.count(e.subscribed, "gone"); n != 1 {
		t.Errorf("told %d times of a channel that was removed", n)
	}
}

// A SUBSCRIBE that nobody answers is tried again on another connection.
func TestSubscribeWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	loss := p.DropRepliesTo(redistest.Command("SUBSCRIBE"), 1, redistest.Silent)
	e := newEars()
	subs := subscribe(t, connect(t, p.URL()+"?write_timeout=1m"), e) // which is the limit for pings too
	subs.Add("c")
	loss.Wait(t)
	e.awaitSubscribed(t, "c", 1)
	awaitSubscribers(t, s, "c", 1)
}

// Channels that come and go while there is no connection.
func TestSubscriptionsChangeDuringAnOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	e := newEars()
	subs := subscribe(t, connect(t, p.URL()), e)
	subs.Add("stays")
	subs.Add("goes")
	e.awaitSubscribed(t, "stays", 1)
	e.awaitSubscribed(t, "goes", 1)
	p.Refuse(true)
	subs.Remove("goes")
	subs.Add("comes")
	subs.Add("comes and goes")
	subs.Remove("comes and goes")
	p.Refuse(false)
	e.awaitSubscribed(t, "comes", 1)
	e.awaitSubscribed(t, "stays", 2)
	awaitSubscribers(t, s, "comes and goes", 0)
	if n := s.Subscribers(t, "goes"); n != 0 {
		t.Error("what was removed came back")
	}
	publish(t, s, "comes")
	e.awaitHeard(t, "comes", 1)
}

// A server that is not there yet when the first channel is added.
func TestSubscribeBeforeTheServerIsThere(t *testing.T) {
	s := redistest.Start(t)
	client := connect(t, s.URL())
	s.Kill(t)
	e := newEars()
	subs := subscribe(t, client, e)
	subs.Add("c")
	s.Restart(t)
	e.awaitSubscribed(t, "c", 1)
	publish(t, s, "c")
	e.awaitHeard(t, "c", 1)
}

// A silent server costs time, but no channel.
func TestSubscribeWhileTheServerIsSilent(t *testing.T) {
	s := redistest.Start(t)
	e := newEars()
	subs := subscribe(t, connect(t, s.URL()), e)
	subs.Add("a")
	e.awaitSubscribed(t, "a", 1)
	s.Pause(t)
	for i := range 10 {
		subs.Add(fmt.Sprint("c", i))
	}
	subs.Remove("c3")
	s.Resume(t)
	for i := range 10 {
		if i != 3 {
			e.awaitSubscribed(t, fmt.Sprint("c", i), 1)
		}
	}
	awaitSubscribers(t, s, "c3", 0)
}

// watch looks at each command whose reply passes the proxy.
func watch(p *redistest.Proxy, look func(cmd []string)) {
	p.DropRepliesTo(func(cmd []string) bool { look(cmd); return false }, 1)
}

// Broken connections do not use up the client's pool.
func TestReconnectsGiveConnectionsBack(t *testing.T) {
	s := redistest.Start(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.Addr()}, ForceSingleClient: true, DisableCache: true, BlockingPoolSize: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	e := newEars()
	subs := subscribe(t, client, e)
	subs.Add("c")
	for n := range 5 {
		e.awaitSubscribed(t, "c", n+1)
		s.KillClients(t, "pubsub")
	}
	e.awaitSubscribed(t, "c", 6)
}

// A server that is too busy to subscribe is asked again.
// What the ACL forbids is told, again and again, and disturbs nobody else.
