package expirable

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/machinetest"
)

// Processes that wait for the same permits do not try again in step, after a refusal or a failure.
func TestTries_AreJittered(t *testing.T) {
	for name, after := range map[string]struct {
		reply Result
		most  time.Duration
	}{
		"poll":    {Result{Wait: -1}, time.Second},
		"failure": {Result{Failure: machinetest.Failures["loading"]}, 50 * time.Millisecond},
	} {
		seen := map[Instant]bool{}
		for seed := range uint64(200) {
			cfg := testConfig
			cfg.Seed = seed
			s := New(&cfg)
			s.Acquire(0, Request{Request: machine.Request{ID: 1, Ref: t}, Count: 1})
			var sent machine.Effect
			if !s.NextEffect(&sent) || sent.Kind != machine.Send {
				t.Fatalf("%s: the request sends no command", name)
			}
			s.Replied(0, sent.Ref.(*Command).Seq, after.reply)
			at, ok := s.NextWake()
			if !ok || at < after.most/2 || at > after.most {
				t.Fatalf("%s: the next try is at %v (%v), not from %v to %v", name, at, ok, after.most/2, after.most)
			}
			seen[at] = true
		}
		if len(seen) < 150 {
			t.Errorf("%s: 200 processes try again at %d different times only", name, len(seen))
		}
	}
}
