package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What is sent arrives, whatever and however big it is; and is read as what it is.
func TestProxyPasses(t *testing.T) {
	p, key, big := NewProxy(t, Shared(t).Addr()), Name(t), string(make([]byte, 3<<20))
	c := dial(t, p.Addr())
	c.ask("HELLO", "3")
	c.ask("SET", key, big)
	if got := c.ask("GET", key); got != big {
		t.Errorf("GET gave %d bytes", len(got))
	}
	for script, want := range map[string]string{
		"return {1, 'a\\r\\nb', {-2, false}}":                    "[1 a\r\nb [-2 (nil)]]",
		"return redis.status_reply('OK')":                        "OK",
		"return redis.error_reply('ERR no')":                     "-ERR no",
		"redis.setresp(3); return {map={a=1}}":                   "[a 1]",
		"redis.setresp(3); return {double=1.5}":                  "1.5",
		"redis.setresp(3); return {set={a=true}}":                "[a]",
		"redis.setresp(3); return true":                          "t",
		"return redis.call('GET', 'none')":                       "(nil)",
		"redis.setresp(3); return {big_number='12345678901234'}": "12345678901234",
	} {
		if got := c.ask("EVAL", script, "0"); got != want {
			t.Errorf("%s gave %q, want %q", script, got, want)
		}
	}
	if n := p.Conns(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	c.ask("QUIT")
	c.expectEnd()
	Eventually(t, "the end of it", func() bool { return p.Conns() == 0 })
}

// A fault happens, and after its end new connections are as good as ever.
func TestProxyFaults(t *testing.T) {
	s := Shared(t)
	for name, fault := range map[string]func(p *Proxy, c *wire, key string){
		"cut": func(p *Proxy, c *wire, _ string) {
			p.Cut()
			c.expectEnd()
		},
		"refuse": func(p *Proxy, c *wire, _ string) {
			p.Refuse(true)
			c.expectEnd()
			dial(c.t, p.Addr()).expectEnd()
			p.Refuse(false)
		},
		"freeze": func(p *Proxy, c *wire, key string) {
			p.Freeze(true)
			p.Freeze(true) // again
			c.send("SET", key, "v")
			s.ok(c.t, "PUBLISH", key, "hello")
			c.expectSilence()
			if keys := s.Keys(c.t, key); len(keys) != 0 {
				c.t.Error("a request passed")
			}
			p.Freeze(false)
			c.expect("[message "+key+" hello]", "OK")
		},
		"delay": func(p *Proxy, c *wire, _ string) {
			const d = 60 * time.Millisecond
			p.Delay(d)
			start := time.Now()
			for i := range 500 { // one sleep for each would take half a minute
				c.send("ECHO", strconv.Itoa(i))
			}
			c.expect("0")
			if took := time.Since(start); took < d {
				c.t.Errorf("the first reply took %v", took)
			}
			for i := 500; i < 600; i++ {
				c.send("ECHO", strconv.Itoa(i))
			}
			p.Delay(0) // what comes now must not overtake
			for i := 1; i < 600; i++ {
				c.expect(strconv.Itoa(i))
			}
			if took := time.Since(start); took > 100*d {
				c.t.Errorf("the pipeline took %v", took)
			}
		},
		"no replies": func(p *Proxy, c *wire, key string) {
			idle := dial(c.t, p.Addr())
			idle.ask("PING")
			p.DropReplies(true)
			c.send("SET", key, "v")
			Eventually(c.t, "the request to be carried out", func() bool { return len(s.Keys(c.t, key)) == 1 })
			c.expectSilence()
			p.DropReplies(false)
			c.expectEnd()
			if got := idle.ask("GET", key); got != "v" {
				c.t.Errorf("on a connection that lost nothing: %q", got)
			}
		},
		"no messages": func(p *Proxy, c *wire, key string) {
			p.DropMessages(true)
			s.ok(c.t, "PUBLISH", key, "lost")
			c.ask("SUBSCRIBE", key+"2")                                                            // so the message is through
			if got := c.ask("EVAL", "return {'message', 'a', 'b'}", "0"); got != "[message a b]" { // looks like one
				c.t.Errorf("EVAL: %q", got)
			}
			p.DropMessages(false)
			s.ok(c.t, "PUBLISH", key, "found")
			c.expect("[message " + key + " found]")
		},
		"all, and healed": func(p *Proxy, _ *wire, _ string) {
			p.Delay(time.Hour)
			p.DropReplies(true)
			p.DropMessages(true)
			p.Refuse(true)
			p.Freeze(true)
			p.DropRepliesTo(Command("PING"), 0)
			p.Hold(Command("PING"))
			p.Heal()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, key := NewProxy(t, s.Addr()), Name(t)
			c := dial(t, p.Addr())
			c.ask("HELLO", "3")
			c.ask("SUBSCRIBE", key)
			fault(p, c, key)
			if got := dial(t, p.Addr()).ask("PING"); got != "PONG" {
				t.Errorf("PING afterwards: %q", got)
			}
			// Left so, the proxy must end none the less.
			p.Delay(time.Hour)
			p.Freeze(true)
		})
	}
}

