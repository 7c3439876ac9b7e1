package core

import (
	"fmt"
	"time"
)

// reenter has a holder hold the lock once more, unless that cannot be.
func (l *Lock) reenter(own hold, t *Ticket) {
	if reason, detail := l.unfit(&own, t); reason != 0 {
		l.refuse(t.Ref, reason, detail)
		return
	}
	l.changes = append(l.changes, change{hold: own.id, mode: t.Mode, ticket: t})
}

// unfit says why a request cannot re-enter a hold; the reason is 0 if it can. A re-entry
// joins the hold as it is: what it asks for besides must be true of the hold, or refused.
func (l *Lock) unfit(own *hold, t *Ticket) (Reason, string) {
	switch {
	case t.Once:
		return Reentry, "this owner holds the lock already, and asked not to re-enter it"
	case own.mustNotWrite(t.Mode):
		return Reentry, "this owner holds the lock for reading, and a read hold cannot become a write hold: release it first"
	case t.Lease > 0 && !own.fixed():
		return Invalid, fmt.Sprintf("a re-entry cannot have a fixed lease of %v, since the watchdog keeps the hold that it joins: leave the lease out", t.Lease)
	case t.Lease > 0 && l.now+t.Lease-Margin(t.Lease) < own.until:
		return Invalid, fmt.Sprintf("a re-entry cannot have a lease of %v, since the hold that it joins lasts longer: ask for at least %v, or leave the lease out",
			t.Lease, leaseFor(own.until-l.now))
	case t.MaxHold > 0 && (own.until == 0 || own.until > l.now+t.MaxHold):
		return Invalid, fmt.Sprintf("a re-entry cannot have a max hold of %v, since the hold that it joins may last longer: leave it out, or bound the first hold", t.MaxHold)
	}
	return 0, ""
}

// leaseFor is the shortest lease, in whole milliseconds, that is good for d.
func leaseFor(d time.Duration) time.Duration {
	return ((d+Margin(0))*100/99 + time.Millisecond).Truncate(time.Millisecond)
}

// prolongs reports whether a re-entry makes the lease in Redis longer. Nothing that may
// still set what is left of it must be under way then: it could arrive afterwards.
func (l *Lock) prolongs(t *Ticket) bool { return t.Lease > 0 && l.lease.fixed }
