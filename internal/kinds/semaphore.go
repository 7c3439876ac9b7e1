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

// semaphoreKind is the Kind of semaphores and latches.
type semaphoreKind struct {
	simple
	system  *System
	actor   Actor
	backend *backend.Semaphore
	name    string
	latch   bool
	// spare is memory for the next draft.
	spare *semaphore.Pool
	// pendingReturn has what an actor that was given up still has to give back. Goroutines that bring replies read it,
	// too.
	pendingReturn atomic.Pointer[pendingReturn]
}

func newSemaphore(s *System, name string, a Actor) Kind {
	k := &semaphoreKind{system: s, actor: a, name: name, spare: new(semaphore.Pool)}
	k.backend = backend.NewSemaphore(s.Server, name, s.commandClient(), &s.options, k)
	return k
}

func newLatch(s *System, name string, a Actor) Kind {
	k := &semaphoreKind{system: s, actor: a, name: name, latch: true, spare: new(semaphore.Pool)}
	k.backend = backend.NewLatch(s.Server, name, s.commandClient(), k)
	return k
}

func (k *semaphoreKind) Fresh() machine.Machine {
	p := semaphore.New(k.system.Config)
	if k.latch {
		p = semaphore.NewLatch(k.system.Config)
	}
	return &p
}

func (k *semaphoreKind) Draft(of machine.Machine) machine.Machine {
	next := k.spare
	*next = *of.(*semaphore.Pool)
	if !next.HasNextNumber() {
		next.SetNextNumber(k.system.NextTerm())
	}
	return next
}

func (k *semaphoreKind) Replaced(before, _ machine.Machine) { k.spare = before.(*semaphore.Pool) }

func (k *semaphoreKind) Send(command any, _ machine.Instant) {
	c := *command.(*semaphore.Command)
	c.Entry.Listens = c.Entry.N > 0 && k.actor.ReceivesTransfers(0)
	k.send(c)
}

func (k *semaphoreKind) Perform(e *machine.Effect, _ machine.Instant) {
	switch e.Kind {
	case machine.Forgotten:
		k.reportForgotten(e.Answer.Detail)
	case machine.ReturnRejected:
		k.logRejectedReturn(e.Answer.Detail)
	}
}

// send sends a command to Redis. It may be called on any goroutine, and so may reportForgotten.
func (k *semaphoreKind) send(c semaphore.Command) {
	k.backend.Run(c, time.Now().Add(c.Deadline-k.system.Now())) // for the timers of package time
}

// logRejectedReturn logs an effect ReturnRejected.
func (k *semaphoreKind) logRejectedReturn(detail string) {
	what := "semaphore"
	if k.latch {
		what = "latch"
	}
	k.system.Host.Warn("Redis rejects what is given back, and it is tried again", what, k.name, "detail", detail)
}

// reportForgotten records and logs that permits may not have been given back, or that a count-down may be missing.
func (k *semaphoreKind) reportForgotten(detail string) { k.system.Forget(k.name, k.latch, detail) }

// Replied implements backend.PermitReceiver.
func (k *semaphoreKind) Replied(number uint64, r semaphore.Result) {
	k.actor.Replied(&Reply{To: k.actor, Seq: number, Other: r})
}

func (k *semaphoreKind) Apply(m machine.Machine, now machine.Instant, r *Reply) {
	m.(*semaphore.Pool).Replied(now, r.Seq, r.Other.(semaphore.Result))
}

func (k *semaphoreKind) Acquire(m machine.Machine, now machine.Instant, req machine.Request) {
	m.(*semaphore.Pool).Acquire(now, semaphore.Request{Request: req, N: int(req.Ref.(*request.Call).Count.N)})
}

func (k *semaphoreKind) Event(call *request.Call, _ uint64, _ machine.Owner) Event {
	if call.Op == request.OpRelease {
		return func(m machine.Machine, now machine.Instant) { k.release(m.(*semaphore.Pool), now, call) }
	}
	kind, is := changes[call.Op]
	if !is {
		return nil
	}
	return func(m machine.Machine, now machine.Instant) {
		call.From = now
		m.(*semaphore.Pool).Change(now, semaphore.Change{Kind: kind, N: call.Count.N, TTL: call.Count.TTL, Ref: call})
	}
}

// release returns the permits of a request, or counts down.
func (k *semaphoreKind) release(p *semaphore.Pool, now machine.Instant, call *request.Call) {
	call.From = now
	ref := any(call)
	if _, unawaited := call.By.(request.Unawaited); unawaited {
		ref = nil
	}
	if c := call.Count; k.latch {
		p.CountDown(now, c.ID, ref)
	} else {
		p.Release(now, int(c.N), c.IfExists, ref)
	}
}

var changes = map[request.Op]semaphore.CommandKind{
	request.OpSetPermits: semaphore.Set,
	request.OpAddPermits: semaphore.Add,
	request.OpDrain:      semaphore.Drain,
	request.OpInspect:    semaphore.Inspect,
	request.OpDelete:     semaphore.Delete,
}

func (k *semaphoreKind) Channels(uint64) []backend.Channel {
	return []backend.Channel{k.backend.Channel()}
}

// Inspect refuses: only locks are inspected for the log, and a request to inspect a semaphore has an Event.
func (k *semaphoreKind) Inspect(_ time.Time, done func(*messages.Status, *machine.Answer)) {
	done(nil, &machine.Answer{Kind: machine.NotDone, Reason: machine.Invalid})
}

// Retires removes the record of the last command at the end of the System, unless a copy of a command may still need
// it: it expires then. An actor that was idle leaves the record, so that lockkeeper ls finds what was used a while
// ago; the next actor must not remove it while a copy of a command may need it.
func (k *semaphoreKind) Retires(m machine.Machine, closing bool) {
	number, certain := m.(*semaphore.Pool).Sent()
	switch {
	case closing && number != 0 && certain:
		k.backend.DeleteRecord(number)
	case !closing && !(certain && m.Idle()):
		k.system.renewCommandClient()
	}
}