// A command whose reply is lost was carried out, and the next of its kind is not concerned; a
// command that is held was not.
func TestDropRepliesToAndHold(t *testing.T) {
	s := Shared(t)
	for _, mode := range []Mode{Lost, Silent} {
		p, key := NewProxy(t, s.Addr()), Name(t)
		other := dial(t, p.Addr())
		other.ask("PING")
		lose := func() {
			t.Helper()
			c := dial(t, p.Addr())
			c.ask("ECHO", "before")
			c.send("INCR", key)
			if mode == Lost {
				c.expectEnd()
			} else {
				c.send("SET", key+"2", "v") // arrives at the server
				c.expectSilence()
				Eventually(t, "the later request", func() bool { return len(s.Keys(t, key+"2")) == 1 })
			}
		}
		loss := p.DropRepliesTo(Command("incr"), 2, mode)
		lose()
		lose()
		if loss.Wait(t); loss.Count() != 2 {
			t.Errorf("%d replies were lost, want 2", loss.Count())
		}
		if got := other.ask("INCR", key); got != "3" {
			t.Errorf("the next of its kind: %q", got)
		}
		held := p.Hold(Command("INCR"), mode)
		other.ask("GET", key)
		lose()
		if got, want := held.Wait(t), []string{"INCR", key}; !slices.Equal(got, want) {
			t.Errorf("held %q, want %q", got, want)
		}
		if got := other.ask("INCR", key); got != "4" {
			t.Errorf("the next of its kind: %q", got)
		}
		p.Refuse(true) // does not concern the release
		if first, second := held.Release(t), held.Release(t); first != "5" || second != "6" {
			t.Errorf("released: %q, and again: %q", first, second)
		}
	}
}

// The reply to the one command is lost, whatever comes before it in its pipeline.
func TestDropRepliesToPairs(t *testing.T) {
	p, a := NewProxy(t, Shared(t).Addr()), Name(t)
	before := []string{
		"HELLO 3", "SUBSCRIBE " + a + " b", "PING x",
		"SUBSCRIBE",   // an error, not a push
		"UNSUBSCRIBE", // two pushes for one request without arguments
		"CLIENT TRACKING ON BCAST PREFIX " + a,
		"SET " + a + " v", // makes a push, after its reply
		"LRANGE none 0 -1", "NOSUCHCOMMAND",
	}
	for i := range before {
		c, mark := dial(t, p.Addr()), fmt.Sprint("mark", i)
		loss := p.DropRepliesTo(func(cmd []string) bool { return cmd[len(cmd)-1] == mark }, 1)
		for _, words := range append(before[:i+1:i+1], "PING last", "ECHO "+mark) {
			c.send(strings.Fields(words)...)
		}
		for got := ""; got != "last"; {
			got = must[frame](t, "a reply before")(c.next(Limit)).text()
		}
		loss.Wait(t)
		c.expectEnd()
	}
	resp2 := dial(t, p.Addr()) // where replies can not be told apart
	p.DropRepliesTo(Command("PING"), 0)
	resp2.ask("SUBSCRIBE", a)
	if got := resp2.ask("PING"); got != "[pong ]" {
		t.Errorf("PING in RESP2 while subscribed: %q", got)
	}
}
