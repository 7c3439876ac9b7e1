//go:build unix

package redistest

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

func TestMain(m *testing.M) { Main(m) }

func TestStartAnswersAndStops(t *testing.T) {
	var s *Server
	t.Run("running", func(t *testing.T) {
		s = Start(t)
		if got, err := s.Do(t, "PING").ToString(); err != nil || got != "PONG" {
			t.Fatalf("PING: %q, %v", got, err)
		}
		for key, want := range map[string]string{"save": "", "appendonly": "no", "bind": "127.0.0.1"} {
			got, err := s.Do(t, "CONFIG", "GET", key).AsStrMap()
			if err != nil || got[key] != want {
				t.Errorf("CONFIG GET %s: %v, %v", key, got, err)
			}
		}
		if got, want := s.URL(), "redis://"+s.Addr(); got != want {
			t.Errorf("URL %q, want %q", got, want)
		}
		if s.Client(t) != s.Client(t) {
			t.Error("two clients were made")
		}
	})
	s.Stop() // again
	if conn, err := net.Dial("tcp", s.Addr()); err == nil {
		conn.Close()
		t.Error("the server still listens after its test")
	}
}

func TestStartWithOptions(t *testing.T) {
	s := Start(t, "--requirepass", "secret", "--maxclients", "77")
	got, err := s.Do(t, "CONFIG", "GET", "maxclients").AsStrMap()
	if err != nil || got["maxclients"] != "77" {
		t.Errorf("maxclients: %v, %v", got, err)
	}
	if got := dial(t, s.Addr()).roundTrip("PING"); !strings.HasPrefix(got, "-NOAUTH") {
		t.Errorf("without the password: %q", got)
	}
}

func TestStartTellsWhatIsWrong(t *testing.T) {
	if _, err := start([]string{"--no-such-option", "x"}); err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("error of a bad option: %v", err)
	}
	s := Start(t)
	if _, err := launch(s.port, t.TempDir(), nil); err != errPortTaken {
		t.Errorf("error of a taken port: %v", err)
	}
	t.Setenv("PATH", "")
	if _, err := start(nil); err == nil || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("error without redis-server: %v", err)
	}
}

func TestKillAndRestart(t *testing.T) {
	s := Start(t)
	addr := s.Addr()
	s.ok(t, "SET", "k", "v")
	s.Kill(t)
	if err := s.Do(t, "SET", "k", "v").Error(); err == nil {
		t.Error("a killed server answered")
	}
	s.Kill(t) // again
	s.Restart(t)
	if s.Addr() != addr {
		t.Errorf("restarted on %s, was on %s", s.Addr(), addr)
	}
	if keys := s.Keys(t, "*"); len(keys) != 0 {
		t.Errorf("keys after the restart: %v", keys)
	}
	s.ok(t, "SET", "k", "v")
	s.Restart(t) // of a running server
	if keys := s.Keys(t, "*"); len(keys) != 0 {
		t.Errorf("keys after the second restart: %v", keys)
	}
}

func TestPauseAndResume(t *testing.T) {
	s := Start(t)
	s.ok(t, "PING")
	s.Pause(t)
	answer := make(chan error, 1)
	go func() { answer <- run(s.client, "PING").Error() }()
	select {
	case err := <-answer:
		t.Errorf("a paused server answered: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.Resume(t)
	if err := <-answer; err != nil {
		t.Errorf("after Resume: %v", err)
	}
	s.Pause(t) // and leave it so: it must stop none the less
}

func TestKeys(t *testing.T) {
	s := Start(t)
	var want []string
	for i := range 2500 {
		key := fmt.Sprintf("a:%04d", i)
		want = append(want, key)
		s.ok(t, "SET", key, "")
	}
	s.ok(t, "SET", "b", "")
	if got := s.Keys(t, "a:*"); !slices.Equal(got, want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
	if got := s.Keys(t, "none*"); len(got) != 0 {
		t.Errorf("keys of no match: %v", got)
	}
}

func TestCalls(t *testing.T) {
	s := Start(t)
	for range 3 {
		s.ok(t, "SET", "k", "v")
	}
	if got := s.Calls(t)["set"]; got != 3 {
		t.Errorf("SET was called %d times, want 3", got)
	}
	s.ResetStats(t)
	s.ok(t, "EVAL", "return redis.call('GET', KEYS[1])", "1", "k")
	calls := s.Calls(t)
	if calls["set"] != 0 || calls["eval"] != 1 || calls["get"] != 1 || calls["config|resetstat"] != 1 {
		t.Errorf("calls after the reset: %v", calls)
	}
}

func TestSubscribersAndKillClients(t *testing.T) {
	s := Start(t)
	channel := Name(t)
	if n := s.Subscribers(t, channel); n != 0 {
		t.Errorf("%d subscribers of a new channel", n)
	}
	c := dial(t, s.Addr())
	c.roundTrip("HELLO", "3")
	c.send("SUBSCRIBE", channel)
	c.expect("[subscribe " + channel + " 1]")
	Eventually(t, "one subscriber", func() bool { return s.Subscribers(t, channel) == 1 })
	normal := dial(t, s.Addr())
	normal.roundTrip("PING")

	if n := s.KillClients(t, "pubsub"); n != 1 {
		t.Errorf("killed %d pubsub clients, want 1", n)
	}
	c.expectEnd()
	if n := s.Subscribers(t, channel); n != 0 {
		t.Errorf("%d subscribers after the kill", n)
	}
	if n := s.KillClients(t, "normal"); n != 1 {
		t.Errorf("killed %d normal clients, want 1", n)
	}
	normal.expectEnd()
}

func TestScriptFlush(t *testing.T) {
	s := Start(t)
	sha, err := s.Do(t, "SCRIPT", "LOAD", "return 1").ToString()
	if err != nil {
		t.Fatal(err)
	}
	s.ok(t, "EVALSHA", sha, "0")
	s.ScriptFlush(t)
	err = s.Do(t, "EVALSHA", sha, "0").Error()
	if re, ok := rueidis.IsRedisErr(err); !ok || !re.IsNoScript() {
		t.Errorf("EVALSHA after the flush: %v", err)
	}
}

func TestShared(t *testing.T) {
	s := Shared(t)
	t.Run("of another test", func(t *testing.T) {
		if Shared(t) != s {
			t.Error("two shared servers")
		}
		Shared(t).ok(t, "PING")
	})
	s.ok(t, "PING") // the client outlives the test that made it
	StopShared()
	StopShared() // again
	if again := Shared(t); again == s {
		t.Error("the stopped server is still shared")
	}
}

func TestEventually(t *testing.T) {
	tries := 0
	Eventually(t, "the third try", func() bool { tries++; return tries == 3 })
	if poll(20*time.Millisecond, func() bool { return false }) {
		t.Error("poll found what never comes")
	}
	if !poll(0, func() bool { return true }) {
		t.Error("poll must try at least once")
	}
}

func TestName(t *testing.T) {
	t.Run("odd {*?[x]} name/sub", func(t *testing.T) {
		a, b := Name(t), Name(t)
		if a == b {
			t.Errorf("%q twice", a)
		}
		if want := "TestName.odd_____x___name.sub-"; !strings.HasPrefix(a, want) {
			t.Errorf("%q, want %q and a number", a, want)
		}
	})
}
