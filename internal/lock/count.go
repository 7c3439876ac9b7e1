package lock

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// wanted returns the counts that Redis should have. A writer does not become a reader while an unanswered command might
// make it a writer again, because that command would end the read hold.
func (l *Lock) wanted(h *holds) counts {
	c := h.wanted()
	if c.exclusive == 0 && l.lease.mode == machine.Exclusive && l.lease.modeMayChange(machine.Shared) {
		c.exclusive = 1
	}
	return c
}

// setCounts sends the counts after a change.
func (l *Lock) setCounts(h hold, c countChange, by int) {
	next := l.holds
	h.counts = h.plus(c.mode, by)
	next.update(h)
	o := op{kind: opCount, counts: l.wanted(&next), mode: c.mode, hold: c.hold, request: c.request, ref: c.ref, until: c.until}
	if c.request != nil && h.tokens == nil && !l.tokens.has(c.request) {
		o.draws = 1 // the hold was taken without a token, and its re-entry asks for one
	}
	l.start(o)
}

func (l *Lock) countCommand(o *op, c *Command) {
	o.lease = l.countLease(o.request, o.joins())
	switch {
	case o.joins(): // counts stay: unlike Renew, Acquire would take the lock anew if the readers had lost it
		c.Kind, c.Immediate = Renew, true
	case o.request != nil:
		c.Kind, c.Tokens, c.Above = Acquire, o.draws, l.tokens.highest
	default:
		c.Kind = Release
	}
}

// countLease returns the TTL to set when the counts change: the watchdog's, or the rest of a fixed lease, unless a
// re-entry asks for more or a reader joins. It never shortens a trusted lease: a lease that was fixed before may be
// longer than the watchdog's.
func (l *Lock) countLease(req *waiter, joins bool) time.Duration {
	left := l.lease.left(l.now)
	if !l.lease.fixed || joins {
		return max(left, l.cfg.Watchdog)
	}
	if req != nil {
		left = max(left, req.Lease)
	}
	return left
}

func (l *Lock) countReplied(o op, r Result) {
	switch r.Outcome {
	case Done:
		l.main = op{}
		l.lease.counts = o.counts
		if o.counts.exclusive == 0 {
			l.lease.mode = machine.Shared // a writer has become a reader
		}
		l.wait.LastErr = ""
		if l.tokens.keep(o.draws, r.Tokens); o.draws > 0 && l.tokens.regressed {
			o.draws = 1
			l.start(o)
			return
		}
		if o.joins() {
			l.finishJoin(o)
			return
		}
		if o.request != nil { // a release is not confirmed by replicas
			l.lease.noteTTL(&o, l.now, l.cfg)
		}
		l.applyCount(o)
	case Absent, Refused:
		l.loseByResult(r)
	case Failed:
		l.countFailed(o, r)
	}
}

// countFailed sends the counts again later, unless their request is to be answered now.
func (l *Lock) countFailed(o op, r Result) {
	l.retryLater(&l.main, r)
	reason, detail := r.Why()
	l.wait.LastErr = detail
	for _, req := range l.withdrawPending(func(req *waiter) bool { return req.Try }) {
		l.refuse(req.Ref, reason, detail)
	}
	l.refuseTries(reason, detail)
	switch {
	case o.request == nil && o.ref == nil:
		l.main.counts = l.wanted(&l.holds) // the request was withdrawn
		return
	case o.request != nil && r.Transient && !o.request.Try:
		return
	case o.ref != nil && r.Transient && (l.now < o.until || o.Tries == 0):
		return // the reply may be lost and have taken all of the time: try once more
	case o.request != nil:
		l.refuse(o.request.Ref, reason, detail)
	default:
		// The release counts already. Redis gets the new count, or the release of the last hold, as soon as it accepts
		// one.
		if h := l.holds.byID(o.hold); !h.ownerDied { // a dead owner's hold has the counts of its last release already
			h.counts = h.plus(o.mode, -1)
			l.holds.update(h)
		}
		l.answer(o.ref, machine.Answer{Kind: machine.NotFreed, HoldID: o.hold, Reason: reason,
			Detail: "the hold counts as released, but Redis has not confirmed its new count, which is still being set: " + detail})
	}
	l.dropCount()
}

// applyCount applies to the holds a change of the counts that Redis has confirmed.
func (l *Lock) applyCount(o op) {
	h := l.holds.byID(o.hold)
	switch {
	case o.request != nil:
		h.counts = h.plus(o.mode, 1)
		if o.request.Lease > 0 {
			h.leaseEnd = max(h.leaseEnd, machine.TrustedUntil(o.sentAt, o.request.Lease))
			l.notifyBound(h)
		}
		h.noteMinimum(o.request, l.now, true)
		if h.tokens == nil {
			h.tokens = l.tokens.next(o.request)
		}
		l.holds.update(h)
		l.answer(o.request.Ref, machine.Answer{
			Kind: machine.Granted, HoldID: h.id, Count: h.in(o.mode), Until: l.holdUntil(h), Bound: h.end(), FirstRef: h.ref, Tokens: h.tokens,
		})
	case o.ref != nil:
		left := o.counts
		if !h.ownerDied {
			h.counts = h.plus(o.mode, -1)
			l.holds.update(h)
			left = h.counts
		}
		l.answer(o.ref, machine.Answer{Kind: machine.Freed, HoldID: h.id, Count: left.total()})
	}
}

// dropCount abandons a change of the counts whose request has been answered.
func (l *Lock) dropCount() {
	if l.main.Unsure || l.main.InFlight {
		l.lease.counts = unknown // nextPending corrects them
		l.noteUnanswered(&l.main)
	}
	l.main = op{}
}

// refuseCount refuses the request for the change of the counts under way.
func (l *Lock) refuseCount(reason machine.Reason, detail string) {
	if o := l.main; o.request != nil {
		l.refuse(o.request.Ref, reason, detail)
	} else {
		l.answer(o.ref, machine.Answer{Kind: machine.NotFreed, HoldID: o.hold, Reason: machine.Lost, Detail: detail})
	}
}
