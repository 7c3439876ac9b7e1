package redistest

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest/rig"
)

// Without redis-server, a start fails and says what is needed.
func TestStart_NeedsRedisServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if s, err := rig.Start(rig.Options{}); err == nil {
		s.Stop()
		t.Error("it was started without a redis-server")
	} else if !strings.Contains(err.Error(), "redis-server") {
		t.Error(err)
	}
}

// Each start of a server has its environment, and the arguments that are given for it.
func TestRestart_HasEnvironmentAndArguments(t *testing.T) {
	starts := 0
	s, err := rig.Start(rig.Options{Args: []string{"--maxclients", "50"}, Env: func(string) ([]string, error) {
		starts++
		return syscall.Environ(), nil
	}})
	check(t, err)
	t.Cleanup(s.Stop)
	_, err = s.Do("SET", "key", "value")
	check(t, err)
	check(t, s.Restart("--maxmemory", "10mb"))
	for setting, want := range map[string]string{"maxclients": "50", "maxmemory": "10485760"} {
		if got, err := s.Do("CONFIG", "GET", setting); err != nil || got.Map()[setting] != want {
			t.Errorf("%s is %v (%v), want %s", setting, got.Words(), err, want)
		}
	}
	if key, err := s.Do("GET", "key"); err != nil || key.Text() != "(nil)" {
		t.Errorf("after a restart the key is %q (%v)", key.Text(), err)
	}
	if starts != 2 {
		t.Errorf("%d starts with an environment", starts)
	}
}

// A server behind a proxy announces the proxy's address: its replica's stream passes the proxy.
func TestStartBehind_StreamPassesTheProxy(t *testing.T) {
	master, err := rig.StartBehind(0, rig.Options{})
	check(t, err)
	t.Cleanup(master.Stop)
	replica, err := rig.StartReplica(master, master.Addr(), rig.Options{})
	check(t, err)
	t.Cleanup(replica.Stop)
	value := func() string {
		v, err := replica.Do("GET", "key")
		check(t, err)
		return v.Text()
	}
	master.Front().Set(func(r *rig.Rules) { r.Stream.Blocked = true })
	_, err = master.Do("SET", "key", "value") // not blocked
	check(t, err)
	if rig.Poll(50*time.Millisecond, func() bool { return value() != "(nil)" }) {
		t.Error("the replica has the key, though its stream is blocked")
	}
	master.Front().Heal()
	Eventually(t, "the replica to have the key", func() bool { return value() == "value" })
}
