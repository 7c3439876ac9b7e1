package lock

import "time"

// contend begins to want the lease.
func (l *Lock) contend() {
	l.phase = contending
	l.lease = lease{term: l.order.contender(l)}
	l.wait = waiting{nextAt: l.now}
}

// attempt sends an acquire for the head of the queue.
func (l *Lock) attempt() {
	l.dropExpired()
	if l.queue.len() == 0 {
		return
	}
	req := l.queue.head()
	o := l.opFor(opAcquire, req)
	l.wait.again = false
	l.wait.deferUntil = 0
	switch again := l.kind.Parts && l.wait.tried; {
	case l.mayBeCutShort(o.lease) || l.modeMayChange(req.Mode) || again && l.wait.unsure:
		// An earlier try, for somebody with a shorter lease or another mode, may still arrive.
		l.cleanUp(l.lease.term)
		l.lease = lease{term: l.takeTerm()}
		l.wait.unsure, l.wait.tried = false, false
		return
	case again:
		// A release of what it took may still arrive.
		l.lease = lease{term: l.takeTerm()}
	}
	l.wait.tried = true
	l.wait.announced = l.wait.announced || l.kind.Shares && req.Mode == Exclusive
	l.start(o)
}

// acquireCommand is for opAcquire and opGrant.
func (l *Lock) acquireCommand(o *op, c *Command) {
	l.suspected = false
	o.reserved = l.reserve()
	c.Kind, c.Tokens = Acquire, o.reserved
	// A term that is over after a refusal would leave its announcement behind.
	c.Announce = o.kind == opAcquire && o.mode == Exclusive && !o.request.Try
}

func (l *Lock) acquireReplied(o op, r Result) {
	l.main = op{}
	switch r.Outcome {
	case Done:
		l.phase = owned
		l.order.taken(l, o, r)
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
	for _, req := range l.queue.remove((*Request).tries) {
		l.answer(req.Ref, l.held())
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
	for _, req := range l.queue.remove(func(req *Request) bool { return req.Try || !r.Transient }) {
		l.refuse(req.Ref, reason, detail)
	}
	l.wait.nextAt = l.now + l.waitersBackoff(l.wait.tries, o.lease)
	l.wait.tries++
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
	if want {
		term = l.order.channel(l)
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

// attemptSoon tries at the next chance, since the lock may be free. What refuses a command
// under way may be older than that.
func (l *Lock) attemptSoon() {
	switch {
	case l.main.inFlight && (l.main.kind == opAcquire || l.main.kind == opGrant):
		l.wait.again = true
	case l.phase == contending:
		l.wait.nextAt = l.now
	}
}
