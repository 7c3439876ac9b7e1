package lock

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// contend starts to contend for the lease.
func (l *Lock) contend() {
	l.phase = contending
	l.beginTerm(l.order.termToContend(l))
	l.wait = waiting{}
	l.wait.NextAt = l.now
}

// attempt sends an acquire for the head of the queue.
func (l *Lock) attempt() {
	l.dropExpired()
	if l.queue.Len() == 0 {
		return
	}
	req := l.queue.Head()
	o := l.opFor(opAcquire, req)
	l.wait.RefusalIsStale = false
	l.wait.deferUntil = 0
	l.wait.transfer = machine.Transfer{}
	switch {
	case l.lease.isInDoubt(o.lease, req.Mode) || l.features.Parts && l.wait.traces == mayRemain:
		// An earlier try, for a shorter lease or another mode, may still arrive.
		l.cleanUp(l.lease.term)
		l.beginTerm(l.takeTerm())
		l.wait.traces = untried
		return
	case l.features.Parts && l.wait.traces == allRefused:
		// The release of the parts that the last try took may still arrive.
		l.beginTerm(l.takeTerm())
	}
	l.wait.traces = max(l.wait.traces, allRefused)
	l.start(o)
}

// acquireCommand fills in the command of opAcquire and of opGrant.
func (l *Lock) acquireCommand(o *op, c *Command) {
	l.suspected = false
	o.draws = l.tokens.toDraw(l.queue.Fenced())
	c.Kind, c.Tokens, c.Above = Acquire, o.draws, l.tokens.highest
	if c.Held = o.kind == opGrant; !c.Held {
		l.takeEntry(c, o.term)
	}
}

func (l *Lock) acquireReplied(o op, r Result) {
	l.main = op{}
	switch r.Outcome {
	case Done:
		l.phase = owned
		l.order.grant(l, o, r)
		l.wait = waiting{}
		return
	case Refused, Absent:
		l.forgetBefore(o)
		l.noteRefusal(o, r)
	case Failed:
		l.attemptFailed(o, r)
	}
	if l.wait.transfer.Term != 0 {
		l.takeTransfer(l.wait.transfer)
	}
}

// noteRefusal remembers the holder, and schedules the next try. It refuses the requests that only try, except requests
// that came after the acquire was sent: the lock may be free by now.
func (l *Lock) noteRefusal(o op, r Result) {
	l.wait.CarriedOut()
	l.wait.Refused, l.wait.deferral, l.wait.unconfirmed = true, deferral{}, false
	l.wait.holder = r.Holder
	l.wait.freeAt = 0
	l.wait.NextAt = l.now + l.jitter(l.poll())
	if r.TTL >= 0 {
		l.wait.freeAt = l.now + r.TTL
		l.wait.NextAt = min(l.wait.NextAt, l.wait.freeAt+time.Millisecond) // Redis rounds the TTL down
	}
	// A process that does not listen yet would miss the message that ends the deferral. It tries again as soon as it
	// listens.
	if l.features.WaitQueue && r.Outcome == Refused && r.Holder == "" && l.sub.State == machine.Listening {
		l.deferFor(byRedis, 1, r.TTL)
	}
	if l.wait.RefusalIsStale {
		l.wait.NextAt = l.now
	}
	if l.sub.State == machine.Requested {
		// The subscription was not confirmed since the last try: subscribe again, in case the first command got lost.
		l.effects.Add(machine.Effect{Kind: machine.Subscribe, Term: l.sub.Term})
	}
	if r.OwnTerm != 0 && r.OwnTerm != l.lease.term {
		// An unanswered command of a term that is over took the lock, without a holder.
		l.cleanUpOwn(r) // after which the next try comes at once
	}
	later := false
	for _, req := range l.queue.RemoveTries(func(req *waiter) bool {
		later = later || req.ID > o.newest
		return req.ID <= o.newest
	}) {
		l.answer(req.Ref, l.held())
	}
	switch {
	case later, l.lacksEntry() && !l.isDeferred(): // a request that only tries adds no entry
		l.wait.NextAt = l.now
	case o.mode == machine.Exclusive && l.queue.Len() > 0 && l.queue.Head().Mode == machine.Shared && !l.isDeferred():
		l.wait.NextAt = l.now // the refused try was for a writer, which has left
	}
}

// attemptFailed schedules another try, or refuses the waiters if that would be useless.
func (l *Lock) attemptFailed(o op, r Result) {
	_, detail := r.Why()
	l.wait.unconfirmed = r.Unconfirmed
	if r.Unsure {
		l.wait.traces = mayRemain
		l.noteUnansweredTry(&o)
	} else {
		l.wait.sent = l.wait.sent.without(func(c confirmation) bool { return c.seq == o.seq })
	}
	l.refuseAfter(o, r, func(req *waiter) bool { return req.Try || !r.Transient })
	l.wait.Failed(detail, l.now+l.waitersBackoff(l.wait.Tries, o.lease))
}

// refuseAfter refuses the requests that the failure of an acquire concerns. If the acquire draws tokens, a permanent
// error may come from their counter, which does not concern requests without a token.
func (l *Lock) refuseAfter(o op, r Result, concerns func(*waiter) bool) {
	reason, detail := r.Why()
	if !r.Transient && o.draws > 0 {
		concerns = func(req *waiter) bool { return req.Fenced }
	}
	for _, req := range l.queue.Remove(concerns) {
		l.refuse(req.Ref, reason, detail)
	}
}

// stopContending ends the wait for the lease.
func (l *Lock) stopContending() {
	if l.lease.term != 0 && (l.wait.traces == mayRemain || len(l.wait.sent) > 0) {
		l.cleanUp(l.lease.term) // an abandoned entry costs the next ones a transfer and its release
	}
	l.afterRelease()
	l.wait = waiting{}
}

// listen keeps the subscription while there are waiters that were refused, and for UnsubscribeDelay longer.
func (l *Lock) listen() {
	term, reusable := l.order.channel(l)
	l.sub.Follow(l.now, l.queue.Len() > 0, l.wait.Refused, reusable && !l.closing, term, &l.effects)
}

// attemptSoon tries as soon as possible, since the lock may be free. A command that is under way may have been carried
// out before, so its refusal would be stale.
func (l *Lock) attemptSoon() {
	switch {
	case l.main.InFlight && (l.main.kind == opAcquire || l.main.kind == opGrant || l.main.kind == opYield):
		l.wait.RefusalIsStale = true
	case l.phase == contending:
		l.wait.NextAt = l.now
	}
}
