package actors

import (
	"math/rand/v2"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// child is what any actor has that the guardian spawns for a key: what outlives its instance,
// whatever it decides about. After a crash the supervisor makes a new instance around the same
// state, of which this is a part.
//
// The actor alone touches it, while it handles a message or after that has crashed. What is shared
// with others is marked; what never changes may be read by all.
type keyActor struct {
	rt  *Runtime
	key lockKey
	// label names the lock to people.
	label string
	pid   *actor.PID
	// process is what runs behind the PID; goroutines send to it without looking it up.
	process actor.Process
	// state is the whole of which this is a part.
	state childState

	// gate is shared with whoever sends to the actor; seen is the actor's side of it.
	gate gate
	seen uint64

	clock *clock
	alarm alarm // is the clock's
	// wakeAt is when the alarm will go off, 0 when it is not set.
	wakeAt lock.Instant
	// idleSince is when the actor became idle, 0 while it is not.
	idleSince lock.Instant
	owners    owners

	// ctx is the context of the message being handled, nil between messages.
	ctx actor.Context
	// counted is the message being handled, once it is counted as seen; accepted is the same one, once it
	// is taken over. A crash must not count it again, or refuse it.
	counted, accepted any
	crashes           []lock.Instant
	// measured are the measurements of a step, for the metrics at its end.
	measured []measurement
	// closing: the actor is to leave as soon as it has given everything back.
	closing bool
}

// childState is the state of an actor for a key.
type childState interface {
	// actor makes an instance around the state.
	actor() actor.Actor
	// refuse answers a request that is not carried out, whatever it was.
	refuse(m any, sender *actor.PID, reason lock.Reason, detail string)
	// giveUp tells everybody that the actor has failed them, has everything given back, and lets the
	// actor leave.
	giveUp(reason lock.Reason, detail string)
	// isLeaving reports whether it was given up; receiveLast handles a message then, which needs no
	// instance, and checkLeft leaves if nothing is left to do.
	isLeaving() bool
	receiveLast(m any, sender *actor.PID)
	checkLeft()
	// ownerGone says that an owner has died.
	ownerGone(owner lock.Owner)
	// spawned says that there is an actor now, and gone that it has stopped.
	spawned()
	gone()
}

func (r *Runtime) newChild(key lockKey, state childState) keyActor {
	return keyActor{rt: r, key: key, label: key.name, state: state, clock: &r.clocks[r.spawned.Add(1)%clocks]}
}

// begins implements settler. What was noted of the last message must not be taken for the next one's,
// which may have the same memory; see permitCalls.
func (c *keyActor) begins() { c.counted, c.accepted = nil, nil }

// began notes the message that is being handled, with its context.
func (c *keyActor) began(ctx actor.Context) (m any) {
	c.ctx = ctx
	m = unrepeated(ctx.Message())
	if isRequest(m) {
		c.counted = ctx.Message()
		c.seen++
	}
	return m
}

// started notes who the actor is; a restart changes nothing about that.
func (c *keyActor) started(pid *actor.PID) {
	if c.pid == nil {
		c.process, _ = c.rt.actor.ProcessRegistry.GetLocal(pid.Id)
		c.pid = pid
	}
}

// post sends the actor a tick or a reply of Redis. It does not look the actor up: with many leases to
// renew, that was a fifth of the work. If the actor has stopped, its mailbox settles the reply (see
// answering).
func (c *keyActor) post(m any) {
	defer c.rt.host.Recover("a recipient panicked")
	c.process.SendUserMessage(c.pid, m)
}

// survive, deferred, ends a panic, and has it logged.
func (c *keyActor) survive() {
	if panicked := recover(); panicked != nil {
		c.rt.host.Error("panic while a lock's decision was carried out", "lock", c.label, "panic", panicked)
	}
}

// retire asks the guardian to stop the actor, unless requests are on their way to it.
func (c *keyActor) retire() bool {
	if !c.gate.closeIf(c.seen) {
		return false
	}
	c.owners.forget(c, len(c.owners.resting))
	c.stopAlarm()
	c.rt.deliver(c.rt.guardian, &retired{state: c})
	return true
}

// retireIfIdle retires an actor that has been idle for long enough.
func (c *keyActor) retireIfIdle() bool {
	c.wakeAt = 0
	if now := c.rt.Now(); c.idleSince != 0 && now >= c.idleSince+c.rt.cfg.Idle {
		if c.retire() {
			return true
		}
		c.idleSince = now // a request is on its way
	}
	return false
}

// setAlarm sees to it that a tick comes at that time if one is wanted, or when the actor has been
// idle for long enough. An alarm that goes off too early costs one tick; so it is only ever moved
// forward, which spares most steps from touching it.
func (c *keyActor) setAlarm(at lock.Instant, wanted, idle bool) {
	if idle && !c.owners.inUse() {
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

func (c *keyActor) stopAlarm() {
	c.clock.cancel(c)
	c.wakeAt = 0
}

// newID numbers a request. Numbers grow over the whole system, and their lower half is
// random: an id from an actor's earlier life fits nothing in a later one.
func (c *keyActor) newID() uint64 { return c.rt.requests.Add(1)<<20 | rand.Uint64N(1<<20) }
