package redisio

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// watch looks at each command whose reply passes the proxy.
func watch(p *redistest.Proxy, look func(cmd []string)) {
	p.DropRepliesTo(func(cmd []string) bool { look(cmd); return false }, 1)
}

func TestManyChannelsShareOneConnection(t *testing.T) {
	t.Parallel()
	const channels = 2*subscribeBatch + 10
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	watch(p, func(cmd []string) {
		if len(cmd) > 1+subscribeBatch {
			t.Errorf("%d channels in one %s", len(cmd)-1, cmd[0])
		}
	})
	subs, e := subscribe(t, connect(t, p.URL()))
	for i := range channels {
		subs.Add(fmt.Sprint("c", i))
	}
	for i := range channels {
		channel := fmt.Sprint("c", i)
		e.await(t, "subscribed "+channel, 1)
		if i%2 == 0 {
			subs.Remove(channel)
		} else {
			hears(t, s, e, channel)
		}
	}
	awaitSubscribers(t, s, "c0", 0)
	redistest.Eventually(t, "one connection", func() bool { return s.KillClients(t, "pubsub") == 1 })
	for i := range channels {
		if i%2 == 1 {
			e.await(t, fmt.Sprint("subscribed c", i), 2)
		}
		awaitSubscribers(t, s, fmt.Sprint("c", i), int64(i%2)) // two connections may have been killed, one after the other
	}
}

// Whenever it is told that a channel is subscribed, a message published from then on is heard.
// Who adds a channel again, or one that was removed a moment ago, is told so at once.
func TestNothingIsMissedAfterSubscribed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	subs, e := subscribe(t, connect(t, s.URL()), "again")
	told := make(chan string, 1000)
	e.onSubscribed = func(channel string) { told <- channel }
	for i := range 100 {
		channel := fmt.Sprint("c", i%7)
		subs.Add(channel)
		subs.Add(fmt.Sprint("other", i))
		for <-told != channel {
		}
		hears(t, s, e, channel)
		if i%2 == 0 {
			subs.Remove(channel)
		}
	}
	before := s.Calls(t)["subscribe"]
	for n := range 20 {
		if n%2 == 0 {
			subs.Remove("again")
		}
		subs.Remove("never added")
		listen(t, subs, e, "again")
		hears(t, s, e, "again")
	}
	// The connection may have been replaced meanwhile, which takes one for all channels.
	if n := s.Calls(t)["subscribe"] - before; n > 10 {
		t.Errorf("%d SUBSCRIBE were sent", n)
	}
}

// Two Adds at once are not told of a subscription that Redis has yet to confirm.
func TestSubscribedIsNotToldTooEarly(t *testing.T) {
	t.Parallel()
	p := redistest.NewProxy(t, redistest.Shared(t).Addr())
	channel := redistest.Name(t)
	subs, e := subscribe(t, connect(t, p.URL()), channel+"first")
	watch(p, func(cmd []string) {
		if slices.Contains(cmd, channel) && (e.count("subscribed "+channel) > 0 || subs.Confirmed(channel)) {
			t.Error("told before Redis confirmed")
		}
	})
	subs.mu.Lock()
	subs.want[channel] = struct{}{}
	subs.touched = append(subs.touched, channel, channel)
	subs.wake()
	subs.mu.Unlock()
	e.await(t, "subscribed "+channel, 1)
	if !subs.Confirmed(channel) || subs.Confirmed("never added") {
		t.Error("what is confirmed")
	}
}

