package lock

import (
	"time"
)

// givenUp takes note of a command that may still arrive.
func (l *Lock) noteUnanswered(o *op) {
	if o.term != 0 && o.term == l.lease.term && (l.lease.unackedTTL == 0 || o.lease < l.lease.unackedTTL) {
		l.lease.unackedTTL = o.lease
	}
	switch o.kind {
	case opAcquire, opGrant, opCount:
		mode := Shared
		if o.counts.exclusive > 0 {
			mode = Exclusive
		}
		if o.term != 0 && o.term == l.lease.term {
			l.lease.lateMode[mode] = true
		}
	}
}

// modeMayChange reports whether a late command might give the lease the other mode: as a
// reader it would let others in beside a writer, as a writer it would end a read hold.
func (l *Lock) modeMayChange(m Mode) bool { return l.lease.lateMode[Shared-m] }

// mayBeCutShort reports whether a late command might cut short a lease of that length: then
// the term must not be used for it.
func (l *Lock) mayBeCutShort(lease time.Duration) bool {
	return l.lease.unackedTTL != 0 && l.lease.unackedTTL < lease
}

// extend takes note that o has set the TTL. A fixed lease is never shortened.
func (l *Lock) extend(o op) {
	l.lease.renewAt = o.sentAt + l.cfg.RenewAfter(l.now-o.sentAt)
	l.lease.atRisk = false
	if l.lease.fixed && o.kind == opRenew {
		return // its end stays
	}
	if until := o.sentAt + o.lease - Margin(o.lease); until > l.lease.until {
		l.lease.until, l.lease.length = until, o.lease
	}
}

// fresh reports whether enough is left of the lease to give it to another holder as it is.
func (l *Lock) hasTimeLeft() bool {
	return l.lease.until-l.now > min(l.lease.length, l.cfg.Watchdog)/3
}

// holdUntil is how long a hold is good for if nothing is renewed.
func (l *Lock) holdUntil(own hold) Instant {
	if own.until != 0 {
		return min(own.until, l.lease.until)
	}
	return l.lease.until
}

// longestTTL is until when a key of this lease may be in Redis, whatever arrives late.
func (l *Lock) longestTTL() Instant { return l.now + l.maxTTL() }

// maxTTL is for how long from now that is.
func (l *Lock) maxTTL() time.Duration {
	return max(l.cfg.Watchdog, l.lease.length, l.lease.longest, l.order.longest())
}
