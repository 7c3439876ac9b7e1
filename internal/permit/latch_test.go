package permit

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// All who wait in a process cost one command and one subscription, and a message lets all of them in
// who were there when it came, also one who looks once. What is counted down meanwhile goes out in one command.
func TestLatchCommands(t *testing.T) {
	cfg := &lock.Config{Watchdog: 30 * time.Second, Poll: time.Second, CallTimeout: time.Second, QueueLimit: 1000}
	p := NewLatch(cfg)
	var sent []Command
	var effects []EffectKind
	answers := map[any]Answer{}
	step := func(event func()) {
		if !p.HasNextNumber() {
			p.SetNextNumber(uint64(len(sent) + 1))
		}
		event()
		for e := p.Effects(); e != nil; e = p.Effects() {
			switch e.Kind {
			case Send:
				sent = append(sent, *e.Command)
			case Reply:
				answers[e.Ref] = e.Answer
			default:
				effects = append(effects, e.Kind)
			}
		}
	}
	reply := func(count int64) {
		step(func() { p.Replied(0, sent[len(sent)-1].Number, Result{N: [2]int64{count}}) })
	}
	wait := func(id uint64) { step(func() { p.Wait(0, Request{ID: id, Ref: id}) }) }
	for id := range uint64(100) {
		wait(id + 1)
	}
	if reply(3); len(sent) != 1 {
		t.Fatalf("%d commands for 100 waiters", len(sent))
	}
	step(func() { p.Subscribed(0) })
	reply(3)
	step(func() { p.Wait(0, Request{ID: 101, Try: true, Ref: "try"}) })
	step(func() { p.Signal(0) })
	wait(102)
	step(func() { p.CountDown(0, "", "a") })
	step(func() { p.CountDown(0, "x", "b") })
	step(func() { p.CountDown(0, "", "c") })
	if reply(0); len(answers) != 101 || answers["try"].Kind != Granted {
		t.Fatalf("%d answers, %+v", len(answers), answers["try"])
	}
	if c := sent[len(sent)-1]; c.Kind != Give || c.N != 2 || fmt.Sprint(c.IDs) != "[x]" || answers[uint64(102)].Kind != 0 {
		t.Fatalf("then %+v, and 102 was told %+v", c, answers[uint64(102)])
	}
	if reply(0); answers["b"].Kind != Returned || answers[uint64(102)].Kind != Granted || !p.Idle() {
		t.Errorf("the count-downs were answered %+v, 102 %+v; %v", answers["b"], answers[uint64(102)], p.call)
	}
	if got, want := fmt.Sprint(effects), fmt.Sprint([]EffectKind{Subscribe, Unsubscribe}); got != want || len(sent) != 4 {
		t.Errorf("effects %s, want %s; %d commands", got, want, len(sent))
	}
	step(func() { p.Close(0, lock.Closed, "the end") })
	step(func() { p.CountDown(0, "", "late") })
	if answers["late"].Reason != lock.Closed {
		t.Errorf("a late one is answered %+v", answers["late"])
	}
}