// Whoever is subscribed to a channel is subscribed to the first one too, at every moment: as
// the server has it, and as the listener is told.
func TestOneChannelComesFirst(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	watch(p, func(cmd []string) {
		if slices.Index(cmd, first) > 1 {
			t.Errorf("the first channel stands behind %s", cmd[1])
		}
	})
	subs, e := subscribe(t, connect(t, p.URL()+"?write_timeout=1m")) // so that a busy machine breaks no connection
	e.onSubscribed = func(channel string) {
		if channel != first && e.count("subscribed "+channel) >= e.count("subscribed "+first) {
			t.Errorf("told of %s before the first channel", channel) // on this connection
		}
	}
	if subs.Confirmed(first) {
		t.Error("the first channel is confirmed before anything was added")
	}
	numsub := []string{"PUBSUB", "NUMSUB", first}
	for i := range subscribeBatch + 100 {
		channel := fmt.Sprint("c", i)
		subs.Add(channel)
		numsub = append(numsub, channel)
	}
	check := func() {
		t.Helper()
		counts, err := s.Do(t, numsub...).AsIntMap()
		if err != nil {
			t.Fatal(err)
		}
		for channel, n := range counts {
			if n > counts[first] {
				t.Errorf("%s has %d subscribers, and the first channel has %d", channel, n, counts[first])
			}
		}
	}
	for n := range 10 {
		// No confirmation is under way when the connection breaks: it would come too late.
		for _, channel := range numsub[3:] {
			for e.count("subscribed "+channel) <= n {
				check()
			}
		}
		if n%2 == 0 { // a replacement, without a gap
			listen(t, subs, e, "gone")
			subs.Remove("gone")
			for s.Subscribers(t, "gone") > 0 {
				check()
			}
		}
		s.KillClients(t, "pubsub")
	}
	e.await(t, "subscribed "+first, 11)
	hears(t, s, e, first)
}

// The first channel stays when no other one is left, and ends with Close.
func TestTheFirstChannelStays(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	subs, e := subscribe(t, connect(t, s.URL()))
	awaitSubscribers(t, s, first, 0)
	for range 3 {
		listen(t, subs, e, "goes")
		subs.Remove("goes")
		awaitSubscribers(t, s, "goes", 0)
		awaitSubscribers(t, s, first, 1)
	}
	do(t, s, "PUBLISH", first, "a payload")
	e.await(t, "heard "+first+": a payload", 1)
	if n := e.count("subscribed " + first); n != 1 {
		t.Errorf("told %d times of the first channel, want once: there was a gap", n)
	}
	subs.Close()
	awaitSubscribers(t, s, first, 0)
	if subs.Confirmed(first) {
		t.Error("it is confirmed after Close")
	}
}

// A first channel that the ACL forbids keeps nobody from the others, and is asked for again on the
// next connection.
func TestTheFirstChannelIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	subs, e := subscribe(t, connect(t, user(t, s, "+@all ~* resetchannels &c*")), "c0")
	for i := 1; i < 5; i++ {
		listen(t, subs, e, fmt.Sprint("c", i))
	}
	if n := e.count("refused " + first); n != 1 || subs.Confirmed(first) {
		t.Errorf("refused %d times, confirmed: %v", n, subs.Confirmed(first))
	}
	do(t, s, "ACL", "SETUSER", "user", "allchannels")
	s.KillClients(t, "pubsub")
	e.await(t, "subscribed "+first, 1)
	e.await(t, "subscribed c4", 2)
	hears(t, s, e, first, "c0", "c4")
}

