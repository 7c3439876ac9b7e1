package lock

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// nextPending starts the next change that holders have asked for, and reports whether there was one.
func (l *Lock) nextPending() bool {
	for len(l.pendingCounts) > 0 {
		c := l.pendingCounts[0]
		if c.request != nil && l.prolongs(c.request) && l.renewal.InFlight {
			return false
		}
		l.pendingCounts = l.pendingCounts[1:]
		h := l.holds.byID(c.hold)
		switch {
		case c.request != nil:
			if l.startReentry(h, c) {
				return true
			}
		case h.in(c.mode) == 0:
			l.answer(c.ref, machine.Answer{
				Kind: machine.NotFreed, HoldID: h.id, Reason: machine.NotHeld,
				Detail: "the lock is not held in this mode",
			})
		case h.total() > 1:
			l.setCounts(h, c, -1)
			return true
		default:
			l.endHold(h, c.ref)
			return true
		}
	}
	if l.lease.counts != l.wanted(&l.holds) {
		// A change was withdrawn under way, or a share has ended: correct the counts.
		l.start(op{kind: opCount, counts: l.wanted(&l.holds)})
		return true
	}
	return false
}

// startReentry starts a re-entry, and reports whether it did. A re-entry is refused if the hold has changed since the
// request.
func (l *Lock) startReentry(h hold, c countChange) bool {
	if reason, detail := l.reentryRefusal(&h, c.request); reason != 0 {
		l.refuse(c.request.Ref, reason, detail)
		return false
	}
	if l.prolongs(c.request) {
		if l.lease.unanswered.MayCutShort(c.request.Lease) {
			l.refuse(c.request.Ref, machine.Unavailable, "the hold cannot be prolonged: an unanswered command may still shorten its lease")
			return false
		}
		l.dropRenewal()
	}
	l.setCounts(h, c, 1)
	return true
}

// dropPending ends the requests for a hold that is over: its re-entries wait for a hold of their own, and its releases
// are refused.
func (l *Lock) dropPending(h hold) {
	for _, c := range l.takePending(func(c countChange) bool { return c.hold == h.id }) {
		switch {
		case c.request != nil && l.closing:
			l.refuse(c.request.Ref, machine.Closed, machine.Closing)
		case c.request != nil && c.request.Try && (l.queue.Len() > 0 || l.holds.len() > 0 && !l.mayJoin(c.request)):
			l.refuse(c.request.Ref, machine.Held, l.heldBy())
		case c.request != nil:
			l.queue.Push(c.request)
			l.ownersMayRepeat = true // its owner may have asked for more than one
		default:
			l.effects.Refuse(c.ref, machine.NotFreed, machine.NotHeld, "the hold was released before")
		}
	}
	l.failLeaseRequests(h.is, machine.NotHeld, "the hold was released")
}

// reenter queues a re-entry of a hold, or refuses it.
func (l *Lock) reenter(h hold, req *waiter) {
	if reason, detail := l.reentryRefusal(&h, req); reason != 0 {
		l.refuse(req.Ref, reason, detail)
		return
	}
	l.pendingCounts = append(l.pendingCounts, countChange{hold: h.id, mode: req.Mode, request: req})
}

