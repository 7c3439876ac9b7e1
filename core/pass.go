package core

import "fmt"

// endHold ends a hold; ref is answered when that is true. After the last of them the
// lease passes to the next local waiter, or goes back to Redis.
func (l *Lock) endHold(own hold, ref any) {
	l.over(own)
	if l.holds.len() == 0 {
		l.dropMain()
	}
	l.dropChanges(own)
	l.dropExpired()
	switch {
	case l.holds.len() > 0:
		l.answer(ref, Answer{Kind: Freed, HandedOn: true}) // others share the lease
	case l.closing || l.queue.len() == 0 || l.doubtful(l.cfg.Lease) || l.straying(l.lease.mode):
		l.release(ref)
	case l.kind.Queued:
		l.prepareGrant(ref)
	case l.now >= l.lease.tenureEnd || l.lease.closed:
		l.yield(ref)
	case l.canHandOn(l.queue.head()):
		l.answer(ref, Answer{Kind: Freed, HandedOn: true})
		l.grant(l.queue.pop(), true)
	default:
		l.prepareGrant(ref)
	}
}

// dropMain gives up what was under way for holds that are over: a change of the counts,
// or the question who waits.
func (l *Lock) dropMain() {
	o := l.main
	if o.kind == opCount && (o.unsure || o.inFlight) {
		l.lease.counts = unknown
		l.givenUp(&l.main)
	}
	l.main = op{}
	switch {
	case !o.joins():
	case l.closing:
		l.refuse(o.ticket.Ref, Closed, "the system is closing")
	default:
		l.queue.insert(o.ticket) // it has had no share yet
	}
}

// over ends a hold.
func (l *Lock) over(own hold) {
	l.effects = append(l.effects, Effect{Kind: Over, Ref: own.ref})
	l.holds.remove(own.id)
}

// endHoldBy takes the lock from a holder, who is told, and passes it on.
func (l *Lock) endHoldBy(own hold, reason Reason, detail string) {
	l.lost.add(own.id, reason)
	l.tellLost(own, reason, detail)
	if l.main.kind == opCount && l.main.hold == own.id {
		l.refuseCount(reason, detail)
		l.dropCount()
	}
	var stay []change
	for _, c := range l.changes {
		if c.ticket == nil && c.hold == own.id {
			l.answer(c.ref, Answer{Kind: NotFreed, Reason: Lost, Detail: detail})
		} else {
			stay = append(stay, c)
		}
	}
	l.changes = stay
	l.endHold(own, nil)
}

// canHandOn reports whether the lease can pass to a local waiter as it is.
func (l *Lock) canHandOn(t *Ticket) bool {
	return t.Lease == 0 && !l.lease.fixed && l.lease.counts == once(t.Mode) && !l.kind.Queued && l.hasToken(t) &&
		l.lease.until-l.now > l.cfg.Lease/3
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
	if l.doubtful(l.cfg.Lease) { // the renewal may arrive behind the yield, and cut its lease short
		l.release(ref)
		return
	}
	l.start(op{kind: opYield, mode: l.lease.mode, counts: once(l.lease.mode), lease: l.cfg.Lease, ref: ref})
}

// prepareGrant sets counts and lease in Redis to what the next waiter needs. Where
// the queue is in Redis, it is who says which waiter that is.
func (l *Lock) prepareGrant(ref any) {
	t := l.queue.head()
	l.dropRenewal()
	o := op{kind: opGrant, mode: t.Mode, counts: once(t.Mode), lease: l.cfg.Lease, ticket: t, ref: ref}
	if t.Lease > 0 {
		o.lease, o.fixed = t.Lease, true
	}
	if l.doubtful(o.lease) || l.straying(t.Mode) {
		l.release(ref)
		return
	}
	l.start(o)
}

