package core

import (
	"fmt"
	"time"
)

// nextChange carries out what the holder asked for next; false if there is nothing.
func (l *Lock) nextChange() bool {
	if len(l.changes) == 0 {
		if l.lease.count != l.hold.count {
			// A change that was withdrawn half way: set the count right again.
			l.start(op{kind: opCount, count: l.hold.count})
		}
		return false
	}
	c := l.changes[0]
	l.changes = l.changes[1:]
	switch {
	case c.ticket != nil:
		l.start(op{kind: opCount, count: l.hold.count + 1, ticket: c.ticket})
	case l.hold.count > 1:
		l.start(op{kind: opCount, count: l.hold.count - 1, ref: c.ref})
	default:
		l.endHold(c.ref)
	}
	return true
}

// countLease is the TTL to set when the hold count changes: the watchdog's, or what
// is left of a fixed lease, unless a re-entry asks for more.
func (l *Lock) countLease(t *Ticket) time.Duration {
	if !l.lease.fixed {
		return l.cfg.Lease
	}
	left := max(l.lease.until+Margin(l.lease.length)-l.now, time.Millisecond)
	if t != nil && !l.doubtful(t.Lease) {
		left = max(left, t.Lease)
	}
	return left
}

func (l *Lock) countReplied(o op, r Result) {
	switch r.Outcome {
	case Done:
		l.main = op{}
		l.lease.count = o.count
		l.wait.lastErr = ""
		l.extend(o)
		switch {
		case o.ticket != nil:
			l.hold.count = o.count
			l.answer(o.ticket.Ref, Answer{Kind: Granted, HoldID: l.hold.id, Count: o.count, Until: l.holdUntil()})
		case o.ref != nil:
			l.hold.count = min(o.count, l.hold.count) // its owner may have died meanwhile
			l.answer(o.ref, Answer{Kind: Freed, HoldID: l.hold.id, Count: o.count})
		}
	case Absent, Refused:
		l.loseByResult(r)
	case Failed:
		l.again(&l.main, r)
		reason, detail := failure(r)
		l.wait.lastErr = detail
		l.withdrawChanges(func(t *Ticket) bool { return t.Try }, func(t *Ticket) { l.refuse(t.Ref, reason, detail) })
		if o.ticket == nil && o.ref == nil {
			l.main.count = l.hold.count // nobody wants the change any more
			return
		}
		if r.Transient && (o.ticket == nil || !o.ticket.Try) {
			return
		}
		if o.ticket != nil {
			l.refuse(o.ticket.Ref, reason, detail)
		} else {
			l.answer(o.ref, Answer{Kind: NotFreed, HoldID: l.hold.id, Reason: reason, Detail: detail})
		}
		l.dropCount()
	}
}

// dropCount gives up a change of the count whose requester has been answered.
func (l *Lock) dropCount() {
	if l.main.unsure || l.main.inFlight {
		l.lease.count = -1 // not known; nextChange sets it right
		l.givenUp(&l.main)
	}
	l.main = op{}
}

// endHold ends the present hold; ref is answered when that is true. The lease
// passes to the next local waiter, or goes back to Redis.
func (l *Lock) endHold(ref any) {
	l.over()
	l.dropChanges()
	l.dropExpired()
	switch {
	case l.closing || l.queue.len() == 0 || l.doubtful(l.cfg.Lease):
		l.release(ref)
	case l.now >= l.lease.tenureEnd:
		l.yield(ref)
	case l.canHandOn(l.queue.head()):
		l.answer(ref, Answer{Kind: Freed, HandedOn: true})
		l.grant(l.queue.pop(), true)
	default:
		l.prepareGrant(ref)
	}
}

// over ends the present hold.
func (l *Lock) over() {
	l.effects = append(l.effects, Effect{Kind: Over, Ref: l.hold.ref})
	l.hold = hold{}
}

