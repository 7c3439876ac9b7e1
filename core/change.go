package core

import "time"

// nextChange carries out what the holders asked for next; false if there is nothing.
func (l *Lock) nextChange() bool {
	for len(l.changes) > 0 {
		c := l.changes[0]
		if c.ticket != nil && l.prolongs(c.ticket) && l.renewal.inFlight {
			return false
		}
		l.changes = l.changes[1:]
		own := l.holds.byID(c.hold)
		switch {
		case c.ticket != nil:
			if l.reentered(own, c) {
				return true
			}
		case own.in(c.mode) == 0:
			l.answer(c.ref, Answer{Kind: NotFreed, HoldID: own.id, Reason: NotHeld, Detail: "the lock is not held in this mode"})
		case own.total() > 1:
			l.setCounts(own, c, -1)
			return true
		default:
			l.endHold(own, c.ref)
			return true
		}
	}
	if l.lease.counts != l.wanted(&l.holds) {
		// A change that was withdrawn half way, or a share that ended: set it right.
		l.start(op{kind: opCount, counts: l.wanted(&l.holds)})
		return true
	}
	return false
}

// reentered begins a re-entry; false if it is refused, since the hold has changed
// after it was asked for.
func (l *Lock) reentered(own hold, c change) bool {
	if reason, detail := l.unfit(&own, c.ticket); reason != 0 {
		l.refuse(c.ticket.Ref, reason, detail)
		return false
	}
	if l.prolongs(c.ticket) {
		if l.doubtful(c.ticket.Lease) {
			l.refuse(c.ticket.Ref, Unavailable, "the hold cannot be prolonged: a command without a reply may still shorten its lease")
			return false
		}
		l.dropRenewal()
	}
	l.setCounts(own, c, 1)
	return true
}

// wanted is how the lease should be held in Redis. A writer's does not become a reader's
// while a late command might make it a writer's again: that would end it.
func (l *Lock) wanted(h *holds) counts {
	c := h.wanted()
	if c.exclusive == 0 && l.lease.mode == Exclusive && l.straying(Shared) {
		c.exclusive = 1
	}
	return c
}

// setCounts tells Redis how often the lease will be held after a change.
func (l *Lock) setCounts(own hold, c change, by int) {
	next := l.holds
	own.counts = own.plus(c.mode, by)
	next.update(own)
	o := op{kind: opCount, counts: l.wanted(&next), mode: c.mode, hold: c.hold, ticket: c.ticket, ref: c.ref, until: c.until}
	if c.ticket != nil && own.tokens == nil && !l.hasToken(c.ticket) {
		o.reserved = 1 // the hold was taken without a token, and its re-entry asks for one
	}
	l.start(o)
}

// countLease is the TTL to set when the counts change: the watchdog's, or what is
// left of a fixed lease, unless a re-entry asks for more, or somebody joins. It never
// cuts short what is trusted: a lease that was fixed may be longer than the watchdog's.
func (l *Lock) countLease(t *Ticket, joins bool) time.Duration {
	left := max(l.lease.until+Margin(l.lease.length)-l.now, time.Millisecond)
	if !l.lease.fixed || joins {
		return max(left, l.cfg.Lease)
	}
	if t != nil {
		left = max(left, t.Lease)
	}
	return left
}

