package core

import (
	"fmt"
	"slices"
	"time"
)

// subscription is how the lock stands to its channel. Where the queue is in Redis,
// every waiter there has a channel of its own, and term is whose it is.
type subscription struct {
	state listens
	term  uint64
}

type listens uint8

const (
	unsubscribed listens = iota
	asked
	listening
)

// waiting is what the lock knows while it contends for a lease.
type waiting struct {
	// nextAt is when to try next if no message comes before.
	nextAt Instant
	// again: a message came while a try was under way, so its refusal may be stale.
	again bool
	// refused: somebody else holds the lock, so its channel is of interest.
	refused bool
	// unsure: a try of this term may have been carried out though it seemed to fail.
	unsure bool
	// tried: a try of this term has ended; of several parts, what it took was given back.
	tried bool
	// announced: a try has told other readers that a writer waits.
	announced bool
	// After a tenure the process lets the others have a go each: it does not try
	// before deferUntil or before turns messages have come, whichever is first.
	turns      int
	deferUntil Instant
	tries      int
	// What the last try found.
	lastErr  string
	holder   string
	freeAt   Instant
	unending bool
}

// ttl is what should be left of the other's lease; negative if not known.
func (w *waiting) ttl(l *Lock) time.Duration {
	switch {
	case l.holds.len() > 0:
		return max(l.lease.until-l.now, 0)
	case w.holder == "" || w.unending:
		return -1
	}
	return max(w.freeAt-l.now, 0)
}

// contend begins to want the lease.
func (l *Lock) contend() {
	l.phase = contending
	l.lease = lease{}
	if !l.kind.Queued { // there, every waiter brings its own
		l.lease.term, l.spare = l.spare, 0
	}
	l.wait = waiting{nextAt: l.now}
}

// attemptSoon tries at the next chance.
func (l *Lock) attemptSoon() {
	if l.main.kind == opAcquire && l.main.inFlight {
		l.wait.again = true
		return
	}
	l.wait.nextAt = l.now
}

// attempt sends an acquire for the head of the queue.
func (l *Lock) attempt() {
	l.dropExpired()
	if l.queue.len() == 0 {
		return
	}
	t := l.queue.head()
	o := op{kind: opAcquire, mode: t.Mode, counts: once(t.Mode), lease: l.cfg.Lease, ticket: t}
	if t.Lease > 0 {
		o.lease, o.fixed = t.Lease, true
	}
	l.wait.again = false
	l.wait.deferUntil = 0
	switch again := l.kind.Parts && l.wait.tried; {
	case l.doubtful(o.lease) || l.straying(t.Mode) || again && l.wait.unsure:
		// An earlier try, for somebody with a shorter lease or another mode, may still arrive.
		l.cleanUp(l.lease.term)
		l.lease, l.spare = lease{term: l.spare}, 0
		l.wait.unsure, l.wait.tried = false, false
		return
	case again:
		// A release of what it took may still arrive.
		l.lease, l.spare = lease{term: l.spare}, 0
	}
	l.wait.tried = true
	l.wait.announced = l.wait.announced || l.kind.Shares && t.Mode == Exclusive
	l.start(o)
}

func (l *Lock) acquireReplied(o op, r Result) {
	l.main = op{}
	switch r.Outcome {
	case Done:
		l.phase = owned
		if l.kind.Queued {
			l.lease.term = r.OwnTerm
			o = l.called(o, r)
		}
		l.lease.tenureEnd = l.now + l.cfg.Tenure
		l.lease.openAt = l.now + l.cfg.Opening
		l.leased(o, r)
		l.wait = waiting{}
	case Refused, Absent:
		l.refusedBy(r)
	case Failed:
		l.attemptFailed(o, r)
	}
}

// refusedBy takes note of who holds the lock, and waits.
func (l *Lock) refusedBy(r Result) {
	l.wait.refused = true
	l.wait.tries, l.wait.lastErr = 0, ""
	l.wait.holder = r.Holder
	l.wait.unending = r.TTL < 0
	l.wait.freeAt = l.now + r.TTL
	l.wait.nextAt = l.now + l.jitter(l.cfg.Poll)
	if r.TTL >= 0 {
		// Redis rounds the TTL down.
		l.wait.nextAt = min(l.wait.nextAt, l.wait.freeAt+time.Millisecond)
	}
	if l.wait.again {
		l.wait.nextAt = l.now
	}
	if l.sub.state == asked {
		// Not confirmed since the last try: ask again, in case the first got lost.
		l.effects = append(l.effects, Effect{Kind: Subscribe, Term: l.sub.term})
	}
	if r.OwnTerm != 0 && r.OwnTerm != l.lease.term {
		// A late command of a term that is over took the lock, and nobody holds it.
		l.cleanUp(r.OwnTerm)
		l.wait.nextAt = l.now
	}
	for _, t := range l.queue.remove(func(t *Ticket) bool { return t.Try }) {
		l.answer(t.Ref, Answer{Kind: NotGranted, Reason: Held, TTL: l.wait.ttl(l), Detail: l.heldBy()})
	}
}