// canHandOn tells whether the lease can pass to a local waiter as it is.
func (l *Lock) canHandOn(t *Ticket) bool {
	return t.Lease == 0 && !l.lease.fixed && l.lease.count == 1 && l.lease.until-l.now > l.cfg.Lease/3
}

// dropChanges ends what was asked for a hold that is over: its re-entries wait for
// a hold of their own, its releases have nothing to release.
func (l *Lock) dropChanges() {
	for _, c := range l.changes {
		switch {
		case c.ticket != nil && l.closing:
			l.refuse(c.ticket.Ref, Closed, "the system is closing")
		case c.ticket != nil && c.ticket.Try && l.queue.len() > 0:
			l.answer(c.ticket.Ref, Answer{Kind: NotGranted, Reason: Held, TTL: -1, Detail: l.heldBy()})
		case c.ticket != nil:
			l.queue.insert(c.ticket)
		default:
			l.answer(c.ref, Answer{Kind: NotFreed, Reason: NotHeld, Detail: "the hold was released before"})
		}
	}
	l.changes = nil
	l.failEnsures(NotHeld, "the hold was released")
}

func (l *Lock) failEnsures(reason Reason, detail string) {
	for _, e := range l.ensures {
		l.answer(e.ref, Answer{Kind: NotDone, Reason: reason, Detail: detail})
	}
	l.ensures = nil
}

// grantNext gives the lease, which has no holder, to the next waiter or back.
func (l *Lock) grantNext() {
	l.dropExpired()
	switch {
	case l.closing || l.queue.len() == 0:
		l.release(nil)
	case l.canHandOn(l.queue.head()):
		l.grant(l.queue.pop(), false)
	default:
		l.prepareGrant(nil)
	}
}

// yield asks Redis whether others wait, now that a tenure is over.
func (l *Lock) yield(ref any) {
	l.dropRenewal()
	l.start(op{kind: opYield, lease: l.cfg.Lease, ref: ref})
}

// prepareGrant sets count and lease in Redis to what the next waiter needs.
func (l *Lock) prepareGrant(ref any) {
	t := l.queue.head()
	l.dropRenewal()
	o := op{kind: opGrant, count: 1, lease: l.cfg.Lease, ticket: t, ref: ref}
	if t.Lease > 0 {
		o.lease, o.fixed = t.Lease, true
	}
	if l.doubtful(o.lease) {
		l.release(ref)
		return
	}
	l.start(o)
}

func (l *Lock) grantReplied(o op, r Result) {
	switch r.Outcome {
	case Done:
		l.main = op{}
		l.answer(o.ref, Answer{Kind: Freed, HandedOn: true})
		l.leased(o)
	case Refused, Absent:
		l.main = op{}
		l.answerRelease(o)
		l.lease = lease{}
		l.contend()
		l.refusedBy(r)
	case Failed:
		// The term may or may not be good for another lease: give it up.
		l.main.ticket = nil
		l.main.kind, l.main.count = opRelease, 0
		l.again(&l.main, r)
		l.phase = releasing
	}
}

// leased hands a lease that o has just taken or set to the waiter it was meant for,
// or to whoever is next by now.
func (l *Lock) leased(o op) {
	l.lease.count = 1
	l.lease.fixed = o.fixed
	l.lease.length = o.lease
	l.lease.until = 0
	l.extend(o)
	l.dropExpired()
	if l.closing || l.queue.len() == 0 || l.queue.head() != o.ticket {
		return
	}
	t := l.queue.pop()
	if l.lease.until <= l.now {
		l.refuse(t.Ref, Unavailable, fmt.Sprintf("Redis took %v to answer, too long for a lease of %v", l.now-o.sentAt, o.lease))
		return
	}
	l.grant(t, false)
}

