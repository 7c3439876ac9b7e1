//go:build unix

package redistest

import (
	"slices"
	"strings"
	"testing"
)

func TestHold(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	key := Name(t)
	c := dial(t, p.Addr())
	held := p.Hold(Command("INCR"))
	c.roundTrip("SET", key, "10")
	if held.Caught() {
		t.Error("caught another command")
	}
	c.send("INCR", key)
	if got, want := held.Wait(t), []string{"INCR", key}; !slices.Equal(got, want) {
		t.Errorf("held %q, want %q", got, want)
	}
	c.expectEnd()

	other := dial(t, p.Addr())
	if got := other.roundTrip("INCR", key); got != "11" {
		t.Errorf("the next of its kind: %q", got)
	}
	p.Refuse(true) // does not concern the release
	if got := held.Release(t); got != "12" {
		t.Errorf("released: %q", got)
	}
	if got := held.Release(t); got != "13" {
		t.Errorf("released again: %q", got)
	}
	p.Refuse(false)
}

// What was sent before the held command is carried out, though the client is cut.
func TestHoldAfterPipelinedCommands(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	key := Name(t)
	held := p.Hold(Command("GET"))
	c := dial(t, p.Addr())
	c.sendRaw(append(request("SET", key, "v"), request("GET", key)...))
	held.Wait(t)
	Eventually(t, "the earlier command", func() bool { return len(s.Keys(t, key)) == 1 })
	Eventually(t, "the end of the connection", func() bool { return p.Conns() == 0 })
}

func TestHoldSilent(t *testing.T) {
	s := Shared(t)
	p := NewProxy(t, s.Addr())
	key := Name(t)
	held := p.Hold(Command("INCR"), Silent)
	c := dial(t, p.Addr())
	c.send("INCR", key)
	c.send("SET", key, "5")
	held.Wait(t)
	Eventually(t, "the later command", func() bool { return len(s.Keys(t, key)) == 1 })
	c.expectSilence()
	if got := held.Release(t); got != "6" {
		t.Errorf("released: %q", got)
	}
	c.expectSilence()
}

// The released command finds the login, the database and the protocol of its client.
func TestHoldKeepsTheSetup(t *testing.T) {
	s := Start(t, "--requirepass", "secret")
	p := NewProxy(t, s.Addr())
	held := p.Hold(Command("EVAL"))
	c := dial(t, p.Addr())
	c.roundTrip("HELLO", "3", "AUTH", "default", "secret")
	c.roundTrip("SELECT", "3")
	c.roundTrip("SET", "k", "in 3")
	c.send("EVAL", "redis.setresp(3); return {{double=1.5}, redis.call('GET', 'k')}", "0")
	held.Wait(t)
	if got := held.Release(t); got != "[1.5 in 3]" {
		t.Errorf("released: %q", got)
	}
	held = p.Hold(Command("GET"))
	c = dial(t, p.Addr())
	c.roundTrip("AUTH", "secret")
	c.roundTrip("SELECT", "3")
	c.send("GET", "k")
	if got := held.Release(t); got != "in 3" {
		t.Errorf("released: %q", got)
	}
}

func TestHoldScript(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	body := "return 'done'"
	sha, err := s.Do(t, "SCRIPT", "LOAD", body).ToString()
	if err != nil {
		t.Fatal(err)
	}
	held := p.Hold(Script(sha))
	c := dial(t, p.Addr())
	c.send("EVALSHA", sha, "0")
	if got := held.Release(t); got != "done" {
		t.Errorf("released: %q", got)
	}
	s.ScriptFlush(t)
	if got := held.Release(t); !strings.HasPrefix(got, "-NOSCRIPT") {
		t.Errorf("released after the scripts are flushed: %q", got)
	}
}
