//go:build unix

package redistest

import (
	"fmt"
	"slices"
	"testing"
)

func TestDropRepliesToLost(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	key := Name(t)
	c := dial(t, p.Addr())
	c.roundTrip("PING")
	loss := p.DropRepliesTo(Command("INCR"), 1)

	c.sendRaw(append(request("ECHO", "before"), request("INCR", key)...))
	c.expect("before")
	c.expectEnd()
	loss.Wait(t)
	if keys := s.Keys(t, key); len(keys) != 1 {
		t.Error("the command was not carried out")
	}
	c = dial(t, p.Addr())
	if got := c.roundTrip("INCR", key); got != "2" {
		t.Errorf("the next of its kind: %q", got)
	}
	if got := loss.Count(); got != 1 {
		t.Errorf("%d replies lost, want 1", got)
	}
}

func TestDropRepliesToSilent(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	key := Name(t)
	c, other := dial(t, p.Addr()), dial(t, p.Addr())
	loss := p.DropRepliesTo(Command("INCR"), 1, Silent)
	c.send("ECHO", "before")
	c.send("INCR", key)
	c.send("SET", key+"2", "v")
	c.expect("before")
	loss.Wait(t)
	Eventually(t, "the later request", func() bool { return len(s.Keys(t, key+"2")) == 1 })
	c.expectSilence()
	if got := other.roundTrip("INCR", key); got != "2" {
		t.Errorf("on another connection: %q", got)
	}
	c.conn.Close()
	Eventually(t, "the end of the connection", func() bool { return p.Conns() == 1 })
}

func TestDropRepliesToSome(t *testing.T) {
	p := NewProxy(t, Shared(t).Addr())
	for _, n := range []int{0, 2} {
		key := Name(t)
		match := func(cmd []string) bool { return Command("INCR")(cmd) && cmd[1] == key }
		loss := p.DropRepliesTo(match, n)
		for range 2 {
			c := dial(t, p.Addr())
			if got := c.roundTrip("INCR", key+"other"); got == "" {
				t.Error("no reply to another command")
			}
			c.send("INCR", key)
			c.expectEnd()
		}
		loss.Wait(t)
		Eventually(t, "two replies to be lost", func() bool { return loss.Count() == 2 })
		c := dial(t, p.Addr())
		c.send("INCR", key)
		if n > 0 {
			c.expect("3")
		} else {
			c.expectEnd()
		}
	}
}

// The replies of a pipelined connection are told apart, whatever comes in between.
func TestDropRepliesToPairs(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	a, b, pattern := Name(t), Name(t), Name(t)+"*"
	before := [][]byte{
		request("HELLO", "3"),
		request("SUBSCRIBE", a, b),
		request("PING"),
		request("SUBSCRIBE"), // an error, not a push
		request("PSUBSCRIBE", pattern),
		request("UNSUBSCRIBE"), // two pushes for one request without arguments
		request("ECHO", "x"),
		request("UNSUBSCRIBE", b),
		request("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", a),
		request("SET", a, "v"), // makes a push, after its reply
		request("LRANGE", "none", "0", "-1"),
		request("CONFIG", "GET", "s*"),
		request("HGETALL", "none"),
		slices.Concat(request("MULTI"), request("SET", b, "v"), request("EXEC")),
		request("GET", "none"),
		request("NOSUCHCOMMAND"),
	}
	for i := range before {
		c := dial(t, p.Addr())
		mark := fmt.Sprintf("mark %d", i)
		loss := p.DropRepliesTo(func(cmd []string) bool { return len(cmd) == 2 && cmd[1] == mark }, 1)
		c.sendRaw(slices.Concat(slices.Concat(before[:i+1]...), request("PING", "last"), request("ECHO", mark)))
		for got := ""; got != "last"; {
			got = c.read()
		}
		loss.Wait(t)
		for {
			f, err := c.in.next()
			if err != nil {
				break
			}
			if f.kind != '>' { // a push may come at any time
				t.Errorf("after %q: read %q, want the end", before[i], f.text())
			}
		}
	}
}

func TestDropRepliesToSubscribe(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	channel := Name(t)
	c := dial(t, p.Addr())
	c.roundTrip("HELLO", "3")
	loss := p.DropRepliesTo(Command("SUBSCRIBE"), 1, Silent)
	c.send("SUBSCRIBE", channel, channel+"2")
	loss.Wait(t)
	c.expectSilence()
	if n := s.Subscribers(t, channel); n != 1 {
		t.Errorf("%d subscribers, want 1", n)
	}
}

// Connections on which replies can not be told apart are left alone.
func TestDropRepliesToUnpaired(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	p.DropRepliesTo(Command("PING"), 0)
	channel := Name(t)

	sub := dial(t, p.Addr())
	sub.roundTrip("SUBSCRIBE", channel) // in RESP2
	s.ok(t, "PUBLISH", channel, "hello")
	sub.expect("[message " + channel + " hello]")
	if got := sub.roundTrip("PING"); got != "[pong ]" {
		t.Errorf("PING in RESP2 while subscribed: %q", got)
	}

	mute := dial(t, p.Addr())
	mute.send("CLIENT", "REPLY", "SKIP")
	mute.send("ECHO", "skipped")
	if got := mute.roundTrip("PING"); got != "PONG" {
		t.Errorf("PING after CLIENT REPLY: %q", got)
	}

	monitor := dial(t, p.Addr())
	if got := monitor.roundTrip("MONITOR"); got != "OK" {
		t.Errorf("MONITOR: %q", got)
	}
}
