package core_test

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// The rules about the state of a lock after each event.

// checkAfterEvent compares the lock with what its clients have been told.
func (p *process) checkAfterEvent() {
	w := p.w
	s := p.lock.Snapshot()
	if s.HeldHere != (len(p.holds) > 0) {
		w.violated("%s: held here is %v, but the holders are %v", p.uuid, s.HeldHere, p.holds)
	}
	if s.HeldHere != (s.Count > 0) {
		w.violated("%s: held here is %v, but %d times", p.uuid, s.HeldHere, s.Count)
	}
	if s.HeldHere && s.Until <= w.now {
		w.violated("%s: the hold should have ended at %v", p.uuid, s.Until)
	}
	p.checkEnds(s)
	p.checkEveryone()
	p.checkTidy()
	for _, r := range p.requests {
		p.checkWait(r)
	}
	for _, h := range p.holds {
		p.checkGivenBack(h)
	}
}

// checkTidy checks that a process that has nothing left to do holds nothing in Redis, except
// what a late command has taken, or what Redis does not let it release.
func (p *process) checkTidy() {
	f := p.w.faults
	if len(p.underWay) > 0 || f.rejected || !p.lock.Idle() {
		return
	}
	p.w.redis.expire()
	for i := range p.w.redis.Parts() {
		for _, h := range p.w.redis.Part(i).Holders() {
			if h.Client == p.client && !p.late[h.Term] {
				p.w.violated("%s has come to rest, but in Redis %s holds the lock", p.uuid, h.Owner)
			}
		}
	}
}

// checkEveryone checks that the lock knows whom it owes something.
func (p *process) checkEveryone() {
	w := p.w
	holders, pending := p.lock.Everyone()
	if len(holders) != len(p.holds) {
		w.violated("%s: everyone's holders are %v, not %v", p.uuid, holders, p.holds)
	}
	for i, h := range p.holds {
		if holders[i].Ref != h || holders[i].ID != h.id {
			w.violated("%s: everyone's holders are %v, not %v", p.uuid, holders, p.holds)
		}
	}
	seen := map[*request]bool{}
	for _, ref := range pending {
		r := ref.(*request)
		if seen[r] {
			w.violated("%s: everyone has %v twice", p.uuid, r)
		}
		seen[r] = true
		if r.answered {
			w.violated("%s: everyone has %v, which is answered", p.uuid, r)
		}
	}
	for _, r := range p.requests {
		if !seen[r] {
			w.violated("%s: nobody will answer %v", p.uuid, r)
		}
	}
}

// checkEnds checks that a hold is over at its own end, whatever the lease is worth by then.
func (p *process) checkEnds(s core.Snapshot) {
	for i, h := range p.holds {
		h.good = max(h.good, p.goodUntil(h))
		switch {
		case h.bound == 0:
		case i == 0 && s.Until > h.bound:
			p.w.violated("%s: %v may last until %v at most, but it lasts until %v", p.uuid, h, h.bound, s.Until)
		case p.w.now >= h.bound:
			p.w.violated("%s: %v was to last until %v at most, and is not over", p.uuid, h, h.bound)
		}
	}
}

// goodUntil is how long a hold is good for as far as its holder can see, which is told of
// the hold's own end and looks at the lease.
func (p *process) goodUntil(h *request) core.Instant {
	if h.bound != 0 {
		return min(h.bound, p.lock.LeaseUntil())
	}
	return p.lock.LeaseUntil()
}

// checkWait checks that nobody waits longer than he must. Who only wants to try waits
// neither for a holder nor for a Redis that does not answer.
func (p *process) checkWait(r *request) {
	w := p.w
	since := max(r.at, p.pausedUntil)
	call := w.cfg.CallTimeout + sec
	switch {
	case r.ticket == nil:
		if over, ok := p.overAt[r.hold]; ok && w.now > max(over, since)+w.longer+call {
			w.violated("%s: %v is still not answered, but its hold was over at %v", p.uuid, r, over)
		}
	case !r.ticket.Try:
	case len(p.holds) > 0 && !p.reenters(r) && (r.ticket.Mode == core.Exclusive || p.first().counts.exclusive > 0):
		w.violated("%s: %v only wants to try, but waits while %v hold the lock", p.uuid, r, p.holds)
	case w.now > since+4*call:
		w.violated("%s: %v only wants to try, but waits for %v", p.uuid, r, w.now-since)
	}
}

// checkGivenBack checks that a hold that is given back altogether is soon over, whatever
// Redis refuses meanwhile, and that a release that leaves something is soon answered.
func (p *process) checkGivenBack(h *request) {
	w := p.w
	rest, since := h.counts, max(p.pausedUntil, 0)
	var waiting *request
	for _, r := range p.open() {
		if r.what == "release" && r.hold == h.id && rest.in(r.mode) > 0 {
			rest, since, waiting = plus(rest, r.mode, -1), max(since, r.at), r
		}
	}
	if waiting == nil {
		return
	}
	// What is under way may succeed, late; and others may come first.
	if most := time.Duration(2+len(p.requests)) * (w.cfg.CallTimeout + sec); w.now > since+most {
		w.violated("%s: %v still waits, for %v: what is left of %v is %v", p.uuid, waiting, w.now-since, h, rest)
	}
}

// checkTick checks that a Tick has ended whatever is over, and is not wanted again at once.
func (p *process) checkTick() {
	w := p.w
	if wake, ok := p.lock.NextWake(); ok && wake <= w.now {
		w.violated("%s: a Tick at %v wants the next one at %v", p.uuid, w.now, wake)
	}
	for _, r := range p.requests {
		if r.ticket != nil && r.ticket.Deadline != 0 && r.ticket.Deadline <= w.now {
			w.violated("%s: %v still waits, though it wanted to until %v at most", p.uuid, r, r.ticket.Deadline)
		}
	}
}
