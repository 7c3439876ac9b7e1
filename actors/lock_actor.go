package actors

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockActor turns messages, timers and replies into events of its lock and carries
// out what follows. It keeps nothing of its own: all state is in the lockState.
type lockActor struct{ state *lockState }

func (a *lockActor) Receive(ctx actor.Context) {
	s := a.state
	m := s.began(ctx)
	defer func() { s.ctx = nil }()
	s.lender = nil
	if s.leaving != nil {
		s.leaving.receive(s, m, ctx.Sender())
		return
	}
	if isRequest(m) && formatOf(kindOf(m)) != s.format {
		s.otherFormat(m, ctx.Sender())
		return
	}
	switch m := m.(type) {
	case *Call:
		s.called(m)
	case *replied:
		s.variant.replied(m)
	case tick:
		s.ticked()
	case unlocked:
		if s.signals.relevant(m.channel) {
			s.handle(m, func(l machine, now lock.Instant) { l.Signal(now) })
		}
	case listening:
		if s.signals.relevant(m.channel) {
			s.note(nil, "subscribed", "", "")
			s.handle(m, func(l machine, now lock.Instant) { l.Subscribed(now, m.term) })
		}
	case *transferred:
		s.note(nil, "transferred", "", "")
		s.handle(m, func(l machine, now lock.Instant) { l.Transferred(now, m.transfer) })
	case *messages.Acquire:
		s.acquire(m, ctx.Sender())
	case *messages.Release:
		s.release(m, ctx.Sender())
	case *messages.Cancel:
		by := messageRequestOf(m, ctx.Sender())
		owner := s.owners.number(requestOwner(m.Owner, ctx.Sender()))
		s.handle(m, func(l machine, now lock.Instant) { l.Cancel(now, 0, owner, by) })
	case *messages.ForceRelease:
		by := messageRequestOf(m, ctx.Sender())
		s.handle(m, func(l machine, now lock.Instant) { l.ForceRelease(now, lock.Mode(m.Lock.Mode), s.named(m.Owners), by) })
	case *messages.Inspect:
		s.inspect(m, messageRequestOf(m, ctx.Sender()))
	case *inspection:
		s.inspected(m)
	case suspicion:
		s.handle(m, func(l machine, now lock.Instant) { l.Suspect(now) })
	case *actor.Terminated:
		s.owners.terminated(&s.keyActor, m.Who)
		s.carryOut()
	case shutdown:
		s.closing = true
		s.handle(m, func(l machine, now lock.Instant) { l.Close(now) })
	case abandon:
		s.giveUp(lock.Closed, "the Lockkeeper system was closed before Redis confirmed the release")
		s.leaving.abandon(s)
	case *actor.Started:
		s.started(ctx.Self())
		s.stopAlarm() // after a crash: whatever it was set to, it is set anew
		s.carryOut()  // and what the crash has left undone
	case *actor.Stopping:
		s.stopping()
	default:
		s.variant.received(m, ctx.Sender())
	}
}

// called handles the request of a goroutine.
func (s *lockState) called(call *Call) {
	if call.lends {
		s.lender = call
	}
	switch call.Op {
	case OpAcquire:
		if call.withdrawn.Load() {
			s.accepted = call
			call.refuse(lock.CancelledByRequest, "the request was withdrawn")
			return
		}
		if call.Owner == 0 {
			call.Owner = s.rt.newOwner()
		}
		req := lock.Request{
			ID: s.newID(), Owner: call.Owner, Mode: lock.Mode(call.Mode), NoReentry: call.NoReentry, Fenced: s.fenced(call.Kind),
			Lease: call.Lease, MaxHold: call.MaxHold, Try: call.Try, Ref: call,
		}
		call.id.Store(req.ID)
		s.handle(call, func(l machine, now lock.Instant) {
			call.from = now
			req.Deadline = deadline(now, call.Wait)
			l.Acquire(now, req)
		})
	case OpRelease:
		s.handle(call, func(l machine, now lock.Instant) {
			call.from = now
			l.Release(now, call.HoldID, 0, lock.Mode(call.Mode), call)
		})
	case OpCancel:
		id := call.Target.id.Load()
		s.handle(call, func(l machine, now lock.Instant) { l.Cancel(now, id, 0, call) })
	case OpForceRelease:
		s.handle(call, func(l machine, now lock.Instant) {
			l.ForceRelease(now, lock.Mode(call.Mode), s.named(call.Owners), call)
		})
	case OpEnsure:
		s.handle(call, func(l machine, now lock.Instant) { l.Ensure(now, call.HoldID, call.Within, call) })
	case OpInspect:
		s.inspect(call, call)
	case OpList:
		s.accepted = call
		call.complete(&Outcome{Status: s.listed()})
		s.carryOut() // a Close may wait for nothing but this
	default:
		s.variant.called(call)
	}
}

