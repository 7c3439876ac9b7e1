package lock

import (
	"math"
	"time"
)

// localOrder is the order of the waiters of this process alone. The lease passes from one to
// the next in memory; at the hand-off limit Redis is asked whether other processes wait,
// and if so they get the lock. What it has to remember belongs to the lease and to the
// wait, so that it is no state of its own.
type localOrder struct{ noRegistry }

func (localOrder) clone() order { return localOrder{} }

func (localOrder) enter(*Lock, *Request) {}

func (localOrder) contender(l *Lock) uint64 { return l.takeTerm() }

func (localOrder) channel(*Lock) uint64 { return 0 }

func (localOrder) taken(l *Lock, o op, r Result) {
	if o.kind == opAcquire {
		l.spent.newTurn()
		l.lease.turn = turn{handOffUntil: l.now + l.cfg.HandOffLimit, forcedYieldAt: l.now + l.cfg.ForcedYield}
	}
	l.noteLease(o, r)
	if l.queue.len() > 0 && l.queue.head() == o.request && !(o.request.Fenced && l.lease.tokens.fell) {
		l.grantTaken(o) // else it is for whoever is next by now, who may have to draw
	}
}

func (localOrder) passedOn(l *Lock, o op, r Result) {
	switch {
	case r.Outcome == Done:
		l.answer(o.ref, Answer{Kind: Freed, HandedOn: true})
	case r.Outcome == Refused && l.lease.mode == Shared && o.mode == Exclusive:
		l.answer(o.ref, Answer{Kind: Freed}) // other readers are in: ours have left
	default:
		l.answerRelease(o)
	}
}

func (localOrder) inMemory() bool { return true }

func (localOrder) passOn(l *Lock, ref any) {
	switch {
	case l.now >= l.lease.handOffUntil || l.lease.draining:
		l.yield(ref)
	case l.canHandOn(l.queue.head()):
		// Of goroutines that are woken, Go runs the last one first. This is to be the one that
		// released: it asks again before the others have had their turns. Otherwise they use up
		// the queue, and the lease goes back to Redis.
		l.grant(l.queue.pop(), true)
		l.answer(ref, Answer{Kind: Freed, HandedOn: true})
	default:
		l.prepareGrant(ref)
	}
}

// Readers that come one after another must not keep writers out for ever.
func (localOrder) admits(l *Lock) bool {
	switch {
	case l.lease.draining && l.now < l.lease.recountAt:
	case l.lease.draining:
		l.countWaiters() // they may have gone
	case l.now >= l.lease.forcedYieldAt:
		l.drain() // somebody may wait without being seen
	case l.now >= l.lease.handOffUntil:
		l.countWaiters()
	default:
		return true
	}
	return false
}

func (localOrder) wake(l *Lock) (at Instant, ok bool) {
	switch {
	case l.holds.len() == 0 || l.queue.len() == 0 || l.main.kind != opNone || !l.shares(l.queue.head()):
		return 0, false
	case l.lease.draining:
		return l.lease.recountAt, true
	}
	return l.lease.handOffUntil, true
}

// yield asks Redis whether others wait, now that the hand-off limit is reached.
func (l *Lock) yield(ref any) {
	l.dropRenewal()
	if l.mayBeCutShort(l.cfg.Watchdog) { // the renewal may arrive behind the yield, and cut its lease short
		l.release(ref)
		return
	}
	o := op{kind: opYield, mode: l.lease.mode, counts: once(l.lease.mode), lease: l.cfg.Watchdog, ref: ref}
	if l.kind.WaitQueue {
		o.next = l.takeTerm()
	}
	l.start(o)
}

func (l *Lock) yieldCommand(o *op, c *Command) {
	l.suspected = false
	c.Kind, c.Forced = Yield, l.now >= l.lease.forcedYieldAt
	if o.next != 0 {
		l.takeEntry(c, o.next)
	}
}

