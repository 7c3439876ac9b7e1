package redistest

import (
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

// What is counted is what was done.
func TestServerCounts(t *testing.T) {
	s, channel := Start(t), Name(t)
	if other := Name(t); other == channel || !strings.HasPrefix(channel, "TestServerCounts-") {
		t.Errorf("the names are %q and %q", channel, other)
	}
	s.ok(t, "MSET", "a:2", "", "a:1", "", "b", "")
	if got := s.Keys(t, "a:*"); !slices.Equal(got, []string{"a:1", "a:2"}) || s.Calls(t)["mset"] != 1 {
		t.Errorf("keys %q, calls %v", got, s.Calls(t))
	}
	s.ResetStats(t)
	s.ok(t, "EVAL", "return redis.call('GET', KEYS[1])", "1", "b")
	if calls := s.Calls(t); calls["mset"] != 0 || calls["eval"] != 1 || calls["get"] != 1 || calls["config|resetstat"] != 1 {
		t.Errorf("calls after the reset: %v", calls)
	}
	for _, script := range []string{digest("return 1"), digest("return 2")} {
		match := Script(digest("return 1"))
		if one := script == digest("return 1"); match([]string{"evalsha", script, "0"}) != one || match([]string{"GET", script}) || !Script()([]string{"EVALSHA", script}) {
			t.Errorf("script %s is taken for another command", script)
		}
	}
	if !Script(digest("return 1"))([]string{"EVAL", "return 1"}) {
		t.Error("the source of a script is not taken for it")
	}

	listener, normal := dial(t, s.Addr()), dial(t, s.Addr())
	listener.ask("HELLO", "3")
	listener.ask("SUBSCRIBE", channel)
	normal.ask("PING")
	if s.Subscribers(t, channel) != 1 || s.KillClients(t, "pubsub") != 1 || s.Subscribers(t, channel) != 0 {
		t.Error("there was not the one subscriber")
	}
	listener.expectEnd()
	if n := s.KillClients(t, "normal"); n != 1 {
		t.Errorf("killed %d normal clients, want 1", n)
	}
	normal.expectEnd()
}

// A server that is paused, killed or flushed is so, and empty when it was started again; one
// that is left paused ends none the less.
func TestServerTroubles(t *testing.T) {
	s := Start(t)
	addr, sha := s.Addr(), digest("return 1")
	s.ok(t, "SCRIPT", "LOAD", "return 1")
	s.ok(t, "EVALSHA", sha, "0")
	s.ScriptFlush(t)
	if err := s.Do(t, "EVALSHA", sha, "0").Error(); err == nil {
		t.Error("the script is still known")
	}
	s.ok(t, "SET", "k", "v")
	s.Kill(t)
	if err := s.Do(t, "SET", "k", "v").Error(); err == nil {
		t.Error("a killed server answered")
	}
	s.Restart(t)
	if keys := s.Keys(t, "*"); len(keys) != 0 || s.Addr() != addr {
		t.Errorf("at %s after the restart: %v", s.Addr(), keys)
	}
	c := dial(t, addr)
	c.ask("PING")
	s.Pause(t)
	c.send("PING")
	c.expectSilence()
	s.Resume(t)
	c.expect("PONG")
	s.Pause(t)
}