// named are the owners that a forced release names.
func (s *lockState) named(owners []string) (named lock.Owners) {
	for _, owner := range owners {
		named.Fields = append(named.Fields, owner)
		if client, number, _ := strings.Cut(owner, ":"); client == cmp.Or(s.client, s.rt.id) {
			named.Term, _ = strconv.ParseUint(number, 10, 64)
		}
	}
	return named
}

// deadline is when a wait ends; 0 for one without limit.
func deadline(now lock.Instant, wait time.Duration) lock.Instant {
	if wait <= 0 || wait > math.MaxInt64-now {
		return 0
	}
	return now + wait
}

// requestOwner is whom a request is for: the PID that it names, else its sender if
// that is an actor, else nobody.
func requestOwner(named, sender *actor.PID) *actor.PID {
	switch {
	case named != nil:
		return named
	case sender != nil && !isFuture(sender):
		return sender
	}
	return nil
}

func (s *lockState) acquire(m *messages.Acquire, sender *actor.PID) {
	by := messageRequestOf(m, sender)
	by.within = s.rt.parentIn(s.ctx.MessageHeader())
	if m.Lock.Kind == messages.Kind_KIND_MULTI {
		_, by.members, _ = s.rt.named(m.Lock) // their order is this request's own
	}
	req := lock.Request{
		ID: s.newID(), Ref: by, Mode: lock.Mode(m.Lock.Mode), NoReentry: m.NoReentry, Fenced: s.fenced(m.Lock.Kind),
		Lease: m.Lease.AsDuration(), MaxHold: m.MaxHold.AsDuration(),
	}
	if pid := requestOwner(m.Owner, sender); pid != nil {
		by.owner = s.owners.of(&s.keyActor, pid)
		req.Owner = by.owner.id
		req.NoReentry = req.NoReentry || s.rt.foreign(pid)
	}
	wait := m.Wait.AsDuration()
	req.Try = m.Wait != nil && wait == 0
	s.handle(m, func(l machine, now lock.Instant) {
		by.from = now
		req.Deadline = deadline(now, wait)
		l.Acquire(now, req)
	})
}

func (s *lockState) release(m *messages.Release, sender *actor.PID) {
	by := messageRequestOf(m, sender)
	by.within = s.rt.parentIn(s.ctx.MessageHeader())
	var id uint64
	var owner lock.Owner
	if m.HoldId != "" {
		id = parseHoldID(m.HoldId)
	} else if w := s.owners.find(requestOwner(m.Owner, sender)); w != nil {
		id, owner = w.lost, w.id
	}
	if id == 0 && owner == 0 {
		id = math.MaxUint64 // nobody's: the lock says so
	}
	s.handle(m, func(l machine, now lock.Instant) {
		by.from = now
		l.Release(now, id, owner, lock.Mode(m.Lock.Mode), by)
	})
}

// ticked handles the alarm.
func (s *lockState) ticked() {
	if s.retireIfIdle() {
		return
	}
	s.handle(tick{}, func(l machine, now lock.Instant) { l.Tick(now) })
	s.remind()
}

// stopping handles a stop that the guardian may not have asked for: nobody is to come
// any more, everybody is told, and the lock is released.
func (s *lockState) stopping() {
	s.stopAlarm()
	if !s.idle() {
		s.giveUp(lock.Closed, "the lock actor was stopped")
		return
	}
	s.rt.table.drop(&s.keyActor)
	s.gate.close()
}