// grant makes a waiter the holder.
func (l *Lock) grant(t *Ticket, handedOn bool) {
	l.hold = hold{id: t.ID, owner: t.Owner, ref: t.Ref, count: 1}
	l.lease.atRisk = false // this holder has not been warned
	if t.MaxHold > 0 && t.Lease == 0 {
		l.hold.until = l.now + t.MaxHold
	}
	l.answer(t.Ref, Answer{Kind: Granted, HoldID: t.ID, Count: 1, Until: l.holdUntil(), HandedOn: handedOn})
	if l.repeats && t.Owner != 0 {
		// Its owner's other requests would wait for itself: they are re-entries now.
		for _, again := range l.queue.remove(func(w *Ticket) bool { return w.Owner == t.Owner }) {
			l.changes = append(l.changes, change{ticket: again})
		}
		l.repeats = l.queue.len() > 0
	}
}

// endHoldBy takes the lock from its holder, who is told, and passes it on.
func (l *Lock) endHoldBy(reason Reason, detail string) {
	l.tellLost(reason, detail)
	if l.main.kind == opCount {
		l.refuseCount(reason, detail)
		l.dropCount()
	}
	var stay []change
	for _, c := range l.changes {
		if c.ticket == nil {
			l.answer(c.ref, Answer{Kind: NotFreed, Reason: Lost, Detail: detail})
		} else {
			stay = append(stay, c)
		}
	}
	l.changes = stay
	l.endHold(nil)
}

func (l *Lock) refuseCount(reason Reason, detail string) {
	if o := l.main; o.ticket != nil {
		l.refuse(o.ticket.Ref, reason, detail)
	} else {
		l.answer(o.ref, Answer{Kind: NotFreed, HoldID: l.hold.id, Reason: Lost, Detail: detail})
	}
}

// release gives the lease back to Redis.
func (l *Lock) release(ref any) {
	l.phase = releasing
	l.renewal = op{}
	l.start(op{kind: opRelease, lease: l.cfg.Lease, ref: ref})
}

func (l *Lock) releaseReplied(o op, r Result) {
	switch {
	case r.Outcome == Failed && r.Transient:
		l.again(&l.main, r)
		for _, t := range l.queue.remove(func(t *Ticket) bool { return t.Try }) {
			l.refuse(t.Ref, Unavailable, r.Err.Error())
		}
		return
	case r.Outcome == Failed:
		reason, detail := failure(r)
		l.answer(o.ref, Answer{Kind: NotFreed, Reason: reason, Detail: detail})
	case r.Outcome == Absent:
		l.answerRelease(o)
	default:
		l.answer(o.ref, Answer{Kind: Freed})
	}
	l.afterRelease()
}

// answerRelease answers a release after which the lock turned out not to be ours: it
// was lost before, unless an earlier try has released it.
func (l *Lock) answerRelease(o op) {
	if o.unsure {
		l.answer(o.ref, Answer{Kind: Freed})
		return
	}
	l.answer(o.ref, Answer{Kind: NotFreed, Reason: Lost, Detail: "the lock was lost before its release: its key was gone or somebody else's"})
}

// afterRelease leaves a term that is over.
func (l *Lock) afterRelease() {
	l.main, l.lease, l.phase = op{}, lease{}, free
}

// yieldReplied ends a tenure: others get the lock, or a new tenure begins.
func (l *Lock) yieldReplied(o op, r Result) {
	switch r.Outcome {
	case Kept:
		l.main = op{}
		l.answer(o.ref, Answer{Kind: Freed, HandedOn: true})
		l.lease.tenureEnd = l.now + l.cfg.Tenure
		l.leased(o)
	case Done:
		l.answer(o.ref, Answer{Kind: Freed})
		l.afterRelease()
		l.contend()
		l.deferTo(r.Others)
	case Absent:
		l.answerRelease(o)
		l.afterRelease()
	case Failed:
		// It may have been released: make that certain.
		l.main.kind, l.main.count = opRelease, 0
		l.again(&l.main, r)
		l.phase = releasing
	}
}
