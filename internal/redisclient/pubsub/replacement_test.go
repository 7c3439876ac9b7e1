package pubsub

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// The messages on wanted channels are received without a gap, and each subscription is reported once, while
// the connection is replaced repeatedly to remove unused channels. It is not replaced too often.
func TestReplacement_MissesNoMessage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	wanted := []string{"wanted0", "wanted1", "wanted2"}
	began := time.Now()
	subs, e := subscribe(t, redistest.Connect(t, s.URL()+"?write_timeout=1m"), wanted...) // so that a busy machine breaks no connection
	published := 0
	for round := range 5 {
		gone := fmt.Sprint("gone", round)
		redistest.Listen(t, subs, e, gone)
		subs.Remove(gone)
		redistest.Eventually(t, "the channel to go", func() bool {
			for _, channel := range wanted {
				s.MustDo(t, "PUBLISH", channel, "0")
			}
			published++
			return s.Subscribers(t, gone) == 0
		})
	}
	for _, channel := range wanted {
		e.Await(t, "message "+channel, published)
		s.AwaitSubscribers(t, channel, 1)
	}
	for n := range 200 { // as fast as they come
		redistest.Listen(t, subs, e, fmt.Sprint("c", n))
		subs.Remove(fmt.Sprint("c", n))
	}
	for _, channel := range wanted {
		if n := e.Count("subscribed " + channel); n != 1 {
			t.Errorf("%s: %d subscriptions were reported, want 1", channel, n)
		}
	}
	calls := s.Calls(t)
	if n, most := calls["hello"], int64(time.Since(began)/unusedDelay)+5; n > most {
		t.Errorf("%d connections in %v", n, time.Since(began))
	}
	if n := calls["unsubscribe"]; n != 0 {
		t.Errorf("%d UNSUBSCRIBE were sent", n)
	}
}

// reopen replaces the connection of subscriptions by one of a client.
func reopen(t *testing.T, subs *Subscriptions, client rueidis.Client) {
	t.Helper()
	current := func() *conn {
		subs.mu.Lock()
		defer subs.mu.Unlock()
		return subs.current
	}
	before := current()
	subs.dedicate = func(_, _ string) *conn { return newConn(client, "") }
	subs.Replace()
	redistest.Eventually(t, "the connection to be replaced", func() bool { return current() != before })
}

// A connection ends before its replacement is subscribed, which is known only later, or never. Messages are missed
// meanwhile, so each channel is reported again, the first one first.
func TestReplacement_ReportsAgainWhatEndedBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ resp2, shards, neverKnown bool }{
		"RESP3":       {},
		"RESP2":       {resp2: true},
		"shards":      {shards: true},
		"never known": {neverKnown: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const channel = "c"
			var s *redistest.Server
			var subs *Subscriptions
			e, reconnects := redistest.NewEvents(), atomic.Int64{}
			reconnected := func() { reconnects.Add(1) }
			publish, subscribers := "PUBLISH", func() int64 { return s.Subscribers(t, channel) }
			if c.shards {
				s = redistest.Cluster(t, 1)[0]
				shards := NewShards(redistest.Connect(t, s.URL()), e, reconnected)
				t.Cleanup(shards.Close)
				redistest.Listen(t, shards, e, channel)
				subs = shards.on[channel].Subscriptions
				publish, subscribers = "SPUBLISH", func() int64 { return s.ShardSubscribers(t, channel) }
			} else {
				s = redistest.Start(t)
				subs = NewSubscriptions(redistest.Connect(t, s.URL()), e, first, reconnected)
				t.Cleanup(subs.Close)
				redistest.Listen(t, subs, e, channel)
			}
			options := rueidis.ClientOption{ForceSingleClient: true, DisableRetry: true, AlwaysRESP2: c.resp2}
			options.ConnWriteTimeout = time.Minute // so that no PING tells of the end
			p := redistest.NewProxy(t, s.Addr())
			reopen(t, subs, redistest.ConnectWith(t, p.Addr(), options))
			redistest.Eventually(t, "the first connection to be closed", func() bool { return subscribers() == 1 })
			if n := e.Count("subscribed " + channel); n != 1 {
				t.Errorf("%d subscriptions were reported, want 1", n)
			}
			e.OnSubscribed = func(channel string) {
				if !c.shards && channel != first && e.Count("subscribed "+first) < 2 {
					t.Errorf("%s was reported before the first channel", channel)
				}
			}

			p.Freeze(true)
			s.KillClients(t, "pubsub")
			s.MustDo(t, publish, channel, "missed")
			reopen(t, subs, redistest.ConnectWith(t, s.Addr(), options))
			if !c.neverKnown {
				p.Freeze(false)
			}
			e.Await(t, "subscribed "+channel, 2)
			if n := e.Count("message " + channel); n != 0 {
				t.Error("the message was not missed")
			}
			if n := reconnects.Load(); n != 1 {
				t.Errorf("%d reconnects were reported, want 1", n)
			}
			s.MustDo(t, publish, channel, "0")
			e.Await(t, "message "+channel, 1)
			p.Freeze(false)
		})
	}
}

// A confirmation that is read from a connection that is being closed is no reconnect, and reports no subscription.
func TestReplacement_LateConfirmationIsNoReconnect(t *testing.T) {
	t.Parallel()
	e := redistest.NewEvents()
	subs := newSubscriptions(e, func() { t.Error("a reconnect was reported") })
	subs.want["c"], subs.broke = struct{}{}, true
	subs.noteConfirmed(&conn{asked: map[string]bool{"c": false}}, "c")
	if n := e.Count("subscribed c"); n != 0 || !subs.broke {
		t.Errorf("%d subscriptions were reported, broke: %v", n, subs.broke)
	}
}

