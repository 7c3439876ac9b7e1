package pubsub

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestSubscriptions_ShareOneConnection(t *testing.T) {
	t.Parallel()
	const channels = 2*subscribeBatch + 10
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	p.See(func(cmd []string) {
		if len(cmd) > 1+subscribeBatch {
			t.Errorf("%d channels in one %s", len(cmd)-1, cmd[0])
		}
	})
	subs, e := subscribe(t, redistest.Connect(t, p.URL()))
	for i := range channels {
		subs.Add(fmt.Sprint("c", i))
	}
	for i := range channels {
		channel := fmt.Sprint("c", i)
		e.Await(t, "subscribed "+channel, 1)
		if i%2 == 0 {
			subs.Remove(channel)
		} else {
			redistest.PublishAndAwait(t, s, e, channel)
		}
	}
	s.AwaitSubscribers(t, "c0", 0)
	redistest.Eventually(t, "one connection", func() bool { return s.KillClients(t, "pubsub") == 1 })
	for i := range channels {
		if i%2 == 1 {
			e.Await(t, fmt.Sprint("subscribed c", i), 2)
		}
		s.AwaitSubscribers(t, fmt.Sprint("c", i), int64(i%2)) // two connections may have been killed in turn
	}
}

// After a channel is reported as subscribed, every message is received. A channel that is added again, or that
// was removed a moment ago, is reported at once.
func TestSubscriptions_MissNothingAfterSubscribed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	subs, e := subscribe(t, redistest.Connect(t, s.URL()), "again")
	subscribed := make(chan string, 1000)
	e.OnSubscribed = func(channel string) { subscribed <- channel }
	for i := range 100 {
		channel := fmt.Sprint("c", i%7)
		subs.Add(channel)
		subs.Add(fmt.Sprint("other", i))
		for <-subscribed != channel {
		}
		redistest.PublishAndAwait(t, s, e, channel)
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
		redistest.Listen(t, subs, e, "again")
		redistest.PublishAndAwait(t, s, e, "again")
	}
	// The connection may have been replaced meanwhile, which takes one for all channels.
	if n := s.Calls(t)["subscribe"] - before; n > 10 {
		t.Errorf("%d SUBSCRIBE were sent", n)
	}
}

// After two Adds, a subscription is not reported before Redis has confirmed it.
func TestSubscribed_IsNotReportedBeforeRedisConfirms(t *testing.T) {
	t.Parallel()
	p := redistest.NewProxy(t, redistest.Shared(t).Addr())
	channel := redistest.Name(t)
	subs, e := subscribe(t, redistest.Connect(t, p.URL()), channel+"first")
	p.See(func(cmd []string) {
		if slices.Contains(cmd, channel) && (e.Count("subscribed "+channel) > 0 || subs.Confirmed(channel)) {
			t.Error("reported before Redis has confirmed")
		}
	})
	subs.mu.Lock()
	subs.want[channel] = struct{}{}
	subs.added = append(subs.added, channel, channel)
	subs.wake()
	subs.mu.Unlock()
	e.Await(t, "subscribed "+channel, 1)
	if !subs.Confirmed(channel) || subs.Confirmed("never added") {
		t.Error("what is confirmed")
	}
}

// After every break of the connection the channels are subscribed again and reported to the
// listener, while other channels are added and removed.
func TestSubscriptions_SurviveEveryBreak(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	subs, e := subscribe(t, redistest.Connect(t, p.URL()), "gone", "stays")
	subs.Remove("gone")
	s.AwaitSubscribers(t, "gone", 0)
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
			e.Await(t, "subscribed comes", 1)
			redistest.PublishAndAwait(t, s, e, "comes")
		},
		func() { // silent
			s.Pause(t)
			subs.Add("gone")
			subs.Add("later")
			subs.Remove("gone")
			s.Resume(t)
			e.Await(t, "subscribed later", 1)
			s.AwaitSubscribers(t, "gone", 0)
			s.KillClients(t, "pubsub") // if the client has not closed it
		},
	} {
		trouble()
		e.Await(t, "subscribed stays", i+2)
		redistest.PublishAndAwait(t, s, e, "stays")
		if s.Subscribers(t, "gone")+s.Subscribers(t, "gone too") != 0 {
			t.Errorf("fault %d: a removed channel was subscribed again", i)
		}
	}
	if n := e.Count("subscribed gone"); n != 1 {
		t.Errorf("a removed channel was reported %d times", n)
	}
}

// A SUBSCRIBE without a reply is repeated on another connection.
func TestSubscribe_IsRepeatedWithoutAReply(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	loss := p.DropRepliesTo(redistest.Command("SUBSCRIBE"), 1, redistest.Silent)
	subs, e := subscribe(t, redistest.Connect(t, p.URL()+"?write_timeout=1m")) // which also bounds pings
	subs.Add("c")
	loss.Wait(t)
	e.Await(t, "subscribed c", 1)
	s.AwaitSubscribers(t, "c", 1)
}

