package core_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// rigConfig is what the tables reckon with. Its margin is 102 ms.
var rigConfig = core.Config{
	Lease: 10 * sec, Renewal: 3 * sec, Tenure: 100 * ms, Opening: sec, Poll: sec, CallTimeout: sec, QueueLimit: 3,
}

// The results that Redis may give.
var (
	done     = core.Result{Outcome: core.Done}
	kept     = core.Result{Outcome: core.Kept}
	gone     = core.Result{Outcome: core.Absent}
	taken    = core.Result{Outcome: core.Absent, Taken: true}
	loadingR = core.Result{Outcome: core.Failed, Err: errors.New("LOADING"), Transient: true}
	timeoutR = core.Result{Outcome: core.Failed, Err: errors.New("i/o timeout"), Transient: true, Unsure: true}
	denied   = core.Result{Outcome: core.Failed, Err: errors.New("NOPERM")}
)

func refused(ttl time.Duration) core.Result {
	return core.Result{Outcome: core.Refused, TTL: ttl, Holder: "other:1"}
}

func yielded(others int) core.Result { return core.Result{Outcome: core.Done, Others: others} }

// rig drives one lock by hand, and writes down in short what it wants done.
type rig struct {
	t     *testing.T
	lock  core.Lock
	now   core.Instant
	terms uint64
	ids   map[string]uint64
	sent  []core.Command
	said  []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cfg := rigConfig
	return newRigWith(t, &cfg)
}

func newRigWith(t *testing.T, cfg *core.Config) *rig {
	t.Helper()
	return newRigOf(t, cfg, core.Kind{})
}

// newRigOf is a rig whose lock is of some kind.
func newRigOf(t *testing.T, cfg *core.Config, kind core.Kind) *rig {
	t.Helper()
	return &rig{t: t, lock: core.New(cfg, &kind), ids: map[string]uint64{}}
}

// held is a rig at 2 ms whose lock was granted to a, on its request at 0.
func held(t *testing.T, options ...option) *rig {
	t.Helper()
	r := newRig(t)
	r.acquire("a", options...)
	r.now = 2 * ms
	r.reply(core.Acquire, done)
	r.forget()
	return r
}

// contending is a rig at 4 ms whose a was refused twice: before its subscription was
// confirmed, and after.
func contending(t *testing.T, options ...option) *rig {
	t.Helper()
	r := newRig(t)
	r.acquire("a", options...)
	r.now = 2 * ms
	r.reply(core.Acquire, refused(8*sec))
	r.do(func(l *core.Lock) { l.Subscribed(r.now, 0) })
	r.now = 4 * ms
	r.reply(core.Acquire, refused(8*sec))
	r.forget()
	return r
}

// do applies an event to a copy, as the shell does; and to another copy before, which
// is thrown away and must not leave a trace.
func (r *rig) do(event func(*core.Lock)) {
	r.t.Helper()
	if !r.lock.SpareTerm() {
		r.terms++
		r.lock.Refill(r.terms)
	}
	before := dump(r.lock)
	vain := r.lock
	event(&vain)
	if after := dump(r.lock); after != before {
		r.t.Fatalf("an event on a copy has changed the original\nfrom %s\nto   %s", before, after)
	}
	next := r.lock
	event(&next)
	r.lock = next
	for {
		e, ok := r.lock.Effects()
		if !ok {
			return
		}
		if e.Kind == core.Send {
			r.sent = append(r.sent, e.Command)
		}
		r.said = append(r.said, sentence(e))
	}
}

// wants checks what the lock has asked for since the last look, in this order.
func (r *rig) wants(sentences ...string) {
	r.t.Helper()
	if !slices.Equal(r.said, sentences) {
		r.t.Fatalf("at %v it says\n\t%s\nbut it should say\n\t%s", r.now, strings.Join(r.said, "\n\t"), strings.Join(sentences, "\n\t"))
	}
	r.forget()
}

func (r *rig) forget() { r.said = nil }

// The requests. A client is known by its name, and so is an answer.

type option func(*core.Ticket)

func owner(o core.Owner) option          { return func(t *core.Ticket) { t.Owner = o } }
func fixed(d time.Duration) option       { return func(t *core.Ticket) { t.Lease = d } }
func maxHold(d time.Duration) option     { return func(t *core.Ticket) { t.MaxHold = d } }
func until(deadline core.Instant) option { return func(t *core.Ticket) { t.Deadline = deadline } }
func try(t *core.Ticket)                 { t.Try = true }
func once(t *core.Ticket)                { t.Once = true }
func shared(t *core.Ticket)              { t.Mode = core.Shared }
func fenced(t *core.Ticket)              { t.Fenced = true }

