package expirable

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// The answer to each request about a lost hold says why it was lost.
func TestLostHold_IsExplained(t *testing.T) {
	s := New(&testConfig)
	next := func(kind machine.EffectKind) (e machine.Effect) {
		t.Helper()
		for s.NextEffect(&e) {
			if e.Kind == kind {
				return e
			}
		}
		t.Fatalf("there is no effect %d", kind)
		return e
	}
	s.Acquire(0, Request{Request: machine.Request{ID: 1, Lease: time.Second, Ref: t}, Count: 1})
	s.Replied(0, next(machine.Send).Ref.(*Command).Seq, Result{Served: 1, Wait: -1})
	s.Tick(time.Second)
	if lost := next(machine.NotifyLost); lost.Answer.Reason != machine.Expired {
		t.Fatalf("the hold was lost: %v", lost.Answer.Reason)
	}
	for name, ask := range map[string]func(){
		"Release": func() { s.Release(s.now, machine.Release{ID: 1, Ref: t}) },
		"Extend":  func() { s.Extend(s.now, 1, 0, time.Minute, t) },
		"Ensure":  func() { s.Ensure(s.now, 1, time.Millisecond, t) },
	} {
		ask()
		if a := next(machine.Reply).Answer; a.Reason != machine.Lost || a.Detail != "the permit was lost before: expired" {
			t.Errorf("%s of a lost permit: %v, %s", name, a.Reason, a.Detail)
		}
	}
}