func (l *Lock) countReplied(o op, r Result) {
	switch r.Outcome {
	case Done:
		l.main = op{}
		l.lease.counts = o.counts
		if o.counts.exclusive == 0 {
			l.lease.mode = Shared // a writer has become a reader
		}
		l.wait.lastErr = ""
		l.drawTokens(o, r)
		if o.joins() {
			l.converted(o)
			return
		}
		if o.ticket != nil || o.ref != nil || !l.lease.fixed { // whoever left prolongs no fixed lease
			l.extend(o)
		}
		l.counted(o)
	case Absent, Refused:
		l.loseByResult(r)
	case Failed:
		l.again(&l.main, r)
		reason, detail := failure(r)
		l.wait.lastErr = detail
		l.withdrawChanges(func(t *Ticket) bool { return t.Try }, func(t *Ticket) { l.refuse(t.Ref, reason, detail) })
		l.refuseTries(reason, detail)
		if o.ticket == nil && o.ref == nil {
			l.main.counts = l.wanted(&l.holds) // nobody wants the change any more
			return
		}
		switch {
		case o.ticket != nil && r.Transient && !o.ticket.Try:
			return
		case o.ref != nil && r.Transient && (l.now < o.until || o.tries == 0):
			return // a reply may have got lost, which took all of the time: one more try says so
		case o.ticket != nil:
			l.refuse(o.ticket.Ref, reason, detail)
		default:
			l.giveBack(o)
			l.answer(o.ref, Answer{Kind: NotFreed, HoldID: o.hold, Reason: reason,
				Detail: "the hold counts as given back, but Redis has not confirmed its new count, which is still being set: " + detail})
		}
		l.dropCount()
	}
}

// counted brings the holds in line with a change that Redis has made.
func (l *Lock) counted(o op) {
	own := l.holds.byID(o.hold)
	switch {
	case o.ticket != nil:
		own.counts = own.plus(o.mode, 1)
		if o.ticket.Lease > 0 {
			own.until = max(own.until, o.sentAt+o.ticket.Lease-Margin(o.ticket.Lease))
		}
		if own.tokens == nil {
			own.tokens = l.nextTokens(o.ticket)
		}
		l.holds.update(own)
		l.answer(o.ticket.Ref, Answer{
			Kind: Granted, HoldID: own.id, Count: own.in(o.mode), Until: l.holdUntil(own), Bound: own.until, Root: own.ref, Tokens: own.tokens,
		})
	case o.ref != nil:
		left := o.counts
		if !own.dead {
			own.counts = own.plus(o.mode, -1)
			l.holds.update(own)
			left = own.counts
		}
		l.answer(o.ref, Answer{Kind: Freed, HoldID: own.id, Count: left.total()})
	}
}

// dropCount gives up a change of the counts whose requester has been answered.
func (l *Lock) dropCount() {
	if l.main.unsure || l.main.inFlight {
		l.lease.counts = unknown // nextChange sets it right
		l.givenUp(&l.main)
	}
	l.main = op{}
}

// dropChanges ends what was asked for a hold that is over: its re-entries wait for
// a hold of their own, its releases have nothing to release.
func (l *Lock) dropChanges(own hold) {
	var stay []change
	for _, c := range l.changes {
		switch {
		case c.hold != own.id:
			stay = append(stay, c)
		case c.ticket != nil && l.closing:
			l.refuse(c.ticket.Ref, Closed, "the system is closing")
		case c.ticket != nil && c.ticket.Try && (l.queue.len() > 0 || l.holds.len() > 0 && !l.mayJoin(c.ticket)):
			l.answer(c.ticket.Ref, Answer{Kind: NotGranted, Reason: Held, TTL: -1, Detail: l.heldBy()})
		case c.ticket != nil:
			l.queue.insert(c.ticket)
			l.repeats = true // its owner may have asked for more than one
		default:
			l.answer(c.ref, Answer{Kind: NotFreed, Reason: NotHeld, Detail: "the hold was released before"})
		}
	}
	l.changes = stay
	l.failEnsures(own.id, NotHeld, "the hold was released")
}

// failEnsures ends what awaits a renewal for that hold, or for all if id is 0.
func (l *Lock) failEnsures(id uint64, reason Reason, detail string) {
	var stay []ensure
	for _, e := range l.ensures {
		if id == 0 || e.hold == id {
			l.answer(e.ref, Answer{Kind: NotDone, Reason: reason, Detail: detail})
		} else {
			stay = append(stay, e)
		}
	}
	l.ensures = stay
}

func (l *Lock) refuseCount(reason Reason, detail string) {
	if o := l.main; o.ticket != nil {
		l.refuse(o.ticket.Ref, reason, detail)
	} else {
		l.answer(o.ref, Answer{Kind: NotFreed, HoldID: o.hold, Reason: Lost, Detail: detail})
	}
}