// A SUBSCRIBE to a busy server is repeated.
func TestSubscribe_IsRepeatedWhileTheServerIsBusy(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--lua-time-limit", "10")
	p := redistest.NewProxy(t, s.Addr())
	subs, e := subscribe(t, redistest.Connect(t, p.URL()), "a")
	var answered atomic.Int64
	p.See(func(cmd []string) {
		if cmd[0] == "SUBSCRIBE" {
			answered.Add(1)
		}
	})
	end := s.KeepBusy(t)
	subs.Add("b")
	redistest.Eventually(t, "refusals", func() bool { return answered.Load() >= 2 })
	end()
	e.Await(t, "subscribed b", 1)
	if e.Count("refused b") != 0 {
		t.Error("a transient error was reported to the listener")
	}
}

// Channels that the ACL forbids are reported each time, and do not affect other channels.
func TestRefusedChannels_DoNotAffectOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	subs, e := subscribe(t, redistest.Connect(t, s.User(t, "+@all ~* resetchannels &ok*")))
	for _, channel := range []string{"bad1", "ok1", "ok2", "ok3", "bad2"} {
		subs.Add(channel)
	}
	for times := 1; times <= 2; times++ {
		e.Await(t, "refused bad1", times)
		e.Await(t, "refused bad2", times)
		for _, channel := range []string{"ok1", "ok2", "ok3"} {
			e.Await(t, "subscribed "+channel, times)
			redistest.PublishAndAwait(t, s, e, channel)
			if e.Count("refused "+channel) != 0 {
				t.Errorf("%s was refused", channel)
			}
		}
		if times == 1 {
			s.KillClients(t, "pubsub")
		}
	}
	redistest.ExpectError(t, "refusal", e.Refusal(), redistest.Hinted("that channel"))
	subs.Add("bad1")
	e.Await(t, "refused bad1", 3)
	s.MustDo(t, "ACL", "SETUSER", "user", "&bad*")
	redistest.Listen(t, subs, e, "bad1")
	redistest.PublishAndAwait(t, s, e, "bad1")
}

// rueidis ends the process if Redis refuses UNSUBSCRIBE, or the PING that it sends after it.
// Here Redis alternately refuses and accepts PINGs (MISCONF).
func TestSubscriptions_SurviveRefusedPings(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.FailToSave(t)
	var ended atomic.Bool
	var used atomic.Int64
	var use sync.WaitGroup
	for i := range 4 {
		subs, e := subscribe(t, redistest.Connect(t, s.URL()))
		use.Go(func() {
			for n := 0; !ended.Load(); n++ {
				channel := fmt.Sprint("c", i, n)
				redistest.Listen(t, subs, e, channel)
				subs.Remove(channel)
				used.Add(1)
			}
		})
	}
	for range 200 {
		s.MustDo(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
		s.MustDo(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
		before := used.Load()
		redistest.Eventually(t, "a channel to be used while PINGs are refused", func() bool { return used.Load() > before })
	}
	ended.Store(true)
	use.Wait()
}

// Close closes all connections. It does not wait for a server that does not answer, nor for a client whose
// connections are all in use elsewhere. An Add after it has no effect.
func TestClose_DoesNotWaitForASilentServer(t *testing.T) {
	t.Parallel()
	add := func(_ *testing.T, _ *redistest.Server, subs *Subscriptions, _ *redistest.Events) { subs.Add("c") }
	for name, use := range map[string]func(t *testing.T, s *redistest.Server, subs *Subscriptions, e *redistest.Events){
		"unused":  func(*testing.T, *redistest.Server, *Subscriptions, *redistest.Events) {},
		"at once": add,
		"no room": add,
		"subscribed": func(t *testing.T, _ *redistest.Server, subs *Subscriptions, e *redistest.Events) {
			redistest.Listen(t, subs, e, "c")
		},
		"silent": func(t *testing.T, s *redistest.Server, subs *Subscriptions, e *redistest.Events) {
			redistest.Listen(t, subs, e, "c")
			s.Pause(t)
			subs.Add("d")
		},
		"connecting": func(t *testing.T, s *redistest.Server, subs *Subscriptions, _ *redistest.Events) {
			s.Pause(t)
			subs.Add("c")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			client := redistest.ConnectWith(t, s.Addr(), rueidis.ClientOption{ForceSingleClient: true, BlockingPoolSize: 1})
			if name == "no room" {
				_, giveBack := client.Dedicate()
				defer giveBack()
			}
			subs, e := subscribe(t, client)
			use(t, s, subs, e)
			start := time.Now()
			subs.Close()
			if d := time.Since(start); d > 8*time.Second { // the client would close the connection after 10 s
				t.Errorf("Close took %v", d)
			}
			s.Resume(t)
			subs.Add("c")
			subs.Remove("c")
			subs.Close() // again
			s.AwaitSubscribers(t, "c", 0)
		})
	}
}
