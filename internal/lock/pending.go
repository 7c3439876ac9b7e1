package lock

import (
	"fmt"
	"slices"
	"time"
)

// nextPending carries out the next change that holders have asked for; false if there is none.
func (l *Lock) nextPending() bool {
	for len(l.pendingCounts) > 0 {
		c := l.pendingCounts[0]
		if c.request != nil && l.prolongs(c.request) && l.renewal.inFlight {
			return false
		}
		l.pendingCounts = l.pendingCounts[1:]
		own := l.holds.byID(c.hold)
		switch {
		case c.request != nil:
			if l.reentered(own, c) {
				return true
			}
		case own.in(c.mode) == 0:
			l.answer(c.ref, Answer{Kind: NotFreed, HoldID: own.id, Reason: NotHeld, Detail: "the lock is not held in this mode"})
		case own.total() > 1:
			l.setCounts(own, c, -1)
			return true
		default:
			l.endHold(own, c.ref)
			return true
		}
	}
	if l.lease.counts != l.wanted(&l.holds) {
		// A change that was withdrawn half way, or a share that ended: set it right.
		l.start(op{kind: opCount, counts: l.wanted(&l.holds)})
		return true
	}
	return false
}

// reentered begins a re-entry; false if it is refused, since the hold has changed
// after it was asked for.
func (l *Lock) reentered(own hold, c countChange) bool {
	if reason, detail := l.reentryRefusal(&own, c.request); reason != 0 {
		l.refuse(c.request.Ref, reason, detail)
		return false
	}
	if l.prolongs(c.request) {
		if l.mayBeCutShort(c.request.Lease) {
			l.refuse(c.request.Ref, Unavailable, "the hold cannot be prolonged: a command without a reply may still shorten its lease")
			return false
		}
		l.dropRenewal()
	}
	l.setCounts(own, c, 1)
	return true
}

// dropPending ends what was asked for a hold that is over: its re-entries wait for a hold
// of their own, its releases have nothing to release.
func (l *Lock) dropPending(own hold) {
	for _, c := range l.takePending(func(c countChange) bool { return c.hold == own.id }) {
		switch {
		case c.request != nil && l.closing:
			l.refuse(c.request.Ref, Closed, "the system is closing")
		case c.request != nil && c.request.Try && (l.queue.len() > 0 || l.holds.len() > 0 && !l.mayJoin(c.request)):
			l.answer(c.request.Ref, Answer{Kind: NotGranted, Reason: Held, TTL: -1, Detail: l.heldBy()})
		case c.request != nil:
			l.queue.insert(c.request)
			l.repeats = true // its owner may have asked for more than one
		default:
			l.answer(c.ref, Answer{Kind: NotFreed, Reason: NotHeld, Detail: "the hold was released before"})
		}
	}
	l.failEnsures(own.id, NotHeld, "the hold was released")
}

// reenter has a holder hold the lock once more, unless that cannot be.
func (l *Lock) reenter(own hold, req *Request) {
	if reason, detail := l.reentryRefusal(&own, req); reason != 0 {
		l.refuse(req.Ref, reason, detail)
		return
	}
	l.pendingCounts = append(l.pendingCounts, countChange{hold: own.id, mode: req.Mode, request: req})
}

// unfit says why a request cannot re-enter a hold; the reason is 0 if it can. A re-entry
// joins the hold as it is: what it asks for besides must be true of the hold, or refused.
func (l *Lock) reentryRefusal(own *hold, req *Request) (Reason, string) {
	switch {
	case req.NoReentry:
		return Reentry, "this owner holds the lock already, and asked not to re-enter it"
	case own.wouldUpgrade(req.Mode):
		return Reentry, "this owner holds the lock for reading, and a read hold cannot become a write hold: release it first"
	case req.Lease > 0 && !own.fixed():
		return Invalid, fmt.Sprintf("a re-entry cannot have a fixed lease of %v, since the watchdog keeps the hold that it joins: leave the lease out", req.Lease)
	case req.Lease > 0 && l.now+req.Lease-Margin(req.Lease) < own.until:
		return Invalid, fmt.Sprintf("a re-entry cannot have a lease of %v, since the hold that it joins lasts longer: ask for at least %v, or leave the lease out",
			req.Lease, leaseFor(own.until-l.now))
	case req.MaxHold > 0 && (own.until == 0 || own.until > l.now+req.MaxHold):
		return Invalid, fmt.Sprintf("a re-entry cannot have a max hold of %v, since the hold that it joins may last longer: leave it out, or bound the first hold", req.MaxHold)
	}
	return 0, ""
}