func (r *rig) acquire(name string, options ...option) {
	r.t.Helper()
	r.ids[name] = uint64(len(r.ids) + 1)
	ticket := core.Ticket{ID: r.ids[name], Ref: name}
	for _, set := range options {
		set(&ticket)
	}
	r.do(func(l *core.Lock) { l.Acquire(r.now, ticket) })
}

// release gives back the hold of a client; it is answered to the name in upper case.
func (r *rig) release(name string) {
	r.t.Helper()
	r.releaseIn(core.Exclusive, name)
}

// leave gives back the shared hold of a client.
func (r *rig) leave(name string) {
	r.t.Helper()
	r.releaseIn(core.Shared, name)
}

func (r *rig) releaseIn(mode core.Mode, name string) {
	r.t.Helper()
	r.do(func(l *core.Lock) { l.Release(r.now, r.ids[name], 0, mode, strings.ToUpper(name)) })
}

func (r *rig) cancel(name string) {
	r.t.Helper()
	r.do(func(l *core.Lock) { l.Cancel(r.now, r.ids[name], 0, "cancel") })
}

func (r *rig) ensure(name string, d time.Duration) {
	r.t.Helper()
	r.do(func(l *core.Lock) { l.Ensure(r.now, r.ids[name], d, "ensure") })
}

func (r *rig) ownerGone(o core.Owner) {
	r.t.Helper()
	r.do(func(l *core.Lock) { l.OwnerGone(r.now, o) })
}

func (r *rig) force() {
	r.t.Helper()
	r.forceIn(core.Exclusive)
}

func (r *rig) forceIn(mode core.Mode) {
	r.t.Helper()
	r.do(func(l *core.Lock) { l.ForceRelease(r.now, mode, "force") })
}

func (r *rig) close() {
	r.t.Helper()
	r.do(func(l *core.Lock) { l.Close(r.now) })
}

func (r *rig) signal() {
	r.t.Helper()
	r.do(func(l *core.Lock) { l.Signal(r.now) })
}

func (r *rig) subscribed() {
	r.t.Helper()
	r.subscribedAs(0)
}

func (r *rig) subscribedAs(term uint64) {
	r.t.Helper()
	r.do(func(l *core.Lock) { l.Subscribed(r.now, term) })
}

// reply answers the last command of a kind that is not answered yet.
func (r *rig) reply(kind core.CommandKind, result core.Result) {
	r.t.Helper()
	for i, c := range slices.Backward(r.sent) {
		if c.Kind == kind {
			r.sent = slices.Delete(r.sent, i, i+1)
			r.do(func(l *core.Lock) { l.Replied(r.now, c.Seq, result) })
			return
		}
	}
	r.t.Fatalf("no such command is under way: %v", r.sent)
}

// last is the last command of a kind that is not answered yet.
func (r *rig) last(kind core.CommandKind) core.Command {
	r.t.Helper()
	for _, c := range slices.Backward(r.sent) {
		if c.Kind == kind {
			return c
		}
	}
	r.t.Fatalf("no such command is under way: %v", r.sent)
	return core.Command{}
}

// tick lets the time come, and no wake-up before it.
func (r *rig) tick(at core.Instant) {
	r.t.Helper()
	r.now = at
	r.do(func(l *core.Lock) { l.Tick(at) })
}

// sleep lets time pass, with a Tick whenever the lock wants one.
func (r *rig) sleep(end core.Instant) {
	r.t.Helper()
	for range 1000 {
		wake, ok := r.lock.NextWake()
		if !ok || wake > end {
			r.now = end
			return
		}
		r.tick(max(wake, r.now))
	}
	r.t.Fatalf("it does not sleep before %v", end)
}

// wakes checks when the lock wants its next Tick.
func (r *rig) wakes(at core.Instant) {
	r.t.Helper()
	if wake, ok := r.lock.NextWake(); !ok || wake != at {
		r.t.Fatalf("at %v it wants to wake at %v (%v), not %v", r.now, wake, ok, at)
	}
}

// wakesWithin checks it if it is jittered, and gives the time.
func (r *rig) wakesWithin(earliest, latest core.Instant) core.Instant {
	r.t.Helper()
	wake, ok := r.lock.NextWake()
	if !ok || wake < earliest || wake > latest {
		r.t.Fatalf("at %v it wants to wake at %v (%v), not within %v and %v", r.now, wake, ok, earliest, latest)
	}
	return wake
}

// idle checks that nothing is left.
func (r *rig) idle() {
	r.t.Helper()
	if wake, ok := r.lock.NextWake(); ok || !r.lock.Idle() {
		r.t.Fatalf("it is not idle, and wakes at %v (%v): %s", wake, ok, dump(r.lock))
	}
}

