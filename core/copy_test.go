package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// Every event of every table is applied to a copy that is thrown away before it is
// applied for good (see rig.do). Here is what else the shell relies on.

// someEvents are one of each, for a hold with id 1 and waiters with the ids 2 to 4.
func someEvents(r *rig) map[string]func(*core.Lock) {
	seq := r.last(core.Renew).Seq
	return map[string]func(*core.Lock){
		"acquire":       func(l *core.Lock) { l.Acquire(r.now, core.Ticket{ID: 9, Owner: 9, Ref: "x"}) },
		"re-entry":      func(l *core.Lock) { l.Acquire(r.now, core.Ticket{ID: 9, Owner: 7, Ref: "x"}) },
		"release":       func(l *core.Lock) { l.Release(r.now, 1, 0, core.Exclusive, "x") },
		"cancel":        func(l *core.Lock) { l.Cancel(r.now, 3, 0, "x") },
		"cancel all":    func(l *core.Lock) { l.Cancel(r.now, 0, 8, "x") },
		"owner gone":    func(l *core.Lock) { l.OwnerGone(r.now, 7) },
		"waiter gone":   func(l *core.Lock) { l.OwnerGone(r.now, 8) },
		"ensure":        func(l *core.Lock) { l.Ensure(r.now, 1, 9*sec, "x") },
		"force release": func(l *core.Lock) { l.ForceRelease(r.now, core.Exclusive, "x") },
		"renewed":       func(l *core.Lock) { l.Replied(r.now, seq, done) },
		"gone":          func(l *core.Lock) { l.Replied(r.now, seq, gone) },
		"failed":        func(l *core.Lock) { l.Replied(r.now, seq, timeoutR) },
		"later":         func(l *core.Lock) { l.Tick(r.now + 5*sec) },
		"much later":    func(l *core.Lock) { l.Tick(r.now + 20*sec) },
		"close":         func(l *core.Lock) { l.Close(r.now) },
	}
}

// busy is a rig with something in every part of its state.
func busy(t *testing.T) *rig {
	t.Helper()
	r := held(t, owner(7), fixed(sec))
	r.acquire("b", owner(8), until(4*sec))
	r.acquire("c", owner(8))
	r.acquire("d")
	r.tick(sec) // a's lease is over, and its term is to be cleaned up
	r.reply(core.Release, loadingR)
	r.reply(core.Acquire, done)
	r.tick(r.now + 3*sec)
	r.acquire("second", owner(8))
	r.acquire("third", owner(8))
	r.ensure("b", 9*sec)
	return r
}

func TestWhatHappensToACopyLeavesNoTrace(t *testing.T) {
	events := func() map[string]func(*core.Lock) { return someEvents(busy(t)) }()
	for first := range events {
		for second := range events {
			r := busy(t)
			these := someEvents(r)
			before := dump(r.lock)

			// Both events on copies of the same original, in either order.
			a, b := r.lock, r.lock
			these[first](&a)
			alone := dump(a)
			these[second](&b)
			if dump(r.lock) != before {
				t.Fatalf("%s and %s on copies have changed the original", first, second)
			}
			c := r.lock
			these[first](&c)
			if dump(c) != alone {
				t.Fatalf("%s ends otherwise after %s was tried in vain", first, second)
			}
		}
	}
}

func TestEventThatPanicsHasChangedNothing(t *testing.T) {
	r := busy(t)
	before := dump(r.lock)
	func() {
		defer func() { _ = recover() }()
		next := r.lock
		next.Cancel(r.now, 4, 0, "x")
		// A failure must come with its error: this one panics half way.
		next.Replied(r.now, r.last(core.Renew).Seq, core.Result{Outcome: core.Failed})
		t.Fatal("it did not panic")
	}()
	if dump(r.lock) != before {
		t.Fatal("it has changed the original")
	}
}

func TestEffectsSurviveACrashOfTheShell(t *testing.T) {
	cfg := rigConfig
	l := core.New(&cfg, &core.Kind{})
	l.Refill(1)
	take := func(n int) (said []string) {
		for range n {
			e, ok := l.Effects()
			if !ok {
				break
			}
			said = append(said, sentence(e))
		}
		return said
	}
	event := func(apply func(*core.Lock)) {
		next := l
		apply(&next)
		l = next
	}
	event(func(l *core.Lock) { l.Acquire(0, core.Ticket{ID: 1, Ref: "a"}) })
	take(1)
	event(func(l *core.Lock) { l.Replied(0, 1, done) })
	event(func(l *core.Lock) { l.Acquire(0, core.Ticket{ID: 2, Ref: "b"}) })
	event(func(l *core.Lock) { l.Release(0, 1, 0, core.Exclusive, "A") })
	// The shell takes two of four, and crashes. What it had not taken is still there,
	// and what comes after it comes behind it.
	if said := take(2); !slices.Equal(said, []string{"a: granted x1 until 9.898s", "a: over"}) {
		t.Fatalf("at first it says %q", said)
	}
	if _, _, pending := everyone(&l); !slices.Equal(pending, []any{"A", "b"}) {
		t.Fatalf("%v are owed an answer", pending)
	}
	event(func(l *core.Lock) { l.Release(0, 2, 0, core.Exclusive, "B") })
	want := []string{"A: freed x0, handed on", "b: handed on x1 until 9.898s", "b: over", "release #1"}
	if said := take(9); !slices.Equal(said, want) {
		t.Fatalf("then it says %q", said)
	}
	if l.Idle() {
		t.Fatal("it is idle while it releases")
	}
}

func TestSameEventsSameDecisions(t *testing.T) {
	story := func() string {
		r := busy(t)
		r.sleep(60 * sec)
		return fmt.Sprint(r.said, dump(r.lock))
	}
	if once, again := story(), story(); once != again {
		t.Fatal("the same events have led to different decisions")
	}
}
