package kinds

import (
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// semaphoreAdapter is the Adapter of semaphores and latches.
type semaphoreAdapter struct {
	simple
	kinds   *Kinds
	actor   Actor
	backend *backend.Semaphore
	name    string
	latch   bool
	// spare is memory for the next draft.
	spare *semaphore.Pool
	// pendingReturn is set when the actor is given up, while permits or count-downs are not confirmed. Goroutines that
	// bring replies read it, too.
	pendingReturn atomic.Pointer[pendingReturn]
}

func newSemaphore(s *Kinds, name string, a Actor) Adapter {
	adapter := &semaphoreAdapter{kinds: s, actor: a, name: name, spare: new(semaphore.Pool)}
	adapter.backend = backend.NewSemaphore(s.Server, name, s.commandClient(), &s.options, adapter)
	return adapter
}

func newLatch(s *Kinds, name string, a Actor) Adapter {
	adapter := &semaphoreAdapter{kinds: s, actor: a, name: name, latch: true, spare: new(semaphore.Pool)}
	adapter.backend = backend.NewLatch(s.Server, name, s.commandClient(), adapter)
	return adapter
}

func (a *semaphoreAdapter) Fresh() machine.Machine {
	p := semaphore.New(a.kinds.Config)
	if a.latch {
		p = semaphore.NewLatch(a.kinds.Config)
	}
	return &p
}

func (a *semaphoreAdapter) Draft(of machine.Machine) machine.Machine {
	next := a.spare
	*next = *of.(*semaphore.Pool)
	if !next.HasNextNumber() {
		next.SetNextNumber(a.kinds.NextTerm())
	}
	return next
}

func (a *semaphoreAdapter) Replaced(before, _ machine.Machine) { a.spare = before.(*semaphore.Pool) }

func (a *semaphoreAdapter) Send(command any, _ machine.Instant) {
	c := *command.(*semaphore.Command)
	c.Entry.Listens = c.Entry.N > 0 && a.actor.ReceivesTransfers(0)
	a.send(c)
}

func (a *semaphoreAdapter) Perform(e *machine.Effect, _ machine.Instant) {
	switch e.Kind {
	case machine.Forgotten:
		a.reportForgotten(e.Answer.Detail)
	case machine.ReturnRejected:
		a.logRejectedReturn(e.Answer.Detail)
	}
}

// send sends a command to Redis. It may be called on any goroutine, and so may reportForgotten.
func (a *semaphoreAdapter) send(c semaphore.Command) {
	a.backend.Run(c, time.Now().Add(c.Deadline-a.kinds.Now())) // by the clock of package time, for its timers
}

// logRejectedReturn logs an effect ReturnRejected.
func (a *semaphoreAdapter) logRejectedReturn(detail string) {
	what := "semaphore"
	if a.latch {
		what = "latch"
	}
	a.kinds.Host.Warn("Redis rejects what is given back, and it is tried again", what, a.name, "detail", detail)
}

// reportForgotten records and logs that permits may not have been given back, or that a count-down may be missing.
func (a *semaphoreAdapter) reportForgotten(detail string) { a.kinds.Forget(a.name, a.latch, detail) }

// Replied implements backend.PermitReceiver.
func (a *semaphoreAdapter) Replied(number uint64, r semaphore.Result) {
	a.actor.Replied(&Reply{To: a.actor, Seq: number, Other: r})
}

func (a *semaphoreAdapter) Apply(m machine.Machine, now machine.Instant, r *Reply) {
	m.(*semaphore.Pool).Replied(now, r.Seq, r.Other.(semaphore.Result))
}

func (a *semaphoreAdapter) Acquire(m machine.Machine, now machine.Instant, req machine.Request) {
	m.(*semaphore.Pool).Acquire(now, semaphore.Request{Request: req, N: int(req.Ref.(*request.Call).Count.N)})
}

func (a *semaphoreAdapter) Event(call *request.Call, _ uint64, _ machine.Owner) Event {
	if call.Op == request.OpRelease {
		return func(m machine.Machine, now machine.Instant) { a.release(m.(*semaphore.Pool), now, call) }
	}
	kind, is := changes[call.Op]
	if !is {
		return nil
	}
	return func(m machine.Machine, now machine.Instant) {
		call.Since = now
		m.(*semaphore.Pool).Change(now, semaphore.Change{Kind: kind, N: call.Count.N, TTL: call.Count.TTL, Ref: call})
	}
}

// release returns the permits of a request, or counts down.
func (a *semaphoreAdapter) release(p *semaphore.Pool, now machine.Instant, call *request.Call) {
	call.Since = now
	ref := any(call)
	if _, unawaited := call.By.(request.Unawaited); unawaited {
		ref = nil
	}
	if c := call.Count; a.latch {
		p.CountDown(now, c.ID, ref)
	} else {
		p.Release(now, int(c.N), c.IfExists, ref)
	}
}

var changes = map[request.Op]semaphore.CommandKind{
	request.OpSet:     semaphore.Set,
	request.OpAdd:     semaphore.Add,
	request.OpDrain:   semaphore.Drain,
	request.OpInspect: semaphore.Inspect,
	request.OpDelete:  semaphore.Delete,
}

func (a *semaphoreAdapter) Channels(uint64) []backend.Channel {
	return []backend.Channel{a.backend.Channel()}
}

// Inspect refuses: only locks are inspected for the log, and a request to inspect a semaphore has an Event.
func (a *semaphoreAdapter) Inspect(_ time.Time, done func(*messages.Status, *machine.Answer)) {
	done(nil, &machine.Answer{Kind: machine.NotDone, Reason: machine.Invalid})
}

// Retires removes the record of the last command at the end of the System. If a copy of a command may still need the
// record, it is left to expire. An actor that was idle leaves the record, so that lockkeeper ls finds semaphores that
// were used a while ago; the next actor must not remove the record while a copy of a command may need it.
func (a *semaphoreAdapter) Retires(m machine.Machine, closing bool) {
	number, certain := m.(*semaphore.Pool).Sent()
	switch {
	case closing && number != 0 && certain:
		a.backend.DeleteRecord(number)
	case !closing && !(certain && m.Idle()):
		a.kinds.renewCommandClient()
	}
}
