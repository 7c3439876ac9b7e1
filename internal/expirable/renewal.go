package expirable

import (
	"cmp"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// renew makes the watchdog renew its permits if they are due. If they are more than machine.MaxTogether, the permits
// with the oldest leases are first.
func (s *Semaphore) renew() {
	if s.renewAt == 0 || s.now < s.renewAt {
		return
	}
	watched := s.watched()
	if len(watched) == 0 {
		s.renewAt, s.renewal, s.earlier = 0, op{}, nil
		return
	}
	first := fits(len(watched), func(i int) int { return watched[i].permits.N })
	s.renewal = op{kind: Renew, Sending: machine.Sending{Tries: s.renewal.Tries}, holds: watched[:first]}
	s.send(&s.renewal)
}

func (s *Semaphore) renewCommand(o *op, c *Command) {
	c.Lease = s.cfg.Watchdog
	until := o.holds[0].until
	for _, h := range o.holds {
		c.IDs = h.permits.AppendTo(c.IDs)
		until, c.Latest = min(until, h.until), max(c.Latest, h.until)
	}
	c.Deadline = s.now + s.cfg.Timeout(max(until-s.now, 0)) // another try must fit into what is left
}

// watched returns the holds that the watchdog renews now, in the order of their renewal.
func (s *Semaphore) watched() (all []*hold) {
	for _, h := range s.holds {
		if !h.fixed && !s.extends(h) {
			all = append(all, h)
		}
	}
	slices.SortStableFunc(all, func(a, b *hold) int { return cmp.Compare(a.sentAt, b.sentAt) })
	return all
}

// renewBy makes the watchdog renew its permits at that time, or earlier.
func (s *Semaphore) renewBy(at Instant) {
	if s.renewAt == 0 || at < s.renewAt {
		s.renewAt = at
	}
}

// renewalOverdue makes another renewal due, because the reply to the last renewal is late. The process may be too busy
// to read replies, and the next reply would be late as well, so a late reply still counts.
func (s *Semaphore) renewalOverdue(f machine.Failure) {
	o := op{seq: s.renewal.seq, sentAt: s.renewal.sentAt, holds: s.renewal.holds}
	s.earlier = machine.AddUnanswered(s.earlier, o)
	s.notRenewed(f)
}

// renewalLate handles the late reply to a renewal. A failure changes nothing, since the renewal has been sent again.
func (s *Semaphore) renewalLate(i int, r Result) {
	o := s.earlier[i]
	if r.Err != nil {
		return
	}
	s.earlier = s.earlier[i+1:] // the earlier ones have set no later expiry
	if !s.renewal.InFlight {
		s.renewal = op{}
	}
	s.applyRenewal(o, r)
}

// renewReplied handles the reply to the renewal under way.
func (s *Semaphore) renewReplied(r Result) {
	o := s.renewal
	if r.Err != nil {
		s.notRenewed(r.Failure)
		return
	}
	s.renewal, s.earlier = op{}, nil
	s.applyRenewal(o, r)
}

// applyRenewal applies the outcome of a renewal that Redis carried out. The permits are trusted from when it was sent.
func (s *Semaphore) applyRenewal(o op, r Result) {
	s.renewAt, s.atRisk, s.riskErr = 0, false, ""
	valid := map[machine.PermitID]bool{}
	for _, h := range o.holds {
		valid[h.permits.First] = !slices.Contains(r.Valid[:h.permits.N], false)
		r.Valid = r.Valid[h.permits.N:]
	}
	holds := slices.Clone(s.holds)
	var lost []*hold
	for i, h := range holds {
		switch renewed, was := valid[h.permits.First]; {
		case !was:
		case !renewed:
			lost = append(lost, h)
		case h.sentAt >= o.sentAt: // a later command has set the expiry
		default:
			again := *h
			again.sentAt, again.until = o.sentAt, machine.TrustedUntil(o.sentAt, s.cfg.Watchdog)
			holds[i] = &again
			s.nextEnd.Add(again.end())
			s.effects.Add(machine.Effect{Kind: machine.Renewed, Ref: h.ref, Answer: machine.Answer{HoldID: h.id, Until: again.end()}})
		}
	}
	s.holds = holds
	for _, h := range lost {
		s.endVanished(h)
	}
	for _, h := range s.watched() {
		s.renewBy(h.sentAt + s.cfg.RenewAfter(s.now-o.sentAt))
	}
}

// notRenewed tries again soon. The holders are warned, once.
func (s *Semaphore) notRenewed(f machine.Failure) {
	if f.Unsure {
		s.renewalUnanswered()
	}
	s.retryLater(&s.renewal, f)
	s.renewAt = s.renewal.Due
	warn := false
	if s.riskErr, warn = s.atRisk.Failed(&f, s.riskErr); !warn {
		return
	}
	for _, h := range s.watched() {
		s.effects.Add(machine.Effect{Kind: machine.NotifyAtRisk, Ref: h.ref, Answer: machine.Answer{
			HoldID: h.id, Until: h.end(), Detail: "the permit could not be renewed: " + s.riskErr,
		}})
	}
}

// renewalUnanswered notes that the renewal under way has no reply, and may be carried out late.
func (s *Semaphore) renewalUnanswered() {
	sent := map[machine.PermitID]bool{}
	for _, h := range s.renewal.holds {
		sent[h.permits.First] = true
	}
	s.holds = slices.Clone(s.holds)
	for i, h := range s.holds {
		if sent[h.permits.First] {
			again := *h
			again.unanswered.Add(s.cfg.Watchdog)
			s.holds[i] = &again
		}
	}
}