// After every break of the connection the channels are subscribed again, and the
// listener is told so. Those that come and go meanwhile do not matter.
func TestSubscriptionsSurvive(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	subs, e := subscribe(t, connect(t, p.URL()), "gone", "stays")
	subs.Remove("gone")
	awaitSubscribers(t, s, "gone", 0)
	for i, trouble := range []func(){
		func() { s.KillClients(t, "pubsub") },
		p.Cut,
		func() { s.Restart(t) },
		func() { // the confirmation is lost
			loss := p.DropRepliesTo(redistest.Command("SUBSCRIBE"), 1)
			p.Cut()
			loss.Wait(t)
		},
		func() { // refused for a while
			subs.Add("gone too")
			p.Refuse(true)
			redistest.Eventually(t, "the connection to be gone", func() bool { return p.Conns() == 0 })
			subs.Remove("gone too")
			subs.Add("comes")
			subs.Add("gone")
			subs.Remove("gone")
			p.Refuse(false)
			e.await(t, "subscribed comes", 1)
			hears(t, s, e, "comes")
		},
		func() { // silent
			s.Pause(t)
			subs.Add("gone")
			subs.Add("later")
			subs.Remove("gone")
			s.Resume(t)
			e.await(t, "subscribed later", 1)
			awaitSubscribers(t, s, "gone", 0)
			s.KillClients(t, "pubsub") // if it was not given up for its silence
		},
	} {
		trouble()
		e.await(t, "subscribed stays", i+2)
		hears(t, s, e, "stays")
		if s.Subscribers(t, "gone")+s.Subscribers(t, "gone too") != 0 {
			t.Errorf("trouble %d: a channel came back", i)
		}
	}
	if n := e.count("subscribed gone"); n != 1 {
		t.Errorf("told %d times of a channel that was removed", n)
	}
}

// A SUBSCRIBE that nobody answers is tried again on another connection.
func TestSubscribeWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	loss := p.DropRepliesTo(redistest.Command("SUBSCRIBE"), 1, redistest.Silent)
	subs, e := subscribe(t, connect(t, p.URL()+"?write_timeout=1m")) // which is the limit for pings too
	subs.Add("c")
	loss.Wait(t)
	e.await(t, "subscribed c", 1)
	awaitSubscribers(t, s, "c", 1)
}

// A server that is too busy to subscribe is asked again.
func TestSubscribeWhileTheServerIsBusy(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--lua-time-limit", "10")
	p := redistest.NewProxy(t, s.Addr())
	subs, e := subscribe(t, connect(t, p.URL()), "a")
	var answered atomic.Int64
	watch(p, func(cmd []string) {
		if cmd[0] == "SUBSCRIBE" {
			answered.Add(1)
		}
	})
	end := keepBusy(t, s)
	subs.Add("b")
	redistest.Eventually(t, "refusals", func() bool { return answered.Load() >= 2 })
	end()
	e.await(t, "subscribed b", 1)
	if e.count("refused b") != 0 {
		t.Error("the listener was told of what passes by itself")
	}
}

// What the ACL forbids is told, again and again, and disturbs nobody else.
func TestRefusedChannels(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	subs, e := subscribe(t, connect(t, user(t, s, "+@all ~* resetchannels &ok*")))
	for _, channel := range []string{"bad1", "ok1", "ok2", "ok3", "bad2"} {
		subs.Add(channel)
	}
	for times := 1; times <= 2; times++ {
		e.await(t, "refused bad1", times)
		e.await(t, "refused bad2", times)
		for _, channel := range []string{"ok1", "ok2", "ok3"} {
			e.await(t, "subscribed "+channel, times)
			hears(t, s, e, channel)
			if e.count("refused "+channel) != 0 {
				t.Errorf("%s was refused", channel)
			}
		}
		if times == 1 {
			s.KillClients(t, "pubsub")
		}
	}
	expect(t, "refusal", e.refusal, hinted("+subscribe"))
	subs.Add("bad1")
	e.await(t, "refused bad1", 3)
	do(t, s, "ACL", "SETUSER", "user", "&bad*")
	listen(t, subs, e, "bad1")
	hears(t, s, e, "bad1")
}

