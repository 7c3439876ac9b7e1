package expirable

import (
	"cmp"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// An extension gives a permit another lease, which begins now: a fixed lease, or the lease of the watchdog. It is not
// under way together with a renewal of the permit, and is sent once. If it may bring the expiry forward, the trust in
// the permit is shortened before it is sent, and stays so whatever becomes of it. It lengthens the trust only when
// Redis has confirmed it.

// addExtension adds an extension, which waits until it can be sent.
func (s *Semaphore) addExtension(e extension) {
	e.by = s.now + s.cfg.CallTimeout
	s.extensions = append(slices.Clip(s.extensions), &e)
	s.nextEnd.Add(e.by)
}

// extend sends the extensions that can be sent. While a renewal is under way, it looks at each only once: thousands may
// wait for the reply, and each event calls it.
func (s *Semaphore) extend() {
	if !s.renewal.InFlight {
		s.looked = 0
	}
	for _, e := range s.extensions[s.looked:] {
		if e.sets != 0 {
			continue // it was sent
		}
		h := s.holdByID(e.hold)
		renewing := s.renewal.InFlight && slices.ContainsFunc(s.renewal.holds, func(other *hold) bool { return other.permits == h.permits })
		if !renewing && !s.extends(h) {
			s.sendExtension(e, h)
		}
	}
	s.looked = len(s.extensions)
}

func (s *Semaphore) sendExtension(e *extension, h *hold) {
	sent := *e
	sent.sets, sent.fixed, sent.sentAt = cmp.Or(e.lease, s.cfg.Watchdog), e.lease > 0, s.now
	if h.unanswered.MayCutShort(sent.sets) { // the watchdog may keep the permit nevertheless
		sent.sets, sent.fixed = s.cfg.Watchdog, false
	}
	switch detail := machine.CannotExtend(e.lease, s.now, h.maxEnd, h.unwatched); {
	case detail != "":
		s.answerExtension(e, machine.Answer{Kind: machine.NotDone, Reason: machine.Invalid, Detail: detail})
		return
	case h.unanswered.MayCutShort(sent.sets):
		s.answerExtension(e, machine.Answer{
			Kind: machine.NotDone, Reason: machine.Unavailable,
			Detail: "the permit cannot be prolonged: an unanswered command may still shorten its lease",
		})
		return
	}
	timeout := e.by - s.now
	if !h.fixed { // the watchdog renews the permit only afterwards
		timeout = min(timeout, s.cfg.Timeout(max(h.until-s.now, 0)))
	}
	s.shorten(h, &sent)
	s.seq++
	sent.seq, sent.by = s.seq, s.now+timeout+machine.ReplyGrace
	s.extensions = slices.Clone(s.extensions)
	s.extensions[slices.Index(s.extensions, e)] = &sent
	s.nextEnd.Add(sent.by)
	c := Command{Kind: Renew, Seq: s.seq, IDs: h.permits.AppendTo(nil), Lease: sent.sets, Deadline: s.now + timeout}
	c.Latest = c.Deadline
	s.effects.Add(machine.Effect{Kind: machine.Send, Ref: &c})
}

// shorten ends the trust in a permit no later than an extension does.
func (s *Semaphore) shorten(h *hold, e *extension) {
	again := *h
	again.sentAt = s.now // replies to earlier renewals do not count from now on
	again.longest = max(h.takenUntil(), s.now+e.sets)
	if until := machine.TrustedUntil(s.now, e.sets); until < h.until {
		again.until = until
		if h.fixed && !e.fixed { // the watchdog renews it until its fixed lease would have ended
			again.fixed, again.leaseEnd = false, h.end()
		}
	}
	if end := machine.TrustedUntil(s.now, e.lease); e.lease > 0 && end < h.end() {
		again.leaseEnd = end
	}
	s.changeLease(h, &again)
}

// changeLease replaces a hold by one with another lease, and notifies the holder of its end.
func (s *Semaphore) changeLease(h, by *hold) {
	s.replace(h, by)
	if by.end() != h.end() {
		a := machine.Answer{HoldID: h.id, Until: by.end()}
		s.effects.Add(machine.Effect{Kind: machine.Renewed, Ref: h.ref, Answer: a})
		s.effects.Add(machine.Effect{Kind: machine.Bounded, Ref: h.ref, Answer: a})
	}
}

// extensionReplied handles the reply to an extension, and reports whether the reply is to one.
func (s *Semaphore) extensionReplied(seq uint64, r Result) bool {
	i := slices.IndexFunc(s.extensions, func(e *extension) bool { return e.sets != 0 && e.seq == seq })
	if i < 0 {
		return false
	}
	e := s.extensions[i]
	h := s.holdByID(e.hold)
	again, renewAt := *h, s.now
	switch {
	case r.Err != nil:
		reason, detail := r.Why()
		if r.Unsure {
			detail = machine.MaybeDone + detail
			again.unanswered.Add(e.sets)
		}
		if again.unanswered.MayCutShort(s.cfg.Watchdog) {
			again.fixed = true // what the watchdog would renew may be cut short
		}
		s.changeLease(h, &again)
		s.answerExtension(e, machine.Answer{Kind: machine.NotDone, Reason: reason, Detail: detail})
	case slices.Contains(r.Valid, false):
		s.endVanished(h) // which answers the request
		return true
	default:
		again.fixed, again.until = e.fixed, machine.TrustedUntil(e.sentAt, e.sets)
		if e.ensures == 0 {
			again.leaseEnd = 0
		}
		renewAt = e.sentAt + s.cfg.RenewAfter(s.now-e.sentAt)
		if e.lease > 0 && !e.fixed {
			again.leaseEnd = machine.TrustedUntil(e.sentAt, e.lease)
		}
		s.changeLease(h, &again)
		s.answerExtension(e, machine.Answer{Kind: machine.Extended, HoldID: h.id, Until: again.end()})
	}
	if !again.fixed {
		s.renewBy(renewAt)
	}
	return true
}

// extensionsOverdue ends the extensions that have waited, or whose replies were awaited, for too long.
func (s *Semaphore) extensionsOverdue() {
	for _, e := range s.extensions {
		switch {
		case s.now < e.by:
		case e.sets != 0:
			s.extensionReplied(e.seq, Result{Failure: machine.NoReply})
		default:
			s.answerExtension(e, machine.Answer{
				Kind: machine.NotDone, Reason: machine.Unavailable,
				Detail: "Redis has not answered an earlier command in time, and the lease was not changed",
			})
		}
	}
}
