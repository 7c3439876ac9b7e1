package lock

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// An extension gives a hold another lease, which begins now: a fixed lease, or the lease of the watchdog. It may be
// longer or shorter than what is left, and Redis may carry it out late. So it is not under way together with another
// command that sets the TTL, and is sent once. If it may shorten the TTL, the trust in the lease is shortened before
// the command is sent, and stays shortened even if the command fails. An extension lengthens the trust only when Redis
// has confirmed it.
//
// If readers share a lease, the watchdog renews it for all of them, and the fixed lease of a single reader is only kept
// in memory.

// extension is a request for another lease of a hold.
type extension struct {
	hold uint64
	// lease is the length of the lease; 0 for the lease of the watchdog.
	lease time.Duration
	ref   any
	// by is the time at which the request is refused if its command has not been sent.
	by machine.Instant
}

// Extend gives a hold a fixed lease that begins now, or for 0 the lease of the watchdog. It is the hold of the owner
// or, if the owner is 0 or has none, the hold with that id.
func (l *Lock) Extend(now machine.Instant, id uint64, owner machine.Owner, lease time.Duration, ref any) {
	if h := l.holds.byOwner(owner); h.id != 0 { // as for Release
		id = h.id
	}
	defer l.begin(now).settle()
	h := l.holds.byID(id)
	if h.id == 0 {
		l.answerOver(id, ref)
		return
	}
	if detail := h.cannotHave(lease, l.now); detail != "" {
		l.effects.Refuse(ref, machine.NotDone, machine.Invalid, detail)
		return
	}
	l.extensions = append(l.extensions, extension{hold: h.id, lease: lease, ref: ref, by: l.now + l.cfg.CallTimeout})
}

// cannotHave says why a hold cannot have that lease from now on; "" if it can.
func (h *hold) cannotHave(lease time.Duration, now machine.Instant) string {
	if lease > 0 && machine.TrustedUntil(now, lease) < h.keepUntil {
		return fmt.Sprintf("a lease of %v is too short, since %v are left of the minimum time of the hold: ask for at least %v",
			lease, h.keepUntil-now, leaseFor(h.keepUntil-now))
	}
	return machine.CannotExtend(lease, now, h.maxEnd, h.unwatched)
}

// nextExtension starts an extension, and reports whether it has done something. The extension of a hold that is being
// released waits until the release refuses it.
func (l *Lock) nextExtension() bool {
	if len(l.extensions) == 0 || l.renewal.InFlight {
		return false
	}
	e := l.extensions[0]
	h := l.holds.byID(e.hold)
	if l.allReleased(h) {
		return false
	}
	l.extensions = slices.Clip(l.extensions[1:])
	reason, detail := machine.Invalid, h.cannotHave(e.lease, l.now)
	o := op{
		kind: opExtend, counts: l.lease.counts, mode: l.lease.mode, hold: e.hold, ref: e.ref, until: e.by,
		lease: max(l.lease.left(l.now), l.cfg.Watchdog), particulars: particulars{extends: e.lease},
	}
	switch alone := l.holds.len() == 1; {
	case alone && e.lease == 0:
		o.lease = l.cfg.Watchdog
	case alone && !l.lease.unanswered.MayCutShort(e.lease):
		o.lease, o.fixed = e.lease, true
	}
	if l.lease.unanswered.MayCutShort(o.lease) {
		reason, detail = machine.Unavailable, "the hold cannot be prolonged: an unanswered command may still shorten its lease"
	}
	if detail != "" {
		l.effects.Refuse(e.ref, machine.NotDone, reason, detail)
		return true
	}
	l.dropRenewal()
	l.shorten(h, &o)
	l.start(o)
	return true
}

// shorten ends the trust in the lease and in the hold no later than the extension does.
func (l *Lock) shorten(h hold, o *op) {
	before := l.holdUntil(h)
	if until := machine.TrustedUntil(l.now, o.lease); until < l.lease.until {
		l.lease.until, l.lease.length = until, o.lease
		l.lease.fixed = l.lease.fixed && o.fixed // else the watchdog renews the lease until the end of the hold
	}
	if end := machine.TrustedUntil(l.now, o.extends); o.extends > 0 && end < before {
		h.leaseEnd = end
		l.holds.update(h)
	}
	if l.holdUntil(h) < before {
		l.notifyBound(h)
	}
}