func (l *Lock) grantReplied(o op, r Result) {
	switch r.Outcome {
	case Done:
		l.main = op{}
		if !l.kind.Queued {
			l.answer(o.ref, Answer{Kind: Freed, HandedOn: true})
			l.leased(o, r)
			return
		}
		l.answerPassed(o, r)
		l.lease = lease{term: r.OwnTerm}
		l.leased(l.called(o, r), r)
	case Refused, Absent:
		l.main = op{}
		switch {
		case l.kind.Queued:
			l.answerPassed(o, r)
		case r.Outcome == Refused && l.lease.mode == Shared && o.mode == Exclusive:
			l.answer(o.ref, Answer{Kind: Freed}) // other readers are in: ours have left
		default:
			l.answerRelease(o)
		}
		if l.kind.Parts {
			l.cleanUp(o.term)
		}
		l.lease = lease{}
		l.contend()
		l.wait.again = o.stale
		l.refusedBy(r)
		if l.kind.Shares && o.mode == Exclusive {
			l.wait.nextAt = l.now // to announce the writer under its own term
		}
	case Failed:
		// The term may or may not be good for another lease: give it up.
		l.main.ticket = nil
		l.main.kind, l.main.counts = opRelease, counts{}
		l.again(&l.main, r)
		l.phase = releasing
	}
}

// leased hands a lease that o has just taken or set to the waiter it was meant for,
// or to whoever is next by now.
func (l *Lock) leased(o op, r Result) {
	l.lease.counts, l.lease.mode = once(o.mode), o.mode
	l.lease.closed, l.lease.looks = false, 0
	l.lease.fixed = o.fixed
	l.lease.length = o.lease
	l.lease.until = 0
	l.drawTokens(o, r)
	l.extend(o)
	l.dropExpired()
	if l.closing || o.ticket == nil || l.queue.len() == 0 || !l.kind.Queued && l.queue.head() != o.ticket {
		return
	}
	t := l.queue.take(o.ticket.ID)
	switch {
	case t == nil:
	case l.lease.until <= l.now:
		l.refuse(t.Ref, Unavailable, fmt.Sprintf("Redis took %v to answer, too long for a lease of %v", l.now-o.sentAt, o.lease))
	default:
		l.grant(t, false)
		if l.kind.Queued {
			l.refuseTries(Held, l.heldBy()) // Redis prefers those who wait in the queue
		}
	}
}

// grant makes a waiter the holder, or one of those who share the lease.
func (l *Lock) grant(t *Ticket, handedOn bool) {
	own := hold{id: t.ID, owner: t.Owner, ref: t.Ref, counts: once(t.Mode), tokens: l.nextTokens(t)}
	switch {
	case t.Lease > 0 && l.lease.fixed:
		own.until, own.ends = l.lease.until, Expired
	case t.Lease > 0:
		own.until, own.ends = l.now+t.Lease-Margin(t.Lease), Expired
	case t.MaxHold > 0:
		own.until, own.ends = l.now+t.MaxHold, MaxHold
	}
	if l.holds.len() == 0 {
		l.lease.atRisk = false // this holder has not been warned
	}
	l.holds.add(own)
	l.answer(t.Ref, Answer{
		Kind: Granted, HoldID: t.ID, Count: 1, Until: l.holdUntil(own), Bound: own.until, Root: own.ref, Tokens: own.tokens, HandedOn: handedOn,
	})
	if l.repeats && t.Owner != 0 {
		// Its owner's other requests would wait for itself: they are re-entries now.
		for _, again := range l.queue.remove(func(w *Ticket) bool { return w.Owner == t.Owner }) {
			l.reenter(own, again)
		}
		l.repeats = l.queue.len() > 0
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
		l.leaveBehind(l.longestTTL())
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
	l.main, l.lease, l.phase, l.suspected = op{}, lease{}, free, false
}

// yieldReplied ends a tenure: others get the lock, or a new tenure begins.
func (l *Lock) yieldReplied(o op, r Result) {
	switch r.Outcome {
	case Kept:
		l.main = op{}
		l.answer(o.ref, Answer{Kind: Freed, HandedOn: true})
		l.lease.tenureEnd = l.now + l.cfg.Tenure
		l.leased(o, r)
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
		l.main.kind, l.main.counts = opRelease, counts{}
		l.again(&l.main, r)
		l.phase = releasing
	}
}
