package actors

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// cell is everything about a lock actor that outlives its instance: after a crash
// the supervisor makes a new instance around the same cell.
//
// It is touched under mu: by the actor while it handles a message, and by the
// guardian when the actor crashes. What is shared with others is marked.
type cell struct {
	mu  sync.Mutex
	rt  *Runtime
	key lockKey
	// format is how the lock is written in Redis. Requests for another format of the
	// same key are refused while this one is in use.
	format messages.Kind
	// label names the lock to people.
	label string
	pid   *actor.PID
	// kind is what the lock decides by. What it is in Redis is one lock there, or else
	// a target.
	kind   core.Kind
	wire   *wire.Lock
	target target
	// members are the locks that it is made of; none if it is one lock on one key.
	members []Member
	// busy are the channels that matter while the target is held by others; heard are
	// those that are subscribed.
	busy  []ear
	heard []ear
	// told are other channels of the target's, of which something was heard since its
	// last try was sent: a refusal because of them may be stale.
	told []ear

	// gate is shared with whoever sends to the actor; seen is the actor's side of it.
	gate gate
	seen uint64
	// until is shared with the holder: how long the hold is good for. A Hold may be kept for
	// longer than its lock actor lives, so it is no part of the cell.
	until *atomic.Int64

	// lock is replaced by every event.
	lock   *core.Lock
	owners owners
	// inspections are the requesters who await Redis's word on the lock.
	inspections map[requester]struct{}

	clock *clock
	alarm alarm // is the clock's
	// wakeAt is when the alarm will go off, 0 when it is not set.
	wakeAt core.Instant
	// idleSince is when the lock became idle, 0 while it is not.
	idleSince core.Instant

	// ctx is the context of the message being handled, nil between messages.
	ctx actor.Context
	// lender is the Call being handled, if its goroutine may be used for one command.
	lender *Call
	// counted and accepted are the last message that was counted as seen, and the
	// last that the lock has taken over: what a crash must not do again, or undo.
	counted, accepted any
	crashes           []core.Instant
	// closing: the actor is to leave as soon as its lock is released.
	closing bool
	// leaving is set once the lock is given up.
	leaving *leaving
}

func newCell(rt *Runtime, key lockKey, kind messages.Kind, members *Members) *cell {
	c := &cell{
		rt: rt, key: key, format: formatOf(kind), label: key.name,
		until: new(atomic.Int64), clock: &rt.clocks[rt.cells.Add(1)%clocks],
	}
	switch key.made {
	case ofMembers:
		c.label, c.members = members.String(), members.sorted
		c.target = members.target(rt.stranger())
		c.kind = core.Kind{Parts: true, Tokens: members.fenced}
	case ofServers:
		c.target = rt.quorum(key.name, rt.stranger())
		for _, each := range *rt.red.Load() {
			c.members = append(c.members, Member{Runtime: each, Name: key.name})
		}
		c.kind = core.Kind{Parts: true}
	default:
		c.wire = wire.New(wire.Kind(c.format), rt.cfg.KeyPrefix+key.name, &rt.wire)
		c.kind = kinds[c.format]
	}
	c.renew()
	return c
}

// renew gives the cell a lock that nobody wants yet.
func (c *cell) renew() {
	l := core.New(&c.rt.cfg.Config, &c.kind)
	c.lock = &l
}

// stranger is for a lock actor whose keys are other lock actors' too: with a client id of
// its own none of them takes its terms for forgotten ones of theirs, and releases them.
func (r *Runtime) stranger() *wire.Options {
	options := r.wire
	options.Client = uuid.NewString()
	return &options
}

// kinds is how the formats of a lock on one key differ in what they decide by.
var kinds = map[messages.Kind]core.Kind{
	messages.Kind_KIND_REENTRANT:  {Tokens: 1},
	messages.Kind_KIND_FAIR:       {Queued: true},
	messages.Kind_KIND_READ_WRITE: {Shares: true},
}

// step applies an event to a copy of the lock and, if that went well, replaces the
// lock by it. A panic on the way leaves the lock as it was.
func (c *cell) step(event func(l *core.Lock, now core.Instant)) {
	next := c.rt.locks.Get().(*core.Lock)
	*next = *c.lock
	next.Lend(c.rt.rooms.Get().(*room)[:0])
	if !next.SpareTerm() {
		next.Refill(c.rt.terms.Add(1))
	}
	event(next, c.rt.Now())
	before := c.lock
	c.lock = next
	c.rt.locks.Put(before)
}

