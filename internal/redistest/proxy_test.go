//go:build unix

package redistest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

func TestProxyPasses(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	if got, want := p.URL(), "redis://"+p.Addr(); got != want {
		t.Errorf("URL %q, want %q", got, want)
	}
	key := Name(t)
	a, b := dial(t, p.Addr()), dial(t, p.Addr())
	if got := a.roundTrip("SET", key, "v"); got != "OK" {
		t.Errorf("SET: %q", got)
	}
	if got := b.roundTrip("GET", key); got != "v" {
		t.Errorf("GET: %q", got)
	}
	if got := p.Conns(); got != 2 {
		t.Errorf("%d connections, want 2", got)
	}
	a.conn.Close()
	Eventually(t, "the end of one connection", func() bool { return p.Conns() == 1 })
	b.send("QUIT")
	b.expect("OK")
	b.expectEnd()
	Eventually(t, "the end of both", func() bool { return p.Conns() == 0 })
}

func TestProxyPassesBigAndManyFrames(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	c := dial(t, p.Addr())
	key, big := Name(t), string(make([]byte, 3<<20))
	if got := c.roundTrip("SET", key, big); got != "OK" {
		t.Errorf("SET: %q", got)
	}
	if got := c.roundTrip("GET", key); got != big {
		t.Errorf("GET gave %d bytes", len(got))
	}
	pipeline(c, 2*queueLen)
}

// pipeline sends n requests at once, then reads and checks the replies.
func pipeline(c *wire, n int) {
	c.t.Helper()
	sent := make(chan error, 1)
	go func() {
		var all []byte
		for i := range n {
			all = append(all, request("ECHO", strconv.Itoa(i))...)
		}
		_, err := c.conn.Write(all)
		sent <- err
	}()
	for i := range n {
		c.expect(strconv.Itoa(i))
	}
	if err := <-sent; err != nil {
		c.t.Error(err)
	}
}

func TestProxyPassesRueidis(t *testing.T) {
	s := Start(t, "--requirepass", "secret")
	p := NewProxy(t, s.Addr())
	c := client(t, p, func(o *rueidis.ClientOption) { o.Password = "secret" })
	if got := run(c, "ECHO", "x"); got.Error() != nil {
		t.Error(got.Error())
	}
	channel := Name(t)
	messages, wait := subscribe(t, c, channel)
	s.ok(t, "PUBLISH", channel, "hello")
	if got := <-messages; got != "hello" {
		t.Errorf("message %q", got)
	}
	c.Close()
	<-wait
}

// client makes a rueidis client that goes through the proxy.
func client(t *testing.T, p *Proxy, options ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	o := rueidis.ClientOption{InitAddress: []string{p.Addr()}, DisableCache: true, ForceSingleClient: true}
	for _, option := range options {
		option(&o)
	}
	c, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// subscribe subscribes, and waits until the server has confirmed.
func subscribe(t *testing.T, c rueidis.Client, channel string) (<-chan string, <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	messages, end := make(chan string, 100), make(chan error, 1)
	confirmed := make(chan struct{}, 100)
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { confirmed <- struct{}{} })
	go func() {
		end <- c.Receive(ctx, c.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) {
			messages <- m.Message
		})
		close(end)
	}()
	t.Cleanup(func() { cancel(); <-end })
	select {
	case <-confirmed:
	case <-time.After(Limit):
		t.Fatal("not subscribed")
	}
	return messages, end
}

func TestProxyWithoutServer(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	old := dial(t, p.Addr())
	old.roundTrip("PING")
	s.Kill(t)
	old.expectEnd()
	dial(t, p.Addr()).expectEnd()
	s.Restart(t)
	if got := dial(t, p.Addr()).roundTrip("PING"); got != "PONG" {
		t.Errorf("PING after the restart: %q", got)
	}
}

func TestProxyCut(t *testing.T) {
	p := NewProxy(t, Shared(t).Addr())
	c := dial(t, p.Addr())
	c.roundTrip("PING")
	p.Cut()
	if n := p.Conns(); n != 0 {
		t.Errorf("%d connections after the cut", n)
	}
	c.expectEnd()
	if got := dial(t, p.Addr()).roundTrip("PING"); got != "PONG" {
		t.Errorf("PING on a new connection: %q", got)
	}
}

func TestProxyRefuse(t *testing.T) {
	p := NewProxy(t, Shared(t).Addr())
	c := dial(t, p.Addr())
	c.roundTrip("PING")
	p.Refuse(true)
	c.expectEnd()
	dial(t, p.Addr()).expectEnd()
	p.Refuse(false)
	if got := dial(t, p.Addr()).roundTrip("PING"); got != "PONG" {
		t.Errorf("PING afterwards: %q", got)
	}
}

func TestProxyFreeze(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	channel, key := Name(t), Name(t)
	c, sub := dial(t, p.Addr()), dial(t, p.Addr())
	c.roundTrip("PING")
	sub.roundTrip("HELLO", "3")
	sub.roundTrip("SUBSCRIBE", channel)

	p.Freeze(true)
	p.Freeze(true) // again
	late := dial(t, p.Addr())
	late.send("PING")
	c.send("SET", key, "v")
	s.ok(t, "PUBLISH", channel, "hello")
	for _, w := range []*wire{c, sub, late} {
		w.expectSilence()
	}
	if keys := s.Keys(t, key); len(keys) != 0 {
		t.Error("a request passed")
	}
	p.Freeze(false)
	p.Freeze(false) // again
	c.expect("OK")
	late.expect("PONG")
	sub.expect("[message " + channel + " hello]")

	p.Freeze(true) // and leave it so: the proxy must end none the less
	c.send("PING")
}

