package lock_test

import (
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

// fork returns a rig with a copy of the lock.
func (r *rig) fork() *rig {
	other := *r
	other.Apply = other.apply
	other.ids, other.sent = maps.Clone(r.ids), slices.Clone(r.sent)
	return &other
}

func TestPoll_IsJittered(t *testing.T) {
	seen := map[time.Duration]bool{}
	for seed := range uint64(200) {
		r := newRig(t, lock.Features{})
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
	for _, features := range []lock.Features{{Fair: true}, {Tokens: 1}} {
		l := lock.New(&machine.Config{Watchdog: sec, Renewal: sec, Poll: sec, CallTimeout: sec, QueueLimit: 20000}, &features)
		var c lock.Command
		sends := func() {
			for e, ok := l.Next(); ok; e, ok = l.Next() {
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
	r := newRig(t, lock.Features{Fair: true})
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
	r := newRig(t, lock.Features{Fair: true})
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
	l := lock.New(&scriptConfig, &lock.Features{})
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
		e, more := l.Next()
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
		_, more = l.Next()
	}
	if l.TakeBuffer() != nil {
		t.Error("a buffer that was too small is returned")
	}
}