// In a cluster, a connection is replaced by one to the same server.
func TestReplacedConnections_StayOnTheirServer(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 3)
	subs, e := subscribe(t, redistest.Connect(t, "redis://"+servers[0].Addr()), "stays")
	on := slices.IndexFunc(servers, func(s *redistest.Server) bool { return s.Subscribers(t, "stays") == 1 })
	for round := range 10 {
		gone := fmt.Sprint("gone", round)
		redistest.Listen(t, subs, e, gone)
		subs.Remove(gone)
		servers[on].AwaitSubscribers(t, gone, 0)
		servers[on].AwaitSubscribers(t, "stays", 1)
	}
	servers[on].Stop()
	e.Await(t, "subscribed stays", 2)
}

// A connection is replaced soon even after a slow replacement.
func TestReplacement_ComesSoonAfterASlowOne(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	subs, e := subscribe(t, redistest.Connect(t, p.URL()), "stays", "first", "second")
	p.Delay(300 * time.Millisecond) // so that it takes longer than a twentieth of redistest.Limit
	for _, channel := range []string{"first", "second"} {
		subs.Remove(channel)
		s.AwaitSubscribers(t, channel, 0)
	}
	redistest.PublishAndAwait(t, s, e, "stays")
}

// A connection that may lead to the wrong server is replaced at once, even while unused channels have to
// wait, and by one that is opened after that was known.
func TestReplacement_IsAtOnceIfTheServerMayBeWrong(t *testing.T) {
	t.Parallel()
	former, master, other := redistest.Start(t), redistest.Start(t), redistest.Start(t)
	p := redistest.NewProxy(t, former.Addr())
	subs, e := subscribe(t, redistest.Connect(t, p.URL()), "stays", "goes")
	former.Pause(t)
	conns := p.Conns()
	subs.Remove("goes")
	redistest.Eventually(t, "another connection to be opened", func() bool { return p.Conns() > conns })
	p.Redirect(master.Addr())
	subs.Replace()
	former.Resume(t)
	former.AwaitSubscribers(t, "goes", 0)
	if at, _, _ := subs.replaceAt(); at.After(time.Now()) {
		t.Errorf("replaced in %v", time.Until(at))
	}
	master.AwaitSubscribers(t, "stays", 1)
	redistest.PublishAndAwait(t, master, e, "stays")
	if n := master.Calls(t)["hello"]; n > 5 {
		t.Errorf("%d connections", n)
	}

	// Also while a replacement is being prepared that does not end.
	redistest.Listen(t, subs, e, "goes")
	master.Pause(t)
	conns = p.Conns()
	subs.Remove("goes")
	redistest.Eventually(t, "another connection to be opened", func() bool { return p.Conns() > conns })
	p.Redirect(other.Addr())
	subs.Replace()
	other.AwaitSubscribers(t, "stays", 1)
	if n := e.Count("subscribed stays"); n != 1 {
		t.Errorf("%d subscriptions were reported: there was a gap", n)
	}
	master.Resume(t)
	master.AwaitSubscribers(t, "stays", 0) // it no longer gets a SUBSCRIBE

	// One attempt fails.
	held := p.Hold(redistest.Command("SUBSCRIBE"))
	p.Redirect(former.Addr())
	subs.Replace()
	held.Wait(t)
	former.AwaitSubscribers(t, "stays", 1)
}

// A connection that is being opened is replaced as well, and a failure to remove unused channels does not delay
// another replacement.
func TestReplacement_AlsoReplacesAConnectionThatIsBeingOpened(t *testing.T) {
	t.Parallel()
	former, master := redistest.Start(t), redistest.Start(t)
	p := redistest.NewProxy(t, former.Addr())
	subs, _ := subscribe(t, redistest.Connect(t, p.URL()), "c")
	former.Pause(t)
	p.Cut()
	redistest.Eventually(t, "another connection to be opened", func() bool {
		subs.mu.Lock()
		defer subs.mu.Unlock()
		return subs.current == nil && p.Conns() > 0
	})
	p.Redirect(master.Addr())
	subs.Replace()
	former.Resume(t)
	master.AwaitSubscribers(t, "c", 1)

	subs.noteReplacement(replacement{pause: time.Hour})
	subs.Replace()
	if at, _, _ := subs.replaceAt(); at.After(time.Now()) {
		t.Errorf("replaced in %v", time.Until(at))
	}
}

// A client whose pool has room for only a few connections is sufficient: a broken connection is returned, and
// if there is no room for two, a connection is replaced with a gap.
func TestReplacement_NeedsFewConnections(t *testing.T) {
	t.Parallel()
	for room := 1; room <= 2; room++ {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			client := redistest.ConnectWith(t, s.Addr(), rueidis.ClientOption{ForceSingleClient: true, BlockingPoolSize: room})
			subs, e := subscribe(t, client, "stays", "goes")
			for n := range 5 {
				s.KillClients(t, "pubsub")
				e.Await(t, "subscribed stays", n+2)
			}
			e.Await(t, "subscribed goes", 6)
			subs.Remove("goes")
			s.AwaitSubscribers(t, "goes", 0)
			if room == 1 {
				e.Await(t, "subscribed stays", 7)
			} else if n := e.Count("subscribed stays"); n != 6 {
				t.Errorf("%d subscriptions were reported, want 6: there was a gap", n)
			}
			redistest.PublishAndAwait(t, s, e, "stays")
		})
	}
}