// reentryRefusal returns why a request cannot re-enter a hold; the reason is 0 if it can. A re-entry joins the hold as
// it is, so options that the hold does not fulfil are refused.
func (l *Lock) reentryRefusal(h *hold, req *waiter) (machine.Reason, string) {
	switch {
	case req.NoReentry:
		return machine.Reentry, "this owner holds the lock already, and asked not to re-enter it"
	case h.wouldUpgrade(req.Mode):
		return machine.Reentry, "this owner holds the lock for reading, and a read hold cannot become a write hold: release it first"
	case req.Lease > 0 && !h.fixed():
		return machine.Invalid, fmt.Sprintf(
			"a re-entry cannot have a fixed lease of %v, since the watchdog keeps the hold that it joins: leave the lease out",
			req.Lease)
	case req.Lease > 0 && machine.TrustedUntil(l.now, req.Lease) < h.leaseEnd:
		return machine.Invalid, fmt.Sprintf(
			"a re-entry cannot have a lease of %v, since the hold that it joins lasts longer: ask for at least %v, or leave the lease out",
			req.Lease, leaseFor(h.leaseEnd-l.now))
	case req.AtLeast > 0 && h.fixed() && l.now+req.AtLeast > max(h.leaseEnd, l.now+req.Lease):
		return machine.Invalid, fmt.Sprintf(
			"a re-entry cannot have a minimum time of %v, since the fixed lease of the hold that it joins ends before: leave it out",
			req.AtLeast)
	case req.MaxHold > 0 && (h.end() == 0 || h.end() > l.now+req.MaxHold):
		return machine.Invalid, fmt.Sprintf(
			"a re-entry cannot have a max hold of %v, since the hold that it joins may last longer: leave it out, or bound the first hold",
			req.MaxHold)
	}
	return 0, ""
}

// leaseFor returns the shortest lease, in whole milliseconds, that is valid for d.
func leaseFor(d time.Duration) time.Duration {
	return ((d+machine.Margin(0))*100/99 + time.Millisecond).Truncate(time.Millisecond)
}

// prolongs reports whether a re-entry makes the lease in Redis longer. Then no command that sets the rest of the
// present lease may be under way, since it could arrive later and shorten the new lease.
func (l *Lock) prolongs(req *waiter) bool { return req.Lease > 0 && l.lease.fixed }

// A change of a count that Redis refuses does not delay a release, which Redis may accept nevertheless: for instance if
// its memory is full, if the user lacks a right that only the count needs, or if the reply to that script is lost again
// and again.

// overtake lets releases overtake the change under way while that waits for another try: a hold that is released
// completely ends at once, and a release is tried before a re-entry. It reports whether a release has overtaken.
func (l *Lock) overtake() bool {
	if l.main.kind != opCount || l.main.Tries == 0 || l.main.InFlight {
		return false
	}
	holds := l.holds
	for h := range holds.all() {
		if l.allReleased(h) {
			l.postponeCount()
			l.endHold(h, l.takeReleases(h))
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

// allReleased reports whether the waiting releases add up to the whole hold. Its waiting re-entries have not been
// granted, and do not count.
func (l *Lock) allReleased(h hold) bool {
	rest := h.counts
	if o := l.main; o.hold == h.id && o.ref != nil {
		rest = rest.plus(o.mode, -1)
	}
	for _, c := range l.pendingCounts {
		if c.request == nil && c.hold == h.id && rest.in(c.mode) > 0 {
			rest = rest.plus(c.mode, -1)
		}
	}
	return rest.total() == 0
}

// postponeCount moves the change under way back to those that wait: a release to the front, and a re-entry to the end.
// It may have been carried out.
func (l *Lock) postponeCount() {
	switch o := l.main; {
	case o.joins():
		l.queue.Push(o.request) // the reader has not joined yet
	case o.request != nil:
		l.pendingCounts = append(l.pendingCounts, countChange{hold: o.hold, mode: o.mode, request: o.request})
	case o.ref != nil:
		l.pendingCounts = append([]countChange{{hold: o.hold, mode: o.mode, ref: o.ref, until: o.until}}, l.pendingCounts...)
	}
	l.dropCount()
}

// takeReleases takes out the waiting releases that end a hold, and returns their requests.
func (l *Lock) takeReleases(h hold) any {
	rest := h.counts
	ends := func(c countChange) bool {
		if c.request != nil || c.hold != h.id || rest.in(c.mode) == 0 {
			return false
		}
		rest = rest.plus(c.mode, -1)
		return true
	}
	var all machine.Refs
	for _, c := range l.takePending(ends) {
		all.Add(c.ref) // nil if its owner is dead
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
