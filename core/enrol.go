package core

import "time"

// enrolment keeps the queue in Redis in line with ours, where there is one. While the
// process contends, its tries do that on the way; at other times it takes a command.
type enrolment struct {
	op op
	// synced is the revision of our queue that was last sent; present says that
	// something of ours may stand in Redis's queue.
	synced  uint64
	present bool
	// last is the last command that listed our waiters.
	last uint64
	// nextAt is when to say again that our waiters live.
	nextAt Instant
	// longest is the longest lease that was asked for on behalf of those who may stand there.
	longest time.Duration
	// top is the highest term that stands or stood in the queue.
	top uint64
}

// mostEnrolled bounds how many of a process's waiters stand in Redis's queue.
const mostEnrolled = 100

// leastTries is how often the queue in Redis is told that waiters have left, also after a
// pause of the process that was longer than the time for that.
const leastTries = 3

// Entry is a waiter in Redis's queue.
type Entry struct {
	Term  uint64
	Lease time.Duration
	// Try takes a free lock, and does not wait in the queue otherwise.
	Try bool
}

// entries lists the waiters for Redis.
func (l *Lock) entries() []Entry {
	entries := make([]Entry, 0, min(l.queue.len(), mostEnrolled))
	for _, t := range l.queue.tickets[:cap(entries)] {
		e := Entry{Term: t.term, Try: t.Try, Lease: l.cfg.Lease}
		if t.Lease > 0 {
			e.Lease = t.Lease
		}
		entries = append(entries, e)
	}
	return entries
}

// needed reports whether the queue in Redis is to be kept up, or emptied.
func (e *enrolment) needed(l *Lock) bool {
	return l.kind.Queued && (e.present || e.op.kind != opNone || l.queue.len() > 0)
}

// stale reports whether our queue has changed since Redis was told.
func (e *enrolment) stale(l *Lock) bool { return l.kind.Queued && e.synced != l.queue.revision }

// sent takes note of a command that lists our waiters.
func (e *enrolment) sent(l *Lock, seq uint64) {
	e.synced, e.last = l.queue.revision, seq
	e.present = e.present || l.queue.len() > 0
	for _, t := range l.queue.tickets[:min(l.queue.len(), mostEnrolled)] {
		e.longest = max(e.longest, t.Lease)
	}
	e.nextAt = l.now + l.jitter(l.cfg.Poll)
}

// enrol tells Redis who waits here, if that is due and no try does it; false if not.
func (l *Lock) enrol() bool {
	e := l.enrolment
	if !e.needed(l) || l.phase == contending || e.op.kind != opNone || !e.stale(l) && l.now < e.nextAt {
		return false
	}
	e.op = op{kind: opEnrol, lease: l.cfg.Lease, until: l.longestTTL()}
	l.send(&e.op)
	return true
}

func (l *Lock) enrolReplied(r Result) {
	o := &l.enrolment.op
	switch {
	case r.Outcome != Failed:
		l.emptied(o, len(o.listed))
		*o = op{}
		l.takenForNobody(r)
	case r.Transient && (l.now < o.until || o.tries < leastTries || l.enrolment.stale(l)):
		l.again(o, r)
	default: // those who have left count as dead soon
		l.enrolment.present = l.queue.len() > 0
		*o = op{}
	}
}

// takenForNobody gives back what a command took for a waiter that had left.
func (l *Lock) takenForNobody(r Result) {
	if r.OwnTerm != 0 && r.OwnTerm != l.lease.term && l.queue.byTerm(r.OwnTerm) == nil {
		l.cleanUp(r.OwnTerm)
	}
}

// emptied takes note of a command that left so many of ours in Redis's queue, unless a
// later one is on its way.
func (l *Lock) emptied(o *op, entries int) {
	if entries == 0 && o.seq == l.enrolment.last && !l.enrolment.stale(l) {
		l.enrolment.present, l.enrolment.longest = false, 0
	}
}

// called finds the waiter whose turn it is, as Redis says.
func (l *Lock) called(o op, r Result) op {
	o.ticket = l.queue.byTerm(r.OwnTerm)
	o.mode, o.lease, o.fixed = Exclusive, l.cfg.Lease, false
	if o.ticket != nil && o.ticket.Lease > 0 {
		o.lease, o.fixed = o.ticket.Lease, true
	}
	if o.ticket != nil && l.queue.len() == 1 {
		l.emptied(&o, 0) // it has left Redis's queue, as the last of ours
	}
	return o
}

// answerPassed answers a release with which Redis passed the lock on.
func (l *Lock) answerPassed(o op, r Result) {
	if r.Freed {
		l.answer(o.ref, Answer{Kind: Freed, HandedOn: r.Outcome == Done})
	} else {
		l.answerRelease(o)
	}
}

// mayHaveTaken lists the waiters one of whom may have got the lock without our knowing.
func (l *Lock) mayHaveTaken() []Entry {
	switch {
	case l.main.inFlight && (l.main.kind == opAcquire || l.main.kind == opGrant):
		return l.main.listed
	case l.wait.unsure:
		return l.entries()
	}
	return nil
}

// lists reports whether the op's command brings Redis's queue up to date on the way.
func (o *op) lists(l *Lock) bool {
	return o.kind == opAcquire || o.kind == opGrant || o.kind == opEnrol || o == &l.main && o.kind == opRelease
}

// list adds our waiters to a command.
func (l *Lock) list(o *op, c *Command) {
	c.Take = c.Kind == Acquire
	c.Kind, c.Entries, c.Top = Enrol, l.entries(), l.enrolment.top
	if o.kind == opAcquire {
		c.Term = 0 // there is nothing to release
	}
	stale := l.enrolment.stale(l)
	o.listed = c.Entries
	l.enrolment.sent(l, o.seq)
	if stale {
		o.until = l.longestTTL()
	}
}