// sentence says in short what an effect asks for. Terms are numbered from 1.
func sentence(e core.Effect) string {
	a := e.Answer
	switch e.Kind {
	case core.Send:
		return commandSentence(e.Command)
	case core.Reply:
		return fmt.Sprintf("%v: %s", e.Ref, answerSentence(a))
	case core.TellLost:
		return fmt.Sprintf("%v: lost, %v", e.Ref, a.Reason)
	case core.TellAtRisk:
		return fmt.Sprintf("%v: at risk until %v", e.Ref, a.Until)
	case core.Over:
		return fmt.Sprintf("%v: over", e.Ref)
	case core.Subscribe:
		return "subscribe" + termSentence(e.Term)
	case core.Unsubscribe:
		return "unsubscribe" + termSentence(e.Term)
	case core.LeaveBehind:
		return fmt.Sprintf("left behind until %v", a.Until)
	}
	return fmt.Sprint(e)
}

func termSentence(term uint64) string {
	if term == 0 {
		return ""
	}
	return fmt.Sprintf(" #%d", term)
}

// countSentence tells how often the lock is to be held: x2, or r2 if it is shared.
func countSentence(c core.Command) string {
	switch {
	case c.Shared == 0:
		return fmt.Sprintf("x%d", c.Count)
	case c.Count == 0:
		return fmt.Sprintf("r%d", c.Shared)
	}
	return fmt.Sprintf("x%d r%d", c.Count, c.Shared)
}

// enrolSentence lists the waiters, and says up to which term others leave the queue.
func enrolSentence(c core.Command) string {
	var entries []string
	for _, e := range c.Entries {
		entry := fmt.Sprintf("#%d", e.Term)
		if e.Try {
			entry += " try"
		}
		entries = append(entries, entry)
	}
	text := fmt.Sprintf("enrol [%s] of #%d", strings.Join(entries, ", "), c.Top)
	if c.Take {
		text += " and take"
	}
	if c.Term != 0 {
		text += fmt.Sprintf(" after #%d", c.Term)
	}
	return text
}

func commandSentence(c core.Command) string {
	switch c.Kind {
	case core.Acquire:
		return fmt.Sprintf("acquire #%d %s for %v", c.Term, countSentence(c), c.Lease)
	case core.Release:
		if c.Count+c.Shared > 0 {
			return fmt.Sprintf("release #%d to %s for %v", c.Term, countSentence(c), c.Lease)
		}
		return fmt.Sprintf("release #%d", c.Term)
	case core.Renew:
		if c.Hurry {
			return fmt.Sprintf("renew #%d now", c.Term)
		}
		return fmt.Sprintf("renew #%d", c.Term)
	case core.Yield:
		text := fmt.Sprintf("yield #%d", c.Term)
		if c.Subscribed {
			text += " subscribed"
		}
		if c.Open {
			text += " open"
		}
		return text
	case core.Look:
		return fmt.Sprintf("look #%d", c.Term)
	case core.Enrol:
		return enrolSentence(c)
	}
	return "force"
}

func answerSentence(a core.Answer) string {
	switch a.Kind {
	case core.Granted:
		text := "granted"
		if a.HandedOn {
			text = "handed on"
		}
		if text += fmt.Sprintf(" x%d until %v", a.Count, a.Until); a.Tokens != nil {
			text += fmt.Sprintf(", tokens %v", a.Tokens)
		}
		return text
	case core.NotGranted:
		if a.TTL >= 0 {
			return fmt.Sprintf("refused, %v, ttl %v", a.Reason, a.TTL)
		}
		return fmt.Sprintf("refused, %v", a.Reason)
	case core.Freed:
		if a.HandedOn {
			return fmt.Sprintf("freed x%d, handed on", a.Count)
		}
		return fmt.Sprintf("freed x%d", a.Count)
	case core.NotFreed:
		return fmt.Sprintf("not freed, %v", a.Reason)
	case core.Withdrawn:
		return fmt.Sprintf("withdrawn %d", a.Count)
	case core.Forced:
		return fmt.Sprintf("forced %d", a.Count)
	case core.Ensured:
		return fmt.Sprintf("ensured until %v", a.Until)
	}
	return fmt.Sprintf("not done, %v", a.Reason)
}

// terms are those that a lock that is given up must still see released.
func terms(l *core.Lock) []uint64 {
	var all []uint64
	for _, c := range l.Farewell(0) {
		if c.Kind == core.Release {
			all = append(all, c.Term)
		}
	}
	return all
}

// everyone lists whom a lock that has one holder at most still owes something.
func everyone(l *core.Lock) (holder any, id uint64, pending []any) {
	holders, pending := l.Everyone()
	if len(holders) > 0 {
		holder, id = holders[0].Ref, holders[0].ID
	}
	return holder, id, pending
}