// room is for the effects that most events have. A lock needs it for a moment only.
type room [4]core.Effect

// handle applies an event and carries out what follows from it. source is the
// message that the event came from.
func (c *cell) handle(source any, event func(l *core.Lock, now core.Instant)) {
	c.step(event)
	c.accepted = source
	c.carryOut()
	c.lender = nil
}

// giveBack releases a hold whose grant reached nobody. It is for the event that granted it.
func (c *cell) giveBack(id uint64, mode messages.Mode) {
	c.lender = nil // whose request was another
	c.step(func(l *core.Lock, now core.Instant) { l.Release(now, id, 0, core.Mode(mode), &letter{op: OpRelease}) })
	c.until.Store(int64(c.lock.LeaseUntil()))
}

// carryOut does what the lock wants done, also what a crash has left undone.
func (c *cell) carryOut() {
	c.until.Store(int64(c.lock.LeaseUntil())) // before a holder hears of its hold
	for {
		e, more := c.lock.Effects()
		if !more {
			break
		}
		c.perform(&e)
	}
	if effects := c.lock.Reclaim(); effects != nil {
		c.rt.rooms.Put((*room)(effects[:len(room{})]))
	}
	if c.closing && c.idle() {
		c.retire()
		return
	}
	c.setAlarm()
}

// perform does one thing that the lock wants done. A panic on the way, as in a process of
// the host's that is sent an answer, must not keep the others from being done. Who must be
// told is told before anything is counted or logged.
func (c *cell) perform(e *core.Effect) {
	defer c.survive()
	switch e.Kind {
	case core.Send:
		c.send(e.Command)
	case core.Reply:
		e.Ref.(requester).answered(c, e.Answer)
		c.rt.metrics.answered(e.Answer)
		if e.Answer.Kind == core.Forced && e.Answer.Count > 0 {
			c.warnNeighbours()
		}
	case core.TellLost:
		e.Ref.(requester).lost(c, e.Answer)
		c.rt.metrics.lost(e.Answer.Reason)
		c.rt.host.warn("lease lost", "lock", c.label, "reason", e.Answer.Reason.String(), "detail", e.Answer.Detail)
	case core.TellAtRisk:
		e.Ref.(requester).atRisk(c, e.Answer)
		c.rt.metrics.atRisk()
		c.rt.host.warn("lease at risk", "lock", c.label, "detail", e.Answer.Detail)
	case core.Over:
		e.Ref.(requester).over(c)
	case core.Subscribe:
		c.listen(e.Term)
	case core.Unsubscribe:
		c.stopListening()
	case core.LeaveBehind:
		c.rt.leaveBehind(e.Answer.Until)
	}
}

// survive, deferred, ends a panic, and has it logged.
func (c *cell) survive() {
	if panicked := recover(); panicked != nil {
		c.rt.host.error("panic while a lock's decision was carried out", "lock", c.label, "panic", panicked)
	}
}

// idle reports whether nothing is owed to anybody.
func (c *cell) idle() bool { return c.lock.Idle() && len(c.inspections) == 0 }

// retire asks the guardian to stop the actor, unless requests are on their way to it.
func (c *cell) retire() bool {
	if !c.gate.closeIf(c.seen) {
		return false
	}
	c.owners.forget(c, len(c.owners.resting))
	c.stopAlarm()
	c.rt.deliver(c.rt.guardian, &retired{cell: c})
	return true
}

// setAlarm sees to it that a tick comes when the lock wants one, or when it has
// been idle for long enough. An alarm that goes off too early costs one tick; so it
// is only ever moved forward, which spares most steps from touching it.
func (c *cell) setAlarm() {
	at, wanted := c.lock.NextWake()
	if c.idle() && !c.owners.inUse() {
		if c.idleSince == 0 {
			c.idleSince = c.rt.Now()
		}
		at, wanted = c.idleSince+c.rt.cfg.Idle, true
	} else {
		c.idleSince = 0
	}
	if !wanted || c.wakeAt != 0 && c.wakeAt <= at {
		return
	}
	c.wakeAt = at
	c.clock.set(c, at)
}

func (c *cell) stopAlarm() {
	c.clock.cancel(c)
	c.wakeAt = 0
}

// newID numbers a request. Numbers grow over the whole system, and their lower half is
// random: an id from a lock actor's earlier life fits nothing in a later one.
func (c *cell) newID() uint64 { return c.rt.tickets.Add(1)<<20 | rand.Uint64N(1<<20) }
