package lock_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Properties that the lock actor relies on besides the decisions. Every event of every script is applied to a
// copy first, which is discarded (see rig.do).

// busy returns a rig whose lock uses every part of its state.
func busy(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, lock.Kind{})
	r.Do("held owner=7 fixed=1s", "acquire b owner=8 until=4s", "acquire c owner=8", "acquire d",
		"1s tick", "release: loading", "acquire: done", // a's lease is over, and its term has to be cleaned up
		"4s tick", "acquire second owner=8", "acquire third owner=8", "ensure b 9s")
	return r
}

// fork returns a rig with a copy of the lock.
func (r *rig) fork() *rig {
	other := *r
	other.Apply = other.apply
	other.ids, other.sent = maps.Clone(r.ids), slices.Clone(r.sent)
	return &other
}

func TestEvent_OnACopyKeepsTheOriginal(t *testing.T) {
	events := []string{
		"acquire x owner=9", "acquire x owner=8", "release b", "cancel d", "cancel owner=8", "die 8", "die 9", "ensure b 9s", "force",
		"renew: done", "renew: gone", "renew: timeout", "+5s tick", "+20s tick", "close",
	}
	r := busy(t)
	before := dump(r.lock)
	after := func(event string) string {
		f := r.fork()
		f.Do(event)
		return dump(f.lock)
	}
	for _, first := range events {
		alone := after(first)
		for _, second := range events {
			after(second)
			if dump(r.lock) != before {
				t.Fatalf("%s and %s on copies have changed the original", first, second)
			}
			if after(first) != alone {
				t.Fatalf("%s ends differently after %s on a copy", first, second)
			}
		}
	}
}

func TestEvent_PanicChangesNothing(t *testing.T) {
	r := busy(t)
	before := dump(r.lock)
	func() {
		defer func() { _ = recover() }()
		next := r.lock
		next.Cancel(r.Now, r.ids["d"], 0, "x")
		// A failure without an error makes the event panic half way.
		next.Replied(r.Now, r.command("renew").Seq, lock.Result{Outcome: lock.Failed})
		t.Fatal("the event did not panic")
	}()
	if dump(r.lock) != before {
		t.Fatal("the event has changed the original")
	}
}

func TestEffects_SurviveACrashOfTheActor(t *testing.T) {
	l := lock.New(&scriptConfig, &lock.Kind{})
	l.SetNextTerm(1)
	takes := func(n int, want string) {
		t.Helper()
		var effects []string
		for range n {
			e, _ := l.Effects()
			effects = append(effects, sentence(e))
		}
		if got := strings.Join(effects, "; "); got != want {
			t.Fatalf("the effects are %s, not %s", got, want)
		}
	}
	l.Acquire(0, machine.Request{ID: 1, Ref: "a"})
	takes(1, "acquire #1 x1 for 10s")
	l.Replied(0, 1, lock.Result{Outcome: lock.Done})
	l.Acquire(0, machine.Request{ID: 2, Ref: "b"})
	l.Release(0, 1, 0, machine.Exclusive, "A")
	// The actor takes two of four effects, and crashes. The other two are still there, and later ones follow
	// them.
	takes(2, "a: granted x1 until 9.898s; a: over")
	if _, pending := l.Outstanding(); !slices.Equal(pending, []any{"b", "A"}) {
		t.Fatalf("the pending requests are %v", pending)
	}
	l.Release(0, 2, 0, machine.Exclusive, "B")
	takes(4, "b: handed on x1 until 9.898s; A: freed x0, handed on; b: over; release #1")
	if l.Idle() {
		t.Fatal("the lock is idle during a release")
	}
}

func TestEvents_LeadToTheSameDecisionsAgain(t *testing.T) {
	run := func() string {
		r := busy(t)
		r.sleep(60 * sec)
		return fmt.Sprint(r.output, dump(r.lock))
	}
	if once, again := run(), run(); once != again {
		t.Fatal("the same events have led to different decisions")
	}
}

func TestPoll_IsJittered(t *testing.T) {
	seen := map[time.Duration]bool{}
	for seed := range uint64(200) {
		r := newRig(t, lock.Kind{})
		r.cfg.Seed = seed
		r.Do("asking", "acquire: refused 8s")
		seen[r.wakes("500ms..1s")] = true
	}
	if len(seen) < 150 {
		t.Fatalf("200 processes poll at %d different times only", len(seen))
	}
}