// rueidis ends the process if Redis refuses UNSUBSCRIBE, or the PING that it sends behind
// it. Here Redis begins and ceases to refuse PINGs all the time (MISCONF).
func TestSubscriptionsWhileRedisRefusesPings(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	failToSave(t, s)
	var ended atomic.Bool
	var use sync.WaitGroup
	for i := range 4 {
		subs, e := subscribe(t, connect(t, s.URL()))
		use.Go(func() {
			for n := 0; !ended.Load(); n++ {
				channel := fmt.Sprint("c", i, n)
				listen(t, subs, e, channel)
				subs.Remove(channel)
			}
		})
	}
	for range 200 {
		do(t, s, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
		do(t, s, "CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
		time.Sleep(5 * time.Millisecond)
	}
	ended.Store(true)
	use.Wait()
}

// What is wanted is heard without a gap, and told once, while the connection is replaced
// again and again to get rid of what is not; which is done now and then only.
func TestReplacedConnections(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	wanted := []string{"wanted0", "wanted1", "wanted2"}
	began := time.Now()
	subs, e := subscribe(t, connect(t, s.URL()+"?write_timeout=1m"), wanted...) // so that a busy machine breaks no connection
	published := 0
	for round := range 5 {
		gone := fmt.Sprint("gone", round)
		listen(t, subs, e, gone)
		subs.Remove(gone)
		redistest.Eventually(t, "the channel to go", func() bool {
			for _, channel := range wanted {
				do(t, s, "PUBLISH", channel, "0")
			}
			published++
			return s.Subscribers(t, gone) == 0
		})
	}
	for _, channel := range wanted {
		e.await(t, "heard "+channel, published)
		if n := e.count("subscribed " + channel); n != 1 {
			t.Errorf("%s: told of %d subscriptions, want 1", channel, n)
		}
		awaitSubscribers(t, s, channel, 1)
	}
	for n := range 200 { // as fast as they come
		listen(t, subs, e, fmt.Sprint("c", n))
		subs.Remove(fmt.Sprint("c", n))
	}
	calls := s.Calls(t)
	if n, most := calls["hello"], int64(time.Since(began)/linger)+5; n > most {
		t.Errorf("%d connections in %v", n, time.Since(began))
	}
	if n := calls["unsubscribe"]; n != 0 {
		t.Errorf("%d UNSUBSCRIBE were sent", n)
	}
}

// However long it took to replace a connection, another is replaced soon.
func TestReplacedSlowly(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	subs, e := subscribe(t, connect(t, p.URL()), "stays", "first", "second")
	p.Delay(300 * time.Millisecond) // so that it takes longer than a twentieth of redistest.Limit
	for _, channel := range []string{"first", "second"} {
		subs.Remove(channel)
		awaitSubscribers(t, s, channel, 0)
	}
	hears(t, s, e, "stays")
}

// A connection that may lead to the wrong server is replaced at once, also when unused channels have
// to wait; and by one that is opened after that was known.
func TestReplacedAtOnce(t *testing.T) {
	t.Parallel()
	former, master, other := redistest.Start(t), redistest.Start(t), redistest.Start(t)
	p := redistest.NewProxy(t, former.Addr())
	subs, e := subscribe(t, connect(t, p.URL()), "stays", "goes")
	former.Pause(t)
	conns := p.Conns()
	subs.Remove("goes")
	redistest.Eventually(t, "another connection to be opened", func() bool { return p.Conns() > conns })
	time.Sleep(300 * time.Millisecond) // it takes so long that the next one would have to wait for seconds
	p.Redirect(master.Addr())
	subs.replace()
	former.Resume(t)
	awaitSubscribers(t, former, "goes", 0)
	if at, _, _ := subs.replaceAt(); at.After(time.Now()) {
		t.Errorf("replaced in %v", time.Until(at))
	}
	awaitSubscribers(t, master, "stays", 1)
	hears(t, master, e, "stays")
	if n := master.Calls(t)["hello"]; n > 5 {
		t.Errorf("%d connections", n)
	}

	// Also while a replacement is being prepared that does not come to an end.
	listen(t, subs, e, "goes")
	master.Pause(t)
	conns = p.Conns()
	subs.Remove("goes")
	redistest.Eventually(t, "another connection to be opened", func() bool { return p.Conns() > conns })
	p.Redirect(other.Addr())
	subs.replace()
	awaitSubscribers(t, other, "stays", 1)
	if n := e.count("subscribed stays"); n != 1 {
		t.Errorf("told of %d subscriptions: there was a gap", n)
	}
	master.Resume(t)

	// That fails for once.
	held := p.Hold(redistest.Command("SUBSCRIBE"))
	p.Redirect(former.Addr())
	subs.replace()
	held.Wait(t)
	awaitSubscribers(t, former, "stays", 1)
}

// One that is being opened meanwhile counts as one that there is, and a failure to get rid of unused
// channels delays nothing else.
func TestReplacedWhileOpened(t *testing.T) {
	t.Parallel()
	former, master := redistest.Start(t), redistest.Start(t)
	p := redistest.NewProxy(t, former.Addr())
	subs, _ := subscribe(t, connect(t, p.URL()), "c")
	former.Pause(t)
	p.Cut()
	redistest.Eventually(t, "another connection to be opened", func() bool {
		subs.mu.Lock()
		defer subs.mu.Unlock()
		return subs.current == nil && p.Conns() > 0
	})
	p.Redirect(master.Addr())
	subs.replace()
	former.Resume(t)
	awaitSubscribers(t, master, "c", 1)

	subs.prepared(replacement{pause: time.Hour})
	subs.replace()
	if at, _, _ := subs.replaceAt(); at.After(time.Now()) {
		t.Errorf("replaced in %v", time.Until(at))
	}
}

// A client whose pool has room for few connections only gets along: a broken one does not use
// it up, and where there is no room for two, one is replaced with a gap.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	for room := 1; room <= 2; room++ {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			client := customized(t, s.Addr(), rueidis.ClientOption{ForceSingleClient: true, BlockingPoolSize: room})
			subs, e := subscribe(t, client, "stays", "goes")
			for n := range 5 {
				s.KillClients(t, "pubsub")
				e.await(t, "subscribed stays", n+2)
			}
			e.await(t, "subscribed goes", 6)
			subs.Remove("goes")
			awaitSubscribers(t, s, "goes", 0)
			if room == 1 {
				e.await(t, "subscribed stays", 7)
			} else if n := e.count("subscribed stays"); n != 6 {
				t.Errorf("told of %d subscriptions, want 6: there was a gap", n)
			}
			hears(t, s, e, "stays")
		})
	}
}

