package grains

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Keys of another application are refused, and neither changed nor emptied.
func TestStore_LeavesForeignKeysAlone(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	member := Member{ID: "m", Address: "127.0.0.1:1"}
	for key, fields := range map[string][]string{
		"members": {"alice", "alice@example.org"},
		"entries": {"account/a", "alice"},
	} {
		s, err := newStore(redis.Client(t), "", "of "+key, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		redis.Do(t, append([]string{"HSET", s.name + key}, fields...)...)
		redis.Do(t, "HSET", s.lease("m"), "owner", "1")
		if err := s.join(t.Context(), member); !errors.Is(failed(err), lockkeeper.ErrRejected) {
			t.Errorf("a member joins with foreign %s: %v", key, err)
		}
		if _, dead, err := s.list(t.Context()); key == "members" && (err == nil || len(dead) > 0) {
			t.Errorf("foreign members are dead: %q, %v", dead, err)
		}
		for _, expected := range []string{"", "alice"} {
			if _, err := s.register("account/a", "m", expected, 0); key == "entries" && !errors.Is(failed(err), lockkeeper.ErrRejected) {
				t.Errorf("a grain with a foreign entry is registered: %v", err)
			}
		}
		if _, err := s.bury(t.Context(), 0, nil, nil); err != nil {
			t.Error(err)
		}
		if value, err := redis.Do(t, "HGET", s.name+key, fields[0]).ToString(); value != fields[1] {
			t.Errorf("the field has become %q, %v", value, err)
		}
	}
}

// The PID of a grain is never the PID of a child of another grain, whatever its identity.
func TestPID_IsThatOfNoChild(t *testing.T) {
	t.Parallel()
	for _, grain := range []string{"account/x", "account/x/y", "account/%2F", "account/%252F", "account//", "account/", "account/ü %"} {
		if got := grainOf(&actor.PID{Id: pidOf(grain)}); got != grain {
			t.Errorf("the PID %q of %q is that of %q", pidOf(grain), grain, got)
		}
	}
	if pidOf("account/x/y") == pidOf("account/x")+"/y" {
		t.Error("a child has the PID of a grain")
	}
}
