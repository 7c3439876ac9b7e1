package core

// mayJoin reports whether a ticket may share the lease as it is held now.
func (l *Lock) mayJoin(t *Ticket) bool { return l.shares(t) && !l.lease.closed }

// shares reports whether a ticket could share the lease if nobody else waited for it.
func (l *Lock) shares(t *Ticket) bool {
	return l.phase == owned && t.Mode == Shared && l.lease.counts.exclusive == 0 && l.lease.mode == Shared && !l.closing &&
		l.holds.first.exclusive == 0 // a writer that died while it became a reader is still to go
}

// join lets the waiter at the head of the queue share the lease; false if that must
// wait. Behind a writer nobody joins, and when the tenure is over Redis is asked
// whether others wait, so that readers cannot keep writers out for ever.
func (l *Lock) join() bool {
	if l.queue.len() == 0 || !l.shares(l.queue.head()) || l.lease.closed && l.now < l.lease.lookAt {
		return false
	}
	switch t := l.queue.head(); {
	case l.lease.closed:
		l.start(op{kind: opLook, lease: l.cfg.Lease}) // they may have gone
	case l.now >= l.lease.openAt:
		l.closeToReaders() // somebody may wait without being seen
	case l.now >= l.lease.tenureEnd:
		l.start(op{kind: opLook, lease: l.cfg.Lease})
	case l.lease.fixed && l.renewal.kind != opNone:
		return false // it must not arrive after a command that sets a longer TTL
	case l.lease.fixed && l.doubtful(l.cfg.Lease):
		l.closeToReaders() // one that was given up still may
	case l.lease.fixed:
		// From now on it is renewed, for the new reader's sake.
		l.start(op{kind: opCount, counts: l.lease.counts, mode: Shared, ticket: l.queue.take(t.ID)})
	case l.lease.until-l.now <= l.cfg.Lease/3:
		if l.renewal.kind == opNone {
			l.startRenewal(true)
		}
		return false
	default:
		l.grant(l.queue.pop(), true)
	}
	return true
}

// converted makes a reader join that could not before, since the lease was fixed.
func (l *Lock) converted(o op) {
	if l.lease.fixed {
		l.lease.fixed, l.lease.until = false, 0
	}
	l.extend(o)
	l.grant(o.ticket, false)
}

// lookReplied begins another tenure of the readers if nobody else waits.
func (l *Lock) lookReplied(r Result) {
	l.main = op{}
	switch {
	case r.Outcome == Failed:
		reason, detail := failure(r)
		l.wait.lastErr = detail
		l.lease.tenureEnd = l.now + l.backoff(0, l.cfg.Lease) // look again
		l.lease.lookAt = l.lease.tenureEnd
		l.refuseTries(reason, detail)
	case r.Others > 0:
		l.closeToReaders()
	default:
		if l.lease.closed {
			l.lease.closed, l.lease.looks = false, 0
			l.lease.openAt = l.now + l.cfg.Opening
		}
		l.lease.tenureEnd = l.now + l.cfg.Tenure
	}
}

// closeToReaders lets nobody join until nobody else is seen to wait any more: the term
// ends if its readers leave before. The others may be readers, who come in and wait no
// more, and readers here may stay for long.
func (l *Lock) closeToReaders() {
	l.lease.closed = true
	l.lease.lookAt = l.now + l.backoff(l.lease.looks, l.cfg.Lease)
	l.lease.looks++
	l.refuseTries(Held, "others wait for the lock already")
}

func (l *Lock) refuseTries(reason Reason, detail string) {
	for _, t := range l.queue.remove(func(t *Ticket) bool { return t.Try }) {
		l.refuse(t.Ref, reason, detail)
	}
}