func TestProxyFreezeHoldsTheEndBack(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	channel := Name(t)
	c := dial(t, p.Addr())
	c.roundTrip("HELLO", "3")
	c.roundTrip("SUBSCRIBE", channel)
	p.Freeze(true)
	c.conn.Close()
	time.Sleep(20 * time.Millisecond) // time for what must not happen
	if n := s.Subscribers(t, channel); n != 1 {
		t.Errorf("%d subscribers, want 1", n)
	}
	p.Freeze(false)
	Eventually(t, "the server to see the end", func() bool { return s.Subscribers(t, channel) == 0 })
}

func TestProxyDelay(t *testing.T) {
	const d = 60 * time.Millisecond
	p := NewProxy(t, Shared(t).Addr())
	c := dial(t, p.Addr())
	p.Delay(d)
	start := time.Now()
	pipeline(c, 2000) // one sleep for each would take minutes
	if took := time.Since(start); took < 2*d || took > 1000*d {
		t.Errorf("the pipeline took %v", took)
	}
	p.Delay(time.Hour)
	c.send("PING")
	c.expectSilence() // and the proxy must end none the less
}

func TestProxyDelayOff(t *testing.T) {
	p := NewProxy(t, Shared(t).Addr())
	c := dial(t, p.Addr())
	p.Delay(100 * time.Millisecond)
	c.send("ECHO", "a")
	p.Delay(0)
	c.send("ECHO", "b") // must not overtake
	c.expect("a")
	c.expect("b")
}

func TestProxyDropReplies(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	key := Name(t)
	c, idle := dial(t, p.Addr()), dial(t, p.Addr())
	c.roundTrip("PING")
	idle.roundTrip("PING")

	p.DropReplies(true)
	c.send("SET", key, "v")
	Eventually(t, "the request to be carried out", func() bool { return len(s.Keys(t, key)) == 1 })
	c.expectSilence()
	p.DropReplies(false)
	c.expectEnd()
	if got := idle.roundTrip("GET", key); got != "v" {
		t.Errorf("on a connection that lost nothing: %q", got)
	}
}

func TestProxyDropMessages(t *testing.T) {
	for _, protocol := range []string{"2", "3"} {
		t.Run("RESP"+protocol, func(t *testing.T) {
			s := Shared(t)
			p := NewProxy(t, s.Addr())
			channel := Name(t)
			c := dial(t, p.Addr())
			c.roundTrip("HELLO", protocol)
			c.roundTrip("SUBSCRIBE", channel)
			p.DropMessages(true)
			s.ok(t, "PUBLISH", channel, "lost")
			c.roundTrip("SUBSCRIBE", channel+"2") // so the message is through
			p.DropMessages(false)
			s.ok(t, "PUBLISH", channel, "found")
			c.expect("[message " + channel + " found]")
		})
	}
}

// What looks like a message is none if it answers a request.
func TestProxyDropMessagesSparesReplies(t *testing.T) {
	p := NewProxy(t, Shared(t).Addr())
	p.DropMessages(true)
	c := dial(t, p.Addr())
	if got := c.roundTrip("EVAL", "return {'message', 'a', 'b'}", "0"); got != "[message a b]" {
		t.Errorf("EVAL: %q", got)
	}
}

func TestProxyHeal(t *testing.T) {
	p := NewProxy(t, Shared(t).Addr())
	p.Delay(time.Hour)
	p.DropReplies(true)
	p.DropMessages(true)
	p.Refuse(true)
	p.Freeze(true)
	p.DropRepliesTo(Command("PING"), 0)
	p.Hold(Command("PING"))
	p.Heal()
	if got := dial(t, p.Addr()).roundTrip("PING"); got != "PONG" {
		t.Errorf("PING: %q", got)
	}
}

// A paused server and a proxy in front of it do not keep the test from ending.
func TestProxyOfPausedServer(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	c := dial(t, p.Addr())
	c.roundTrip("PING")
	s.Pause(t)
	c.send("PING")
	c.expectSilence()
	s.Resume(t)
	c.expect("PONG")
	s.Pause(t)
	c.send("PING")
}

// A rueidis client gets over each fault.
func TestProxyRueidisRecovers(t *testing.T) {
	p := NewProxy(t, Shared(t).Addr())
	c := client(t, p)
	fault := func(name string, on, off func()) {
		on()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		// Not a command that rueidis repeats by itself.
		err := c.Do(ctx, c.B().Set().Key(Name(t)).Value("v").Build()).Error()
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		off()
		Eventually(t, "rueidis to recover from: "+name, func() bool { return run(c, "PING").Error() == nil })
	}
	fault("refuse", func() { p.Refuse(true) }, func() { p.Refuse(false) })
	fault("freeze", func() { p.Freeze(true) }, func() { p.Freeze(false) })
	fault("no replies", func() { p.DropReplies(true) }, func() { p.DropReplies(false) })
	fault("lost", func() { p.DropRepliesTo(Command("SET"), 1) }, p.Heal)
	fault("silent", func() { p.DropRepliesTo(Command("SET"), 1, Silent) }, p.Cut)
	fault("held", func() { p.Hold(Command("SET")) }, p.Heal)
}
