package lock

import (
	"math"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// localOrder is the order of the waiters of this process alone. The lease passes from one to
// the next in memory; at the hand-off limit Redis is asked whether other processes wait,
// and if so they get the lock. It has no state of its own: that belongs to the lease and to the wait.
type localOrder struct{ noRegistry }

func (localOrder) clone() order { return localOrder{} }

func (localOrder) enter(*Lock, *waiter) {}

func (localOrder) contender(l *Lock) uint64 { return l.takeTerm() }

func (localOrder) channel(*Lock) uint64 { return 0 }

func (localOrder) taken(l *Lock, o op, r Result) {
	if o.kind == opAcquire {
		l.spent.newTurn()
		l.lease.turn = turn{handOffUntil: l.now + l.cfg.HandOffLimit, forcedYieldAt: l.now + l.cfg.ForcedYield}
	}
	l.noteLease(o, r)
	if l.queue.len() > 0 && l.queue.head() == o.request && !(o.request.Fenced && l.lease.tokens.fell) {
		l.grantTaken(o) // else it is for the request that is next by now, which may have to draw a token
	}
}

func (localOrder) passedOn(l *Lock, o op, r Result) {
	switch {
	case r.Outcome == Done:
		l.answer(o.ref, machine.Answer{Kind: machine.Freed, HandedOff: true})
	case r.Outcome == Refused && l.lease.mode == machine.Shared && o.mode == machine.Exclusive:
		l.answer(o.ref, machine.Answer{Kind: machine.Freed}) // readers of other processes remain
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
		// Of goroutines that are woken, Go runs the last one first. That has to be the releasing one, so
		// that it can ask again before the queue is empty and the lease goes back to Redis.
		l.grant(l.queue.pop(), true)
		l.answer(ref, machine.Answer{Kind: machine.Freed, HandedOff: true})
	default:
		l.prepareGrant(ref)
	}
}

// admits keeps readers that come one after another from excluding writers for ever.
func (localOrder) admits(l *Lock) bool {
	switch {
	case l.lease.draining && l.now < l.lease.recountAt:
	case l.lease.draining:
		l.countWaiters() // they may have left
	case l.now >= l.lease.forcedYieldAt:
		l.drain() // others may wait without being seen
	case l.now >= l.lease.handOffUntil:
		l.countWaiters()
	default:
		return true
	}
	return false
}

func (localOrder) wake(l *Lock) (at machine.Instant, ok bool) {
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
	if l.mayBeCutShort(l.cfg.Watchdog) { // the renewal may arrive after the yield, and shorten its lease
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

// yieldReplied ends the turn, or begins another one if no other client waits.
func (l *Lock) yieldReplied(o op, r Result) {
	switch r.Outcome {
	case Kept:
		l.main = op{}
		l.wait.sent = nil
		l.answer(o.ref, machine.Answer{Kind: machine.Freed, HandedOff: true})
		l.lease.handOffUntil = l.now + l.cfg.HandOffLimit
		l.spent.newTurn()
		l.noteLease(o, r)
	case Done:
		l.answer(o.ref, machine.Answer{Kind: machine.Freed})
		l.afterRelease()
		l.contendAgain(o, r)
	case Absent:
		l.answerRelease(o)
		if l.afterRelease(); l.kind.Parts { // the script has queued the process nevertheless
			l.contendAgain(o, r)
		}
	case Failed:
		l.releaseInstead(r) // it may have been released: make that certain
	}
}

// countWaiters asks Redis whether others wait, while readers of this process hold the lock.
func (l *Lock) countWaiters() { l.start(op{kind: opCountWaiters, lease: l.cfg.Watchdog}) }

// waitersCounted begins another turn if no other client waits.
func (l *Lock) waitersCounted(r Result) {
	l.main = op{}
	if !l.lease.atRisk { // else the error is why no renewal came in time
		l.wait.lastErr = ""
	}
	switch {
	case r.Outcome == Failed:
		reason, detail := failure(r)
		l.wait.lastErr = detail
		l.lease.handOffUntil = l.now + l.backoff(0, l.cfg.Watchdog) // ask again then
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

// drain admits no further reader until no other client is seen to wait. If the readers leave before, the
// term ends. The other clients may be readers, which then join and wait no more, while readers of this
// process hold the lock for long.
func (l *Lock) drain() {
	l.lease.draining = true
	l.lease.recountAt = l.now + l.backoff(l.lease.recounts, l.cfg.Watchdog)
	l.lease.recounts++
	l.refuseTries(machine.Held, "others wait for the lock already")
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
		l.takeTransfer(transfer) // it has overtaken the reply
	case l.kind.Parts:
		l.wait.nextAt = l.now // to learn which part to wait for
	case r.Others == 0 && l.wait.sent[0].mode == machine.Shared:
		l.wait.nextAt = l.now // readers may have the lock by now, without a message
	case r.Others > 0:
		l.deferToOthers(r.Others, l.cfg.OpenTime())
	}
}

// isDeferred reports whether the lock is left to others for now.
func (l *Lock) isDeferred() bool { return l.now < l.wait.deferUntil }

// deferToOthers leaves the lock to others after a turn of this process. If the process listens, it also
// receives its own message about that.
func (l *Lock) deferToOthers(others int, d time.Duration) {
	l.wait.refused = true
	turns := others
	switch {
	case others == 0:
		turns = math.MaxInt // only time ends the deferral
	case l.sub.state == listening:
		turns++
	}
	l.deferFor(turns, d)
}

// deferFor leaves the lock to others for d, or until so many messages have come.
func (l *Lock) deferFor(turns int, d time.Duration) {
	l.wait.turns, l.wait.deferUntil = turns, l.now+d
	l.wait.nextAt = min(l.wait.deferUntil, l.now+l.poll())
}

// countRelease counts a message that the lock was released, and reports whether the process may try now.
func (l *Lock) countRelease() bool {
	switch {
	case !l.isDeferred():
		return true
	case l.sub.state != listening:
		return false // it may be the process's own message, which turns includes only if it listened
	}
	if l.wait.turns--; l.wait.turns > 0 {
		return false
	}
	l.wait.deferUntil, l.wait.notified = 0, true
	return true
}
