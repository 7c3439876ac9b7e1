package lock

import (
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// notifyLost notifies a holder that its hold is lost.
func (l *Lock) notifyLost(h hold, reason machine.Reason, detail string) {
	l.effects.Add(machine.Effect{Kind: machine.NotifyLost, Ref: h.ref, Term: l.lease.term, Answer: machine.Answer{
		HoldID: h.id, Reason: reason, Tokens: h.tokens, Detail: detail,
	}})
}

// lose ends the lease and its holds, and notifies the holders. clean says that the key may still belong to this term in
// Redis.
func (l *Lock) lose(reason machine.Reason, detail string, clean bool) {
	l.dropRenewal()
	lost := l.holds
	for h := range lost.all() {
		l.notifyLost(h, reason, detail)
	}
	l.failLeaseRequests(func(uint64) bool { return true }, machine.Lost, detail)
	if o := l.main; o.joins() {
		l.queue.Push(o.request) // the reader has not joined yet
	} else if o.kind == opCount {
		l.refuseCount(machine.Lost, detail)
	}
	for _, c := range l.pendingCounts {
		if c.request != nil {
			l.refuse(c.request.Ref, machine.Lost, detail)
		} else {
			l.effects.Refuse(c.ref, machine.NotFreed, machine.Lost, detail)
		}
	}
	l.pendingCounts = nil
	for h := range lost.all() {
		l.lost.Add(h.id, reason)
		l.removeHold(h)
	}
	if clean {
		l.cleanUp(l.lease.term)
	}
	l.afterRelease()
}

// loseByResult ends a lease that Redis has lost, or has given to another owner.
func (l *Lock) loseByResult(r Result) {
	reason, detail := machine.Gone, "the key is gone from Redis: it was deleted, evicted or flushed, or it expired"
	if r.Taken || r.Outcome == Refused {
		reason, detail = machine.Taken, "the key belongs to another owner now"
	}
	l.lose(reason, detail, l.features.Parts) // the other parts may still be held
}

// endExpired ends what is over by now: holds, the lease, and the wait for a release.
func (l *Lock) endExpired() {
	switch l.phase {
	case owned:
		if l.holds.len() > 0 && l.now >= l.lease.until {
			l.lose(machine.Expired, l.expiry(), true)
			return
		}
		if l.holds.nextEnd().Reached(l.now) {
			l.endExpiredHolds()
		}
	case releasing:
	default:
		return
	}
	// Between two holds, or after the last: the reply under way may still come.
	if l.holds.len() == 0 && l.now >= l.lease.until && !l.main.InFlight {
		l.releaseInBackground()
	}
}

// endExpiredHolds ends the holds that have lasted until now.
func (l *Lock) endExpiredHolds() {
	holds := l.holds
	for h := range holds.all() {
		if end := h.end(); end != 0 && l.now >= end {
			reason, detail := h.expiry()
			l.revokeHold(h, reason, detail)
		}
	}
	l.holds.findOthersEnd()
}

func (h *hold) expiry() (machine.Reason, string) {
	if h.end() == h.maxEnd {
		return machine.MaxHold, "the hold has reached its max hold"
	}
	return machine.Expired, "its fixed lease is over"
}

func (l *Lock) expiry() string {
	if l.lease.fixed {
		return fmt.Sprintf("its fixed lease of %v is over", l.lease.length)
	}
	if l.wait.LastErr == "" {
		return "no renewal was made in time: the process was stopped, asleep or too busy"
	}
	return "no renewal succeeded in time: " + l.wait.LastErr
}

// endHold ends a hold that is released, and answers ref once that is done. After the last hold the lease passes to the
// next waiter, or is released in Redis; or the key stays for the minimum time.
func (l *Lock) endHold(h hold, ref any) {
	l.removeHold(h)
	if l.holds.len() == 0 {
		l.dropMain()
	}
	l.dropPending(h)
	l.dropExpired()
	switch {
	case l.holds.len() > 0:
		l.answer(ref, machine.Answer{Kind: machine.Freed, HandedOff: true}) // others share the lease
	case h.keepUntil > l.now:
		l.keep(ref, h.keepUntil)
	case l.lingers():
		l.lease.lingering = true
		l.answer(ref, machine.Answer{Kind: machine.Freed, HandedOff: true})
	case l.closing || l.queue.Len() == 0 || l.lease.isInDoubt(l.cfg.Watchdog, l.lease.mode):
		l.release(ref)
	default:
		l.order.handOff(l, ref)
	}
}

// revokeHold ends a hold that was not released, notifies its holder, and hands the lease off.
func (l *Lock) revokeHold(h hold, reason machine.Reason, detail string) {
	l.lost.Add(h.id, reason)
	l.notifyLost(h, reason, detail)
	l.failLeaseRequests(h.is, machine.Lost, detail)
	if l.main.kind == opCount && l.main.hold == h.id {
		if reason != machine.Closed {
			reason = machine.Lost
		}
		l.refuseCount(reason, detail)
		l.dropCount()
	}
	for _, c := range l.takePending(func(c countChange) bool { return c.request == nil && c.hold == h.id }) {
		l.effects.Refuse(c.ref, machine.NotFreed, machine.Lost, detail)
	}
	l.endHold(h, nil)
}

func (l *Lock) removeHold(h hold) {
	l.effects.Add(machine.Effect{Kind: machine.HoldEnded, Ref: h.ref})
	l.holds.remove(h.id)
}

// dropMain abandons the command under way for holds that are over: a change of the counts, an extension, or a count of
// the waiters.
func (l *Lock) dropMain() {
	o := l.main
	switch o.kind {
	case opCount:
		l.dropCount()
	case opExtend:
		l.noteUnanswered(&o)
	}
	l.main = op{}
	switch {
	case !o.joins():
	case l.closing:
		l.refuse(o.request.Ref, machine.Closed, machine.Closing)
	default:
		l.queue.Push(o.request) // the reader has not joined yet
	}
}