// Close ends what there is, and does not wait for a server that does not answer, nor for a client
// whose connections are all in use elsewhere. Nothing comes of what is added afterwards.
func TestCloseSubscriptions(t *testing.T) {
	t.Parallel()
	add := func(_ *testing.T, _ *redistest.Server, subs *Subscriptions, _ *ears) { subs.Add("c") }
	for name, use := range map[string]func(t *testing.T, s *redistest.Server, subs *Subscriptions, e *ears){
		"unused":     func(*testing.T, *redistest.Server, *Subscriptions, *ears) {},
		"at once":    add,
		"no room":    add,
		"subscribed": func(t *testing.T, _ *redistest.Server, subs *Subscriptions, e *ears) { listen(t, subs, e, "c") },
		"silent": func(t *testing.T, s *redistest.Server, subs *Subscriptions, e *ears) {
			listen(t, subs, e, "c")
			s.Pause(t)
			subs.Add("d")
		},
		"connecting": func(t *testing.T, s *redistest.Server, subs *Subscriptions, _ *ears) { s.Pause(t); subs.Add("c") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			client := customized(t, s.Addr(), rueidis.ClientOption{ForceSingleClient: true, BlockingPoolSize: 1})
			if name == "no room" {
				_, giveBack := client.Dedicate()
				defer giveBack()
			}
			subs, e := subscribe(t, client)
			use(t, s, subs, e)
			start := time.Now()
			subs.Close()
			if d := time.Since(start); d > 8*time.Second { // the client would give up a connection after 10 s
				t.Errorf("Close took %v", d)
			}
			s.Resume(t)
			subs.Add("c")
			subs.Remove("c")
			subs.Close() // again
			awaitSubscribers(t, s, "c", 0)
		})
	}
}
