package lock_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/machinetest"
)

// rig drives one lock, and records its effects in the notation of the scripts.
type rig struct {
	machinetest.Player
	cfg      machine.Config
	features lock.Features
	lock     lock.Lock
	terms    uint64
	ids      map[string]uint64
	sent     []lock.Command // not answered yet
	answered lock.Command   // answered last
	output   []string
	// detail is the last detail of an answer or a notification.
	detail string
}

func newRig(t *testing.T, features lock.Features) *rig {
	t.Helper()
	r := &rig{Player: machinetest.Player{T: t}, cfg: scriptConfig, features: features, ids: map[string]uint64{}}
	r.Apply = r.apply
	r.lock = lock.New(&r.cfg, &r.features)
	return r
}

func (r *rig) apply(words []string) (effects []string, known bool) {
	r.T.Helper()
	r.output = nil
	known = r.event(words)
	return r.output, known
}

// do applies an event to a copy, as the lock actor does; and first to another copy, which is discarded and must
// not change the original.
func (r *rig) do(event func(*lock.Lock)) {
	r.T.Helper()
	if !r.lock.HasNextTerm() {
		r.terms++
		r.lock.SetNextTerm(r.terms)
	}
	before := dump(r.lock)
	discarded := r.lock
	event(&discarded)
	if after := dump(r.lock); after != before {
		r.T.Fatalf("an event on a copy has changed the original\nfrom %s\nto   %s", before, after)
	}
	next := r.lock
	event(&next)
	r.lock = next
	for e, ok := r.lock.Next(); ok; e, ok = r.lock.Next() {
		if e.Kind == machine.Send {
			r.sent = append(r.sent, *e.Ref.(*lock.Command))
		}
		r.detail = cmp.Or(e.Answer.Detail, r.detail)
		r.output = append(r.output, sentence(e))
	}
}

// acquire asks for the lock. The name of the client identifies the answer; that to a release has the name in upper
// case.
func (r *rig) acquire(name string, options ...string) {
	r.T.Helper()
	r.ids[name] = uint64(len(r.ids) + 1)
	req := machinetest.Request(r.Now, options...)
	req.ID, req.Ref = r.ids[name], name
	r.do(func(l *lock.Lock) { l.Acquire(r.Now, req) })
}

// reply answers a command.
func (r *rig) reply(c lock.Command, result lock.Result) {
	r.T.Helper()
	r.answered = c
	r.sent = slices.DeleteFunc(r.sent, func(other lock.Command) bool { return other.Seq == c.Seq })
	r.do(func(l *lock.Lock) { l.Replied(r.Now, c.Seq, result) })
}

// command returns the last command of a kind that is not answered yet.
func (r *rig) command(kind string) lock.Command {
	r.T.Helper()
	for _, c := range slices.Backward(r.sent) {
		if commandNames[c.Kind] == kind {
			return c
		}
	}
	r.T.Fatalf("no %s is under way: %v", kind, r.sent)
	return lock.Command{}
}

// tick applies a Tick at a time, without those that the lock needs before.
func (r *rig) tick(at machine.Instant) {
	r.T.Helper()
	r.Now = at
	r.do(func(l *lock.Lock) { l.Tick(at) })
}

// sleep lets time pass, with a Tick whenever the lock needs one.
func (r *rig) sleep(end machine.Instant) {
	r.T.Helper()
	for range 1000 {
		wake, ok := r.lock.NextWake()
		if !ok || wake > end {
			r.Now = end
			return
		}
		r.tick(max(wake, r.Now))
	}
	r.T.Fatalf("the lock needs too many Ticks before %v", end)
}

// wakes returns when the lock needs its next Tick, and compares that with a time or a range, if there is one.
func (r *rig) wakes(words ...string) machine.Instant {
	r.T.Helper()
	wake, ok := r.lock.NextWake()
	if len(words) > 0 {
		from, to, _ := strings.Cut(words[0], "..")
		earliest, _ := r.Time(from)
		latest, between := r.Time(to)
		ok = ok && (wake == earliest || between && wake >= earliest && wake <= latest)
	}
	r.Require(ok, "the lock wakes at %v", wake)
	return wake
}

// dump formats a value with all that it refers to, so two dumps differ if anything reachable from the value has
// changed. Of a pointer in an interface, such as a Ref, it writes the address only.
func dump(value any) string {
	var text strings.Builder
	write(&text, reflect.ValueOf(value))
	return text.String()
}

func write(text *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		text.WriteByte('{')
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				continue
			}
			text.WriteString(v.Type().Field(i).Name)
			text.WriteByte(':')
			write(text, v.Field(i))
			text.WriteByte(' ')
		}
		text.WriteByte('}')
	case reflect.Slice:
		text.WriteByte('[')
		for i := range v.Len() {
			write(text, v.Index(i))
			text.WriteByte(' ')
		}
		text.WriteByte(']')
	case reflect.Pointer:
		if !v.IsNil() {
			write(text, v.Elem())
		}
	case reflect.Interface:
		if e := v.Elem(); e.Kind() == reflect.Pointer {
			fmt.Fprintf(text, "%#x", e.Pointer())
		} else {
			fmt.Fprint(text, e)
		}
	default:
		fmt.Fprint(text, v)
	}
}

// receive delivers the message of a transfer, or of a question.
func receive(l *lock.Lock, now machine.Instant, t machine.Transfer) {
	if t.IsQuestion() {
		l.Asked(now, t.Term)
	} else {
		l.Transferred(now, t)
	}
}
