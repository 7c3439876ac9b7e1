package actors

import (
	"math"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockActor turns messages, timers and replies into events of its lock and carries
// out what follows. It keeps nothing of its own: all state is in the cell.
type lockActor struct{ cell *cell }

func (a *lockActor) Receive(ctx actor.Context) {
	c := a.cell
	c.mu.Lock()
	c.ctx = ctx
	defer func() {
		c.ctx = nil
		c.mu.Unlock()
	}()
	m := unrepeated(ctx.Message())
	c.accepted, c.lender = nil, nil
	if isRequest(m) {
		c.counted = ctx.Message()
		c.seen++
	}
	if c.leaving != nil {
		c.leaving.receive(c, m, ctx.Sender())
		return
	}
	if isRequest(m) && formatOf(kindOf(m)) != c.format {
		c.otherFormat(m, ctx.Sender())
		return
	}
	switch m := m.(type) {
	case *Call:
		c.called(m)
	case *replied:
		c.rt.metrics.replied(m.result)
		stale := slices.ContainsFunc(m.busy, c.toldOf)
		if m.busy != nil {
			c.busy = m.busy
		}
		c.handle(m, func(l *core.Lock, now core.Instant) {
			l.Replied(now, m.seq, m.result)
			if stale {
				l.Signal(now)
			}
		})
	case tick:
		c.ticked()
	case unlocked:
		if c.minds(m.ear) {
			c.handle(m, func(l *core.Lock, now core.Instant) { l.Signal(now) })
		}
	case listening:
		if c.minds(m.ear) {
			c.handle(m, func(l *core.Lock, now core.Instant) { l.Subscribed(now, m.term) })
		}
	case *messages.Acquire:
		c.acquire(m, ctx.Sender())
	case *messages.Release:
		c.release(m, ctx.Sender())
	case *messages.Cancel:
		by := &letter{op: OpCancel, lock: m.Lock, replyTo: ctx.Sender()}
		owner := c.owners.number(requestOwner(m.Owner, ctx.Sender()))
		c.handle(m, func(l *core.Lock, now core.Instant) { l.Cancel(now, 0, owner, by) })
	case *messages.ForceRelease:
		by := &letter{op: OpForceRelease, lock: m.Lock, replyTo: ctx.Sender()}
		c.handle(m, func(l *core.Lock, now core.Instant) { l.ForceRelease(now, core.Mode(m.Lock.Mode), by) })
	case *messages.Inspect:
		c.inspect(m, &letter{op: OpInspect, lock: m.Lock, replyTo: ctx.Sender()})
	case *inspection:
		c.inspected(m)
	case suspicion:
		c.handle(m, func(l *core.Lock, now core.Instant) { l.Suspect(now) })
	case *actor.Terminated:
		c.owners.terminated(c, m.Who)
		c.carryOut()
	case shutdown:
		c.closing = true
		c.handle(m, func(l *core.Lock, now core.Instant) { l.Close(now) })
	case *actor.Started:
		if c.pid == nil {
			c.pid = ctx.Self()
		}
		c.stopAlarm() // after a crash: whatever it was set to, it is set anew
		c.carryOut()  // and what the crash has left undone
	case *actor.Stopping:
		c.stopping()
	}
}

// called handles the request of a goroutine.
func (c *cell) called(call *Call) {
	if call.lends {
		c.lender = call
	}
	switch call.Op {
	case OpAcquire:
		if call.withdrawn.Load() {
			c.accepted = call
			call.refuse(core.CancelledByRequest, "the request was withdrawn")
			return
		}
		if call.Owner == 0 {
			call.Owner = c.rt.newOwner()
		}
		ticket := core.Ticket{
			ID: c.newID(), Owner: call.Owner, Mode: core.Mode(call.Mode), Once: call.Once, Fenced: c.fenced(call.Kind),
			Lease: call.Lease, MaxHold: call.MaxHold, Try: call.Try, Ref: call,
		}
		call.id.Store(ticket.ID)
		c.handle(call, func(l *core.Lock, now core.Instant) {
			ticket.Deadline = deadline(now, call.Wait)
			l.Acquire(now, ticket)
		})
	case OpRelease:
		c.handle(call, func(l *core.Lock, now core.Instant) { l.Release(now, call.HoldID, 0, core.Mode(call.Mode), call) })
	case OpCancel:
		id := call.Target.id.Load()
		c.handle(call, func(l *core.Lock, now core.Instant) { l.Cancel(now, id, 0, call) })
	case OpForceRelease:
		c.handle(call, func(l *core.Lock, now core.Instant) { l.ForceRelease(now, core.Mode(call.Mode), call) })
	case OpEnsure:
		c.handle(call, func(l *core.Lock, now core.Instant) { l.Ensure(now, call.HoldID, call.Within, call) })
	case OpInspect:
		c.inspect(call, call)
	}
}

// deadline is when a wait ends; 0 for one without limit.
func deadline(now core.Instant, wait time.Duration) core.Instant {
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

func (c *cell) acquire(m *messages.Acquire, sender *actor.PID) {
	by := &letter{op: OpAcquire, lock: m.Lock, replyTo: sender}
	if m.Lock.Kind == messages.Kind_KIND_MULTI {
		_, by.members, _ = c.rt.named(m.Lock) // their order is this request's own
	}
	ticket := core.Ticket{
		ID: c.newID(), Ref: by, Mode: core.Mode(m.Lock.Mode), Once: m.NoReentry, Fenced: c.fenced(m.Lock.Kind),
		Lease: m.Lease.AsDuration(), MaxHold: m.MaxHold.AsDuration(),
	}
	if pid := requestOwner(m.Owner, sender); pid != nil {
		by.owner = c.owners.of(c, pid)
		ticket.Owner = by.owner.id
		ticket.Once = ticket.Once || c.rt.foreign(pid)
		if sender == nil {
			by.replyTo = pid
		}
	}
	wait := m.Wait.AsDuration()
	ticket.Try = m.Wait != nil && wait == 0
	c.handle(m, func(l *core.Lock, now core.Instant) {
		ticket.Deadline = deadline(now, wait)
		l.Acquire(now, ticket)
	})
}

func (c *cell) release(m *messages.Release, sender *actor.PID) {
	by := &letter{op: OpRelease, lock: m.Lock, replyTo: sender}
	var id uint64
	var owner core.Owner
	if m.HoldId != "" {
		id = parseHoldID(m.HoldId)
	} else {
		owner = c.owners.number(requestOwner(m.Owner, sender))
	}
	if id == 0 && owner == 0 {
		id = math.MaxUint64 // nobody's: the lock says so
	}
	c.handle(m, func(l *core.Lock, now core.Instant) { l.Release(now, id, owner, core.Mode(m.Lock.Mode), by) })
}

// ticked handles the alarm.
func (c *cell) ticked() {
	c.wakeAt = 0
	if now := c.rt.Now(); c.idleSince != 0 && now >= c.idleSince+c.rt.cfg.Idle {
		if c.retire() {
			return
		}
		c.idleSince = now // a request is on its way
	}
	c.handle(tick{}, func(l *core.Lock, now core.Instant) { l.Tick(now) })
}

// stopping handles a stop that the guardian may not have asked for: nobody is to come
// any more, everybody is told, and the lock is released.
func (c *cell) stopping() {
	c.stopAlarm()
	if !c.idle() {
		c.giveUp(core.Closed, "the lock actor was stopped")
		return
	}
	c.rt.table.drop(c)
	c.gate.close()
}
