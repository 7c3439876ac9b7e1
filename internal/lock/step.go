package lock

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// begin starts an event: it ends what is over by now, and handles overdue replies. An event begins with
//
//	defer l.begin(now).settle()
func (l *Lock) begin(now machine.Instant) *Lock {
	l.takeWork()
	l.now = max(l.now, now)
	l.endExpired()
	l.dropExpired()
	l.handleOverdue()
	l.expireLeaseRequests()
	return l
}

// settle ends an event: it starts all that can be done next.
func (l *Lock) settle() {
	l.endExpired() // a release that has just failed may have had its last try
	for l.advance() {
	}
	if q := l.queueInRedis(); q != nil {
		q.refresh(l)
	}
	l.listen()
	l.leaveWork()
}

// advance takes one step, and reports whether there was one to take.
func (l *Lock) advance() bool {
	switch l.phase {
	case free:
		if l.queue.Len() == 0 {
			return false
		}
		l.contend()
		return true
	case contending:
		q := l.queueInRedis()
		switch {
		case l.main.kind != opNone:
			return false
		case l.queue.Len() == 0:
			l.stopContending()
			return true
		case l.cleaning():
			return false
		case l.now >= l.wait.NextAt, l.mayShareNow(), q != nil && q.changed(l):
			l.attempt()
			return true
		}
	case owned:
		l.checkSuspected()
		if l.holds.len() > 0 && l.isRenewed() && l.renewal.kind == opNone && l.now >= l.lease.renewAt {
			l.startRenewal(l.now > l.lease.renewAt+l.cfg.Renewal/10) // a late one is not batched
		}
		switch {
		case l.main.kind != opNone:
			return l.overtake()
		case l.lingers():
			return false
		case l.holds.len() == 0:
			l.grantNext()
			return true
		}
		return l.join() || l.nextExtension() || l.nextPending()
	}
	return false
}

// Replied delivers the outcome of a command. A command that is no longer under way is ignored.
func (l *Lock) Replied(now machine.Instant, seq uint64, r Result) {
	defer l.begin(now).settle()
	awaited := func(o *op) bool { return o.InFlight && o.seq == seq }
	switch {
	case awaited(&l.main):
		l.mainReplied(r)
	case awaited(&l.renewal.op):
		l.renewalReplied(r)
	case l.handleLateRenewal(seq, r):
	case awaited(&l.sync.op):
		l.queueInRedis().synced(l, r)
	default:
		for i := range l.background {
			if awaited(&l.background[i]) {
				l.backgroundReplied(i, r)
				return
			}
		}
		l.handleLateReply(seq, r)
	}
}

// mainReplied handles the reply to the command about the lease.
func (l *Lock) mainReplied(r Result) { ops[l.main.kind].replied(l, l.main, r) }

// backgroundReplied ends a background op, or sends it again while that is useful.
func (l *Lock) backgroundReplied(i int, r Result) {
	l.background = slices.Clone(l.background)
	o := &l.background[i]
	// A forced release that may have been carried out is not sent again: without named owners it would free the present
	// holder, which may have taken the lock since.
	if r.Outcome == Failed && r.Transient && l.now < o.until && (o.kind != opForce || !r.Unsure) {
		l.retryLater(o, r)
		o.Due = min(o.Due, o.until)
		return
	}
	ended := *o
	l.background = slices.Delete(l.background, i, i+1)
	switch {
	case ended.kind == opForce:
		l.forceReplied(ended, r)
	case r.Outcome == Failed && l.now < max(ended.until, ended.keepUntil):
		l.leaveToExpire(max(ended.until, ended.keepUntil))
	}
	// After a rejection the key is as it was, and the next try would end in the same release.
	if rejected := r.Outcome == Failed && !r.Transient; l.phase == contending && !l.isDeferred() && !rejected {
		l.attemptSoon()
	}
}

// handleOverdue ends the wait for overdue replies, and sends the commands that are due to be sent again.
func (l *Lock) handleOverdue() {
	late := func(o *op, until machine.Instant, replied func(Result)) {
		if failure, again := o.Overdue(l.now, until); failure != nil {
			replied(Result{Outcome: Failed, Failure: *failure})
		} else if again {
			l.send(o)
		}
	}
	late(&l.main, 0, l.mainReplied)
	late(&l.renewal.op, 0, l.retryOverdueRenewal)
	late(&l.sync.op, 0, func(r Result) { l.queueInRedis().synced(l, r) })
	for i := 0; i < len(l.background); {
		if l.now < l.background[i].Due {
			i++
			continue
		}
		l.background = slices.Clone(l.background)
		o := &l.background[i] // after until, a forced release without owners would free a later holder
		late(o, o.until, func(r Result) { l.backgroundReplied(i, r) })
	}
}

// NextWake returns when the lock needs its next Tick, unless another event comes first.
func (l *Lock) NextWake() (at machine.Instant, ok bool) {
	due := l.holds.nextEnd()
	due.Add(l.queue.NextDeadline())
	if l.main.kind != opNone {
		due.Add(l.main.Due)
	} else if l.phase == contending && !l.cleaning() {
		due.Add(l.wait.NextAt)
	}
	if l.renewal.kind != opNone {
		due.Add(l.renewal.Due)
	}
	if t, ok := l.order.wake(l); ok {
		due.Add(t)
	}
	for i := range l.background {
		due.Add(l.background[i].Due)
	}
	if len(l.ensures) > 0 {
		due.Add(l.ensures[0].by) // the others came later
	}
	if len(l.extensions) > 0 {
		due.Add(l.extensions[0].by)
	}
	due.Add(l.sub.Until)
	if l.main.kind == opCount && l.main.request != nil {
		due.Add(l.main.request.Deadline)
	}
	for _, c := range l.pendingCounts {
		if c.request != nil {
			due.Add(c.request.Deadline)
		}
	}
	if l.phase == owned || l.phase == releasing {
		if l.holds.len() > 0 || !l.main.InFlight {
			due.Add(l.lease.until)
		}
		if l.lingers() {
			due.Add(l.lingerEnd())
		}
	}
	if l.holds.len() > 0 && l.isRenewed() && l.renewal.kind == opNone {
		due.Add(l.lease.renewAt)
	}
	return due.Get()
}