// attemptFailed tries again later, or refuses everybody if that has no use.
func (l *Lock) attemptFailed(o op, r Result) {
	reason, detail := failure(r)
	l.wait.lastErr = detail
	if r.Unsure {
		l.wait.unsure = true
		l.givenUp(&o)
	}
	for _, t := range l.queue.remove(func(t *Ticket) bool { return t.Try || !r.Transient }) {
		l.refuse(t.Ref, reason, detail)
	}
	l.wait.nextAt = l.now + l.waitersBackoff(l.wait.tries, o.lease)
	l.wait.tries++
}

// deferTo lets the others have their go after a tenure. Our own message about it
// comes back to us too if we listen.
func (l *Lock) deferTo(others int) {
	l.wait.refused = true
	l.wait.deferUntil = l.now + time.Duration(max(others, 1))*l.cfg.Tenure
	l.wait.nextAt = l.wait.deferUntil
	if l.wait.turns = others; l.sub.state == listening {
		l.wait.turns++
	}
	if others == 0 {
		l.wait.turns = int(^uint(0) >> 1) // only time ends it
	}
}

// dropExpired refuses the waiters whose wait is over.
func (l *Lock) dropExpired() {
	expired := func(t *Ticket) bool { return t.Deadline > 0 && l.now >= t.Deadline }
	refuse := func(t *Ticket) {
		a := Answer{Kind: NotGranted, Reason: TimedOut, TTL: l.wait.ttl(l), Detail: l.heldBy()}
		switch {
		case l.wait.lastErr != "":
			a.Reason, a.Detail = Unavailable, l.wait.lastErr
		case t.Try, l.phase == contending && !l.wait.refused: // nothing is known of the lock
			a.Reason, a.Detail = Unavailable, "Redis has not answered within the wait"
		}
		l.answer(t.Ref, a)
	}
	if l.queue.nextDeadline != 0 && l.now >= l.queue.nextDeadline {
		for _, t := range l.queue.remove(expired) {
			refuse(t)
		}
	}
	if l.main.kind == opCount && l.main.ticket != nil && expired(l.main.ticket) {
		refuse(l.main.ticket)
		l.main.ticket = nil
	}
	l.withdrawChanges(expired, refuse)
}

// withdrawChanges takes back the re-entries that match.
func (l *Lock) withdrawChanges(match func(*Ticket) bool, each func(*Ticket)) {
	matches := func(c change) bool { return c.ticket != nil && match(c.ticket) }
	if !slices.ContainsFunc(l.changes, matches) {
		return
	}
	var stay []change
	for _, c := range l.changes {
		if matches(c) {
			each(c.ticket)
		} else {
			stay = append(stay, c)
		}
	}
	l.changes = stay
}

// stopContending leaves the lock to others.
func (l *Lock) stopContending() {
	if l.wait.unsure && l.lease.term != 0 || l.wait.announced {
		l.cleanUp(l.lease.term)
	}
	l.afterRelease()
	l.wait = waiting{}
}

// listen keeps the subscription while there are waiters that somebody else keeps waiting.
func (l *Lock) listen() {
	want := l.queue.len() > 0 && (l.wait.refused || l.sub.state != unsubscribed)
	var term uint64
	if want && l.kind.Queued {
		term = l.queue.head().term
	}
	if l.sub.state != unsubscribed && (!want || term != l.sub.term) {
		l.effects = append(l.effects, Effect{Kind: Unsubscribe, Term: l.sub.term})
		l.sub = subscription{}
	}
	if want && l.sub.state == unsubscribed {
		l.sub = subscription{state: asked, term: term}
		l.effects = append(l.effects, Effect{Kind: Subscribe, Term: term})
	}
}

// String gives the reason as the messages spell it, in lower case.
func (r Reason) String() string {
	names := [...]string{
		"unspecified", "invalid", "held", "timed out", "cancelled", "queue full", "closed", "unavailable", "rejected",
		"crashed", "not held", "lost", "expired", "gone", "taken", "forced", "max hold", "re-entry",
	}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("reason %d", r)
}