// One command lists a bounded number of waiters, and draws a bounded number of tokens.
func TestCommands_AreBounded(t *testing.T) {
	for _, kind := range []lock.Kind{{Queued: true}, {Tokens: 1}} {
		l := lock.New(&machine.Config{Watchdog: sec, Renewal: sec, Poll: sec, CallTimeout: sec, QueueLimit: 20000}, &kind)
		var c lock.Command
		sends := func() {
			for e, ok := l.Effects(); ok; e, ok = l.Effects() {
				if e.Kind == machine.Send {
					c = *e.Ref.(*lock.Command)
				}
			}
		}
		for id := range uint64(12000) {
			l.SetNextTerm(id + 1)
			l.Acquire(0, machine.Request{ID: id + 1, Fenced: true})
			sends()
		}
		l.Replied(0, c.Seq, lock.Result{Outcome: lock.Refused, Holder: "other:1", TTL: sec})
		l.Signal(0)
		sends()
		if len(c.Entries) > 100 || c.Tokens > 10000 || len(c.Entries) < 100 && c.Tokens < 10000 {
			t.Errorf("%d waiters are listed, and %d tokens are drawn", len(c.Entries), c.Tokens)
		}
	}
}

func TestSyncQueue_TimeoutForgetsNoWaiter(t *testing.T) {
	r := newRig(t, lock.Kind{Queued: true})
	r.Do("asking", "sync: refused 20s", "cancel a", "sleep 9s") // the departure is sent, without a reply
	r.Do("acquire b", "sync: refused 11s")
	for r.Now < 11*sec { // b's tries are answered, but not the departure of a
		r.Do("sleep +20ms")
		if r.sent[len(r.sent)-1].Take {
			r.Do("sync: refused 9s")
		}
		leaving := r.fork()
		leaving.Do("cancel b")
		if leaving.sleep(r.Now + 3*sec); !strings.Contains(strings.Join(leaving.output, "; "), "sync []") {
			t.Fatalf("at %v no command removes b from the queue in Redis: %q", r.Now, leaving.output)
		}
	}
}

func TestSyncQueue_EndsWithoutAReply(t *testing.T) {
	r := newRig(t, lock.Kind{Queued: true})
	r.Do("held owner=7", "acquire b", "cancel b", "release a")
	for ok := true; ok && r.Now < 30*sec; _, ok = r.lock.NextWake() {
		for len(r.sent) > 0 {
			r.reply(r.sent[0], parseResult("timeout"))
		}
		if _, ok := r.lock.NextWake(); ok {
			r.Do("wake")
		}
	}
	r.Do("idle")
}

// The buffer has room for one command; further ones are allocated.
func TestBuffer_HoldsOneCommand(t *testing.T) {
	l := newBench(&lock.Kind{}).now
	l.SetNextTerm(1)
	buffer := new(lock.Buffer)
	l.SetBuffer(buffer)
	l.Acquire(0, machine.Request{ID: 1, Ref: t})
	l.ForceRelease(0, machine.Exclusive, machine.Owners{}, t)
	if l.TakeBuffer() != nil {
		t.Error("the buffer is returned while it has effects")
	}
	var sent []lock.CommandKind
	for {
		e, more := l.Effects()
		if !more {
			break
		}
		if e.Kind == machine.Send {
			sent = append(sent, e.Ref.(*lock.Command).Kind)
		}
	}
	if want := []lock.CommandKind{lock.Acquire, lock.ForceRelease}; !slices.Equal(sent, want) {
		t.Errorf("sent %v, not %v", sent, want)
	}
	if l.TakeBuffer() != buffer {
		t.Error("the buffer is not returned")
	}
	l.SetBuffer(buffer)
	for range 5 {
		l.ForceRelease(0, machine.Exclusive, machine.Owners{}, t)
	}
	for more := true; more; {
		_, more = l.Effects()
	}
	if l.TakeBuffer() != nil {
		t.Error("a buffer that was too small is returned")
	}
}
