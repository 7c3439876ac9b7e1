package lock

import (
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// grantNext passes a lease without a holder to the next waiter, or releases it.
func (l *Lock) grantNext() {
	l.dropExpired()
	switch {
	case l.closing || l.queue.Len() == 0:
		l.release(nil)
	case l.order.canHandOff(l, l.queue.Head()):
		l.grant(l.queue.Pop(), l.lease.lingering)
	default:
		l.prepareGrant(nil)
	}
}

// prepareGrant sets counts and lease in Redis to what the next waiter needs.
func (l *Lock) prepareGrant(ref any) {
	req := l.queue.Head()
	l.dropRenewal()
	o := l.opFor(opGrant, req)
	o.ref = ref
	if l.lease.isInDoubt(o.lease, req.Mode) {
		l.release(ref)
		return
	}
	l.start(o)
}

func (l *Lock) grantReplied(o op, r Result) {
	stale := l.wait.RefusalIsStale
	l.wait.RefusalIsStale = false
	switch r.Outcome {
	case Done:
		l.main = op{}
		if o.draws == 0 {
			// If the key had expired, others may have had the lock since, with higher tokens.
			l.tokens.left = 0
		}
		l.order.answerHandOff(l, o, r)
		l.order.grant(l, o, r)
	case Refused, Absent:
		l.main = op{}
		l.order.answerHandOff(l, o, r)
		if l.features.Parts {
			l.cleanUp(o.term)
		}
		l.contend()
		l.wait.RefusalIsStale = stale
		l.noteRefusal(o, r)
		if l.lacksEntry() {
			l.wait.NextAt = l.now
		}
	case Failed:
		if !r.Transient {
			l.refuseAfter(o, r, func(req *waiter) bool { return req.ID == o.request.ID })
		}
		l.releaseInstead(r) // the term may be over
	}
}

// noteLease records a lease that o has just taken or set.
func (l *Lock) noteLease(o op, r Result) {
	l.lease.counts, l.lease.mode = once(o.mode), o.mode
	l.lease.sealing = sealing{}
	l.lease.fixed = o.fixed
	l.lease.length, l.lease.longest = o.lease, max(l.lease.longest, o.lease)
	l.lease.until = 0
	l.wait.LastErr = ""
	l.tokens.keep(o.draws, r.Tokens)
	l.lease.noteTTL(&o, l.now, l.cfg)
	l.dropExpired()
}

// grantTaken grants a lease, which o has taken or set, to the waiter of o. It returns false if that waiter has left, or
// the reply came too late.
func (l *Lock) grantTaken(o op) bool {
	req, found := l.queue.Take(o.request.ID)
	switch {
	case !found:
		return false
	case l.lease.until <= l.now:
		l.refuse(req.Ref, machine.Unavailable, fmt.Sprintf("Redis took %v to answer, too long for a lease of %v", l.now-o.sentAt, o.lease))
		return false
	}
	l.grant(req, false)
	return true
}

// grant makes a waiter a holder.
func (l *Lock) grant(req *waiter, handedOff bool) {
	h := hold{id: req.ID, owner: req.Owner, ref: req.Ref, counts: once(req.Mode), tokens: l.tokens.next(req), unwatched: req.Unwatched}
	switch {
	case req.Lease > 0 && l.lease.fixed:
		h.leaseEnd = l.lease.until
	case req.Lease > 0:
		h.leaseEnd = machine.TrustedUntil(l.now, req.Lease)
	case req.MaxHold > 0:
		h.maxEnd = l.now + req.MaxHold
	}
	h.noteMinimum(req, l.now, false)
	if l.holds.len() == 0 {
		l.lease.atRisk = false // this holder has not been warned
	}
	l.holds.add(h)
	l.answer(req.Ref, machine.Answer{
		Kind: machine.Granted, HoldID: req.ID, Count: 1, Until: l.holdUntil(h), Bound: h.end(), FirstRef: h.ref, Tokens: h.tokens,
		HandedOff: handedOff, Transferred: l.lease.transferred,
	})
	l.lease.transferred, l.lease.lingering = false, false
	if l.ownersMayRepeat && req.Owner != 0 {
		// The other requests of this owner would wait for its own hold: they are re-entries now.
		for _, again := range l.queue.RemoveOwner(uint64(req.Owner)) {
			l.reenter(h, again)
		}
		l.ownersMayRepeat = l.queue.Len() > 0
	}
}
