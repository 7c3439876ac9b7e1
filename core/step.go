package core

// begin opens an event: time may have ended something before it.
func (l *Lock) begin(now Instant) {
	if l.kind.Queued {
		e := *l.enrolment
		l.enrolment = &e
	}
	l.now = max(l.now, now)
	l.lapse()
	l.dropExpired()
	l.overdue()
}

// settle closes an event: whatever can be done next is begun.
func (l *Lock) settle() {
	l.lapse() // a release that has just failed may have had its last try
	for l.advance() {
	}
	l.enrol()
	l.listen()
}

// advance makes one move; false if there is none to make.
func (l *Lock) advance() bool {
	switch l.phase {
	case free:
		if l.queue.len() == 0 {
			return false
		}
		l.contend()
		return true
	case contending:
		switch {
		case l.main.kind != opNone:
			return false
		case l.queue.len() == 0:
			l.stopContending()
			return true
		case l.now < l.wait.nextAt && !l.enrolment.stale(l) || l.cleaning():
			return false
		}
		l.attempt()
		return true
	case owned:
		l.findOut()
		if l.holds.len() > 0 && l.renewed() && l.renewal.kind == opNone && l.now >= l.lease.renewAt {
			l.startRenewal(false)
		}
		switch {
		case l.main.kind != opNone:
			return l.overtake()
		case l.holds.len() == 0:
			l.grantNext()
			return true
		}
		return l.join() || l.nextChange()
	}
	return false
}

// NextWake is when the lock wants its next Tick, unless something else happens before.
func (l *Lock) NextWake() (at Instant, ok bool) {
	wake := func(t Instant) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if l.queue.nextDeadline > 0 {
		wake(l.queue.nextDeadline)
	}
	if l.main.kind != opNone {
		wake(l.main.due)
	} else if l.phase == contending && !l.cleaning() {
		wake(l.wait.nextAt)
	}
	if l.renewal.kind != opNone {
		wake(l.renewal.due)
	}
	if e := l.enrolment; l.kind.Queued && e.op.kind != opNone {
		wake(e.op.due)
	} else if l.phase != contending && e.needed(l) {
		wake(e.nextAt)
	}
	for i := range l.sides {
		wake(l.sides[i].due)
	}
	if l.main.kind == opCount && l.main.ticket != nil && l.main.ticket.Deadline > 0 {
		wake(l.main.ticket.Deadline)
	}
	for _, c := range l.changes {
		if c.ticket != nil && c.ticket.Deadline > 0 {
			wake(c.ticket.Deadline)
		}
	}
	if l.phase == owned || l.phase == releasing {
		if l.holds.len() > 0 || !l.main.inFlight {
			wake(l.lease.until)
		}
	}
	if l.phase == owned && l.holds.len() > 0 {
		for own := range l.holds.all() {
			if own.until != 0 {
				wake(own.until)
			}
		}
		if l.renewed() && l.renewal.kind == opNone {
			wake(l.lease.renewAt)
		}
		if l.queue.len() > 0 && l.main.kind == opNone && l.shares(l.queue.head()) {
			if l.lease.closed {
				wake(l.lease.lookAt)
			} else {
				wake(l.lease.tenureEnd)
			}
		}
	}
	return at, ok
}
