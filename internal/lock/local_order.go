package lock

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// localOrder is the order of the waiters of this process alone. The lease passes from one to the next in memory; at the
// hand-off limit Redis is asked whether other processes wait, and if so they get the lock. It has no state of its own:
// Lock.lease and Lock.wait have all of it.
type localOrder struct{}

func (localOrder) termToContend(l *Lock) uint64 { return l.takeTerm() }

func (localOrder) channel(*Lock) (term uint64, reusable bool) { return 0, true }

func (localOrder) grant(l *Lock, o op, r Result) {
	if o.kind == opAcquire {
		l.noteAlone(o, r)
		l.startTurn()
	}
	l.noteLease(o, r)
	if l.queue.Len() > 0 && l.queue.Head() == o.request && !(o.request.Fenced && l.tokens.regressed) {
		l.grantTaken(o) // else the lease passes to the present head of the queue, which may need a token first
	}
}

func (localOrder) canHandOff(l *Lock, req *waiter) bool {
	return req.Lease == 0 && !l.lease.fixed && l.lease.counts == once(req.Mode) && l.tokens.has(req) &&
		l.now < l.lease.handOffUntil(l.cfg.Watchdog)
}

func (localOrder) answerHandOff(l *Lock, o op, r Result) {
	switch {
	case r.Outcome == Done:
		l.answer(o.ref, machine.Answer{Kind: machine.Freed, HandedOff: true})
	case r.Outcome == Refused && l.lease.mode == machine.Shared && o.mode == machine.Exclusive:
		l.answer(o.ref, machine.Answer{Kind: machine.Freed}) // readers of other processes remain
	default:
		l.answerRelease(o)
	}
}

func (localOrder) handOff(l *Lock, ref any) {
	switch {
	case l.lease.turn.IsOver(l.now) || l.lease.sealed:
		l.yield(ref)
	case l.order.canHandOff(l, l.queue.Head()):
		// Go runs the goroutine first that was woken last. That must be the releasing goroutine, so that it can ask for
		// the lock again before the queue is empty and the lease goes back to Redis.
		l.grant(l.queue.Pop(), true)
		l.answer(ref, machine.Answer{Kind: machine.Freed, HandedOff: true})
	default:
		l.prepareGrant(ref)
	}
}

func (localOrder) wake(l *Lock) (at machine.Instant, ok bool) {
	switch {
	case l.holds.len() == 0 || l.queue.Len() == 0 || l.main.kind != opNone || !l.shares(l.queue.Head()):
		return 0, false
	case l.lease.sealed:
		return l.lease.recountAt, true
	}
	return l.lease.turn.Until, true
}