// leaseFor is the shortest lease, in whole milliseconds, that is good for d.
func leaseFor(d time.Duration) time.Duration {
	return ((d+Margin(0))*100/99 + time.Millisecond).Truncate(time.Millisecond)
}

// prolongs reports whether a re-entry makes the lease in Redis longer. Nothing that may
// still set what is left of it must be under way then: it could arrive afterwards.
func (l *Lock) prolongs(req *Request) bool { return req.Lease > 0 && l.lease.fixed }

// Nothing that Redis refuses holds up a release. A user that may not write, a reply that is
// lost again and again, a full memory: each may concern a count, and not the release.

// overtake makes way for releases while the change under way waits for another try: a
// hold that is given back altogether ends at once, and a release is tried before what
// asks for more. False if there is nothing to make way for.
func (l *Lock) overtake() bool {
	if l.main.kind != opCount || l.main.tries == 0 || l.main.inFlight {
		return false
	}
	holds := l.holds
	for own := range holds.all() {
		if l.allReleased(own) {
			l.postponeCount()
			l.endHold(own, l.takeReleases(own))
			return true
		}
	}
	for _, c := range l.pendingCounts {
		if c.request == nil && l.main.ref == nil {
			l.postponeCount()
			return l.nextPending()
		}
	}
	return false
}

// givenBack reports whether releases of all that is held as that hold are waiting. Its
// re-entries that are waiting have not been granted, and do not count.
func (l *Lock) allReleased(own hold) bool {
	rest := own.counts
	if o := l.main; o.hold == own.id && o.ref != nil {
		rest = rest.plus(o.mode, -1)
	}
	for _, c := range l.pendingCounts {
		if c.request == nil && c.hold == own.id && rest.in(c.mode) > 0 {
			rest = rest.plus(c.mode, -1)
		}
	}
	return rest.total() == 0
}

// stepAside puts the change under way back among those that wait: a release first, and
// what asks for more last. Whether it was carried out may not be known.
func (l *Lock) postponeCount() {
	switch o := l.main; {
	case o.joins():
		l.queue.insert(o.request) // it has had no share yet
	case o.request != nil:
		l.pendingCounts = append(l.pendingCounts, countChange{hold: o.hold, mode: o.mode, request: o.request})
	case o.ref != nil:
		l.pendingCounts = append([]countChange{{hold: o.hold, mode: o.mode, ref: o.ref, until: o.until}}, l.pendingCounts...)
	}
	l.dropCount()
}

// takeReleases takes out the waiting releases that end a hold, and gives their requests.
func (l *Lock) takeReleases(own hold) any {
	rest := own.counts
	ends := func(c countChange) bool {
		if c.request != nil || c.hold != own.id || rest.in(c.mode) == 0 {
			return false
		}
		rest = rest.plus(c.mode, -1)
		return true
	}
	var all refs
	for _, c := range l.takePending(ends) {
		if c.ref != nil { // else its owner is dead
			all = append(all, c.ref)
		}
	}
	return all
}

// takePending takes out the changes that match.
func (l *Lock) takePending(match func(countChange) bool) (taken []countChange) {
	first := slices.IndexFunc(l.pendingCounts, match)
	if first < 0 {
		return nil
	}
	taken = append(taken, l.pendingCounts[first])
	stay := slices.Clone(l.pendingCounts[:first])
	for _, c := range l.pendingCounts[first+1:] {
		if match(c) {
			taken = append(taken, c)
		} else {
			stay = append(stay, c)
		}
	}
	l.pendingCounts = stay
	return taken
}