func (l *Lock) extendCommand(_ *op, c *Command) {
	l.suspected = false
	c.Kind, c.Immediate = Renew, true
}

func (l *Lock) extendTimeout(o *op) time.Duration {
	timeout := min(l.cfg.CallTimeout, o.until-l.now)
	if l.lease.fixed {
		return timeout
	}
	return min(timeout, l.renewTimeout(o)) // the watchdog renews the lease only afterwards
}

func (l *Lock) extendReplied(o op, r Result) {
	h := l.holds.byID(o.hold) // its id is 0 if the hold is over, and others share the lease
	switch r.Outcome {
	case Absent:
		l.loseByResult(r)
		return
	case Failed:
		l.main = op{}
		reason, detail := r.Why()
		if r.Unsure {
			l.noteUnanswered(&o)
			detail = machine.MaybeDone + detail
		}
		if r.Unsure && o.fixed && !l.lease.fixed && o.lease < l.cfg.Watchdog {
			// The command may still set a TTL that is shorter than the watchdog's, so the watchdog must not renew the
			// lease.
			l.lease.fixed, h.leaseEnd = true, l.holdUntil(h)
			l.holds.update(h)
			l.notifyBound(h)
		}
		l.effects.Refuse(o.ref, machine.NotDone, reason, detail)
		l.wait.LastErr = detail
	default:
		l.main = op{}
		if h.id != 0 {
			l.lease.fixed = o.fixed
			if h.leaseEnd = 0; o.extends > 0 {
				h.leaseEnd = machine.TrustedUntil(o.sentAt, o.extends)
			}
			l.holds.update(h)
			l.notifyBound(h)
		}
		l.noteRenewal(o)
		l.answer(o.ref, machine.Answer{Kind: machine.Extended, HoldID: h.id, Until: l.holdUntil(h)})
	}
	l.ensureAgain()
}

// ensureAgain renews the lease for the requests that have awaited it, and refuses those that ask for more than the hold
// has now.
func (l *Lock) ensureAgain() {
	l.ensures = failIf(l, l.ensures, func(e ensure) bool {
		h := l.holds.byID(e.hold)
		return h.end() != 0 && h.end() < e.until
	}, machine.Invalid, "the hold ends before that: its lease was changed meanwhile")
	if l.ensures != nil && l.renewal.kind == opNone {
		l.startRenewal(true)
	}
}

// notifyBound notifies the holder that the end of its hold has changed.
func (l *Lock) notifyBound(h hold) {
	l.effects.Add(machine.Effect{Kind: machine.Bounded, Ref: h.ref, Answer: machine.Answer{HoldID: h.id, Bound: h.end()}})
}

// failLeaseRequests refuses the requests about the leases of some holds: for a renewal, and for another lease.
func (l *Lock) failLeaseRequests(concerns func(hold uint64) bool, reason machine.Reason, detail string) {
	l.ensures = failIf(l, l.ensures, func(e ensure) bool { return concerns(e.hold) }, reason, detail)
	l.extensions = failIf(l, l.extensions, func(e extension) bool { return concerns(e.hold) }, reason, detail)
	if l.main.kind == opExtend && concerns(l.main.hold) {
		l.effects.Refuse(l.main.ref, machine.NotDone, reason, detail)
		l.main.ref = nil
	}
}

// expireLeaseRequests refuses the requests about leases that have waited for too long. Those that came first are first.
func (l *Lock) expireLeaseRequests() {
	if len(l.ensures) > 0 && l.now >= l.ensures[0].by {
		l.ensures = failIf(l, l.ensures, func(e ensure) bool { return l.now >= e.by }, machine.Unavailable,
			"Redis has not renewed the lease in time")
	}
	if len(l.extensions) > 0 && l.now >= l.extensions[0].by {
		l.extensions = failIf(l, l.extensions, func(e extension) bool { return l.now >= e.by }, machine.Unavailable,
			"Redis has not answered an earlier command in time, and the lease was not changed")
	}
}