// yieldReplied ends the turn: others get the lock, or another turn begins.
func (l *Lock) yieldReplied(o op, r Result) {
	switch r.Outcome {
	case Kept:
		l.main = op{}
		l.wait.sent = nil
		l.answer(o.ref, Answer{Kind: Freed, HandedOn: true})
		l.lease.handOffUntil = l.now + l.cfg.HandOffLimit
		l.spent.newTurn()
		l.noteLease(o, r)
	case Done:
		l.answer(o.ref, Answer{Kind: Freed})
		l.afterRelease()
		l.contendAgain(o, r)
	case Absent:
		l.answerRelease(o)
		if l.afterRelease(); l.kind.Parts { // the script has queued the process all the same
			l.contendAgain(o, r)
		}
	case Failed:
		l.releaseInstead(r) // it may have been released: make that certain
	}
}

// countWaiters asks Redis whether others wait, while readers here hold the lock.
func (l *Lock) countWaiters() { l.start(op{kind: opCountWaiters, lease: l.cfg.Watchdog}) }

// waitersCounted begins another turn if nobody else waits.
func (l *Lock) waitersCounted(r Result) {
	l.main = op{}
	if !l.lease.atRisk { // else the error is why no renewal came in time
		l.wait.lastErr = ""
	}
	switch {
	case r.Outcome == Failed:
		reason, detail := failure(r)
		l.wait.lastErr = detail
		l.lease.handOffUntil = l.now + l.backoff(0, l.cfg.Watchdog) // look again
		l.lease.recountAt = l.lease.handOffUntil
		l.refuseTries(reason, detail)
	case r.Others > 0:
		l.drain()
	default:
		if l.lease.draining {
			l.lease.draining, l.lease.recounts = false, 0
			l.lease.forcedYieldAt = l.now + l.cfg.ForcedYield
		}
		l.lease.handOffUntil = l.now + l.cfg.HandOffLimit
	}
}

// drain lets nobody join until nobody else is seen to wait any more: the term
// ends if its readers leave before. The others may be readers, who come in and wait no
// more, and readers here may stay for long.
func (l *Lock) drain() {
	l.lease.draining = true
	l.lease.recountAt = l.now + l.backoff(l.lease.recounts, l.cfg.Watchdog)
	l.lease.recounts++
	l.refuseTries(Held, "others wait for the lock already")
}

// contendAgain waits for the lock that the process has yielded.
func (l *Lock) contendAgain(o op, r Result) {
	if o.next == 0 || len(l.wait.sent) == 0 {
		if l.contend(); !l.kind.WaitQueue {
			l.deferToOthers(r.Others, time.Duration(max(r.Others, 1))*l.cfg.HandOffLimit)
		}
		return
	}
	transfer := l.wait.transfer
	l.phase = contending
	l.lease = lease{term: o.next}
	l.wait = waiting{refused: true, nextAt: l.now + l.jitter(l.poll()), sent: l.wait.sent}
	switch {
	case transfer.Term != 0:
		l.takeTransfer(transfer) // which has overtaken the reply
	case l.kind.Parts:
		l.wait.nextAt = l.now // to learn which part to wait for
	case r.Others == 0 && l.wait.sent[0].mode == Shared:
		l.wait.nextAt = l.now // readers may have the lock by now, and no message tells
	case r.Others > 0:
		l.deferToOthers(r.Others, l.cfg.OpenTime())
	}
}

// standsBack reports whether others are to have their go first.
func (l *Lock) isDeferred() bool { return l.now < l.wait.deferUntil }

// leaveToOthers lets the others have their go after a turn of ours. Our own message about it
// comes back to us too if we listen.
func (l *Lock) deferToOthers(others int, d time.Duration) {
	l.wait.refused = true
	turns := others
	switch {
	case others == 0:
		turns = math.MaxInt // only time ends it
	case l.sub.state == listening:
		turns++
	}
	l.deferFor(turns, d)
}

// standBack lets others have the lock for that long, or until so many messages have come.
func (l *Lock) deferFor(turns int, d time.Duration) {
	l.wait.turns, l.wait.deferUntil = turns, l.now+d
	l.wait.nextAt = min(l.wait.deferUntil, l.now+l.poll())
}

// othersHadTheirs takes note of a message that the lock was released, and reports whether the
// process need not stand back any more.
func (l *Lock) countRelease() bool {
	switch {
	case !l.isDeferred():
		return true
	case l.sub.state != listening:
		return false // it may be our own message: which the turns count only if we listened
	}
	if l.wait.turns--; l.wait.turns > 0 {
		return false
	}
	l.wait.deferUntil, l.wait.notified = 0, true
	return true
}
