package lock

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// The end of a turn: at the hand-off limit, the process asks Redis whether others wait, and gives up the lock if so.

// startTurn starts the first turn of a term, or another one.
func (l *Lock) startTurn() {
	l.tokens.spent.newTurn()
	l.lease.turn.Start(l.now, l.cfg.HandOffLimit, l.cfg.ForcedYield)
}

// yield asks Redis whether others wait, now that the hand-off limit is reached.
func (l *Lock) yield(ref any) {
	l.dropRenewal()
	if l.lease.unanswered.MayCutShort(l.cfg.Watchdog) { // the command may arrive after the yield, and shorten its lease
		l.release(ref)
		return
	}
	o := op{kind: opYield, mode: l.lease.mode, counts: once(l.lease.mode), lease: l.cfg.Watchdog, ref: ref}
	if l.features.WaitQueue {
		o.next = l.takeTerm()
	}
	l.start(o)
}

func (l *Lock) yieldCommand(o *op, c *Command) {
	l.suspected = false
	c.Kind, c.Forced = Yield, l.lease.turn.IsForced(l.now)
	if o.next != 0 {
		l.takeEntry(c, o.next)
	}
}

// yieldReplied ends the turn, or begins another one if no other client waits.
func (l *Lock) yieldReplied(o op, r Result) {
	switch r.Outcome {
	case Renewed:
		l.main = op{}
		l.wait.sent = nil
		l.answer(o.ref, machine.Answer{Kind: machine.Freed, HandedOff: true})
		l.startTurn()
		l.noteLease(o, r)
	case Done:
		l.answer(o.ref, machine.Answer{Kind: machine.Freed})
		l.afterRelease()
		l.contendAgain(o, r)
	case Absent:
		l.answerRelease(o)
		if l.afterRelease(); l.features.Parts { // the script has queued the process nevertheless
			l.contendAgain(o, r)
		}
	case Failed:
		l.releaseInstead(r) // it may have been released: make that certain
	}
}

// countWaiters asks Redis whether others wait, while readers of this process hold the lock.
func (l *Lock) countWaiters() { l.start(op{kind: opCountWaiters, lease: l.cfg.Watchdog}) }

func (l *Lock) countWaitersCommand(_ *op, c *Command) { c.Kind = CountWaiters }

// countWaitersReplied begins another turn if no other client waits.
func (l *Lock) countWaitersReplied(_ op, r Result) {
	l.main = op{}
	if !l.lease.atRisk { // else LastErr is the reason why renewals fail
		l.wait.LastErr = ""
	}
	switch {
	case r.Outcome == Failed:
		reason, detail := r.Why()
		l.wait.LastErr = detail
		l.lease.turn.Until = l.now + l.backoff(0, l.cfg.Watchdog) // ask again then
		l.lease.recountAt = l.lease.turn.Until
		l.refuseTries(reason, detail)
	case r.Others > 0:
		l.seal()
	default:
		if l.lease.sealed {
			l.lease.sealing, l.lease.turn = sealing{}, machine.Turn{}
		}
		l.lease.turn.Start(l.now, l.cfg.HandOffLimit, l.cfg.ForcedYield)
	}
}

// seal admits no further reader of this process until no other client is seen to wait. If all readers leave before
// that, the term ends. The other clients may be readers, which then join and stop waiting, although readers of this
// process go on holding the lock for long.
func (l *Lock) seal() {
	l.lease.sealed = true
	l.lease.recountAt = l.now + l.backoff(l.lease.recounts, l.cfg.Watchdog)
	l.lease.recounts++
	l.refuseTries(machine.Held, "others wait for the lock already")
}

// contendAgain waits for the lock that the process has yielded.
func (l *Lock) contendAgain(o op, r Result) {
	if o.next == 0 || len(l.wait.sent) == 0 {
		if l.contend(); o.next == 0 { // there is no wait queue
			l.deferToOthers(r.Others, time.Duration(max(r.Others, 1))*l.cfg.HandOffLimit)
		}
		return
	}
	transfer, stale := l.wait.transfer, l.wait.RefusalIsStale
	l.phase = contending
	l.beginTerm(o.next)
	l.wait = waiting{sent: l.wait.sent}
	l.wait.Refused, l.wait.NextAt = true, l.now+l.jitter(l.poll())
	switch {
	case transfer.Term != 0:
		l.takeTransfer(transfer) // it has overtaken the reply
	case l.features.Parts:
		l.wait.NextAt = l.now // to learn which part to wait for
	case r.Others == 0 && l.wait.sent[0].mode == machine.Shared:
		l.wait.NextAt = l.now // readers may have the lock by now, without a message
	case r.Others > 0:
		l.deferToOthers(r.Others, l.cfg.OpenTime())
	case stale:
		l.wait.NextAt = l.now // the lock may be reserved for a MultiLock; the script says for how long
	}
}
