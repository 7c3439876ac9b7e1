package core_test

import "github.com/lockkeeper-go/lockkeeper/core"

// The rules that hold in every world, whatever goes wrong in it.

// granted checks a grant: one holder at a time, in the order of arrival.
func (p *process) granted(r *request, a core.Answer) {
	w := p.w
	if a.Until <= w.now {
		w.violated("%s: %v is granted until %v, which is over", p.uuid, r, a.Until)
	}
	if a.HoldID != r.id {
		h := p.hold
		if h == nil || h.id != a.HoldID || h.ticket.Owner == 0 || h.ticket.Owner != r.ticket.Owner {
			w.violated("%s: %v has re-entered hold %d, but the holder is %v", p.uuid, r, a.HoldID, h)
		}
		if a.Count < 2 {
			w.violated("%s: %v has re-entered, but its count is %d", p.uuid, r, a.Count)
		}
		h.count = a.Count
		return
	}
	if p.hold != nil {
		w.violated("%s: %v is granted while %v is not over", p.uuid, r, p.hold)
	}
	if a.Count != 1 {
		w.violated("%s: %v is granted with count %d", p.uuid, r, a.Count)
	}
	for _, other := range p.requests {
		if other.ticket != nil && other.id < r.id && (other.ticket.Deadline == 0 || other.ticket.Deadline > w.now) {
			w.violated("%s: %v is granted before %v", p.uuid, r, other)
		}
	}
	if p.hold, r.count = r, 1; r.ticket.Lease > 0 {
		r.limit = a.Until + core.Margin(r.ticket.Lease)
	} else if r.ticket.MaxHold > 0 {
		r.limit = w.now + r.ticket.MaxHold
	}
	p.grants++
	p.planned(r)
}

// refused checks that nobody is refused for a reason that does not concern him.
func (p *process) refused(r *request, a core.Answer) {
	fits := true
	switch a.Reason {
	case core.Held:
		fits = r.ticket.Try
	case core.TimedOut:
		fits = r.ticket.Deadline != 0
	case core.Closed:
		fits = p.closed
	case core.Rejected:
		fits = p.w.faults.rejected
	case core.Lost, core.MaxHold:
		fits = r.ticket.Owner != 0
	}
	if !fits {
		p.w.violated("%s: %v is refused because of %v", p.uuid, r, a.Reason)
	}
}

// freed checks that a hold was released or lost, but never both.
func (p *process) freed(r *request, a core.Answer) {
	if p.lost[r.hold] {
		p.w.violated("%s: %v is answered as if its hold had not been lost", p.uuid, r)
	}
	if h := p.hold; h != nil && h.id == r.hold {
		if a.Count == 0 {
			p.w.violated("%s: %v is answered before the hold is over", p.uuid, r)
		}
		h.count = a.Count
	}
}

// told checks a notice of loss: once, and only to the present holder.
func (p *process) told(h *request, a core.Answer) {
	p.w.logf("%s: hold %d is lost: %v, %s", p.uuid, a.HoldID, a.Reason, a.Detail)
	if p.hold != h || h.id != a.HoldID || h.lost {
		p.w.violated("%s: %v is told of the loss of hold %d, but the holder is %v", p.uuid, h, a.HoldID, p.hold)
	}
	if a.Reason == 0 || a.Detail == "" {
		p.w.violated("%s: %v is lost without a reason", p.uuid, h)
	}
	f := p.w.faults
	robbed := f.robbed || f.crash
	ailing := f.slow || f.lost || f.late || f.errors || f.rejected || f.frozen || f.paused || f.sleepy
	if (a.Reason == core.Gone || a.Reason == core.Taken) && !robbed || a.Reason == core.Expired && h.ticket.Lease == 0 && !ailing {
		p.w.violated("%s: %v is lost because of %v", p.uuid, h, a.Reason)
	}
	h.lost, p.lost[h.id] = true, true
}

func (p *process) warned(h *request, a core.Answer) {
	p.w.logf("%s: hold %d is at risk: %s", p.uuid, a.HoldID, a.Detail)
	if p.hold != h || h.id != a.HoldID {
		p.w.violated("%s: %v is warned, but the holder is %v", p.uuid, h, p.hold)
	}
}

func (p *process) over(h *request) {
	p.w.logf("%s: hold %d is over", p.uuid, h.id)
	if p.hold != h || h.over {
		p.w.violated("%s: %v is over, but the holder is %v", p.uuid, h, p.hold)
	}
	h.over, p.hold = true, nil
	p.overAt[h.id] = p.w.now
}

// checkSend checks a command: the numbers never come again, and only releases
// concern a term that is over.
func (p *process) checkSend(c core.Command) {
	w := p.w
	if c.Seq <= p.lastSeq {
		w.violated("%s: command %d comes after command %d", p.uuid, c.Seq, p.lastSeq)
	}
	p.lastSeq = c.Seq
	if c.Deadline <= w.now || c.Lease <= 0 {
		w.violated("%s: %s is due at %v", p.uuid, describe(c), c.Deadline)
	}
	switch c.Kind {
	case core.Acquire, core.Renew, core.Yield:
		// What the event sent before it ended a term is still under way.
		if c.Term == 0 || c.Term != p.term() && c.Term != p.termBefore {
			w.violated("%s: %s is sent in term %d", p.uuid, describe(c), p.term())
		}
	case core.Release:
		if c.Term == 0 || c.Count > 0 && c.Term != p.term() && c.Term != p.termBefore {
			w.violated("%s: %s is sent in term %d", p.uuid, describe(c), p.term())
		}
	}
}

// checkAfterEvent compares the lock with what its clients have been told.
func (p *process) checkAfterEvent() {
	w := p.w
	s := p.lock.Snapshot()
	if s.HeldHere != (p.hold != nil) {
		w.violated("%s: held here is %v, but the holder is %v", p.uuid, s.HeldHere, p.hold)
	}
	if s.HeldHere != (s.Count > 0) {
		w.violated("%s: held here is %v, but %d times", p.uuid, s.HeldHere, s.Count)
	}
	if s.HeldHere && s.Until <= w.now {
		w.violated("%s: the hold should have ended at %v", p.uuid, s.Until)
	}
	p.checkLimit(s)
	holder, id, pending := everyone(&p.lock)
	if p.hold != nil && (holder != p.hold || id != p.hold.id) {
		w.violated("%s: everyone's holder is %v, not %v", p.uuid, holder, p.hold)
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
		p.checkWait(r)
	}
}

// checkLimit checks that nothing prolongs a hold that is not to be renewed, except a
// re-entry that asks for a longer lease.
func (p *process) checkLimit(s core.Snapshot) {
	h := p.hold
	if h == nil || h.limit == 0 {
		return
	}
	for _, r := range p.requests {
		if r.ticket != nil && r.ticket.Owner == h.ticket.Owner && r.ticket.Lease > 0 && h.ticket.Lease > 0 {
			h.limit = 0
			return
		}
	}
	if s.Until > h.limit {
		p.w.violated("%s: %v may last until %v at most, but it lasts until %v", p.uuid, h, h.limit, s.Until)
	}
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
	case p.hold != nil && (r.ticket.Owner == 0 || r.ticket.Owner != p.hold.ticket.Owner):
		w.violated("%s: %v only wants to try, but waits while %v holds the lock", p.uuid, r, p.hold)
	case w.now > since+4*call:
		w.violated("%s: %v only wants to try, but waits for %v", p.uuid, r, w.now-since)
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

// check looks at all processes at once: who trusts a lease must have it.
func (w *world) check() {
	w.redis.expire()
	var trusting *process
	for _, p := range w.processes {
		s := p.lock.Snapshot()
		if p.dead || !s.HeldHere || w.now >= s.Until {
			continue
		}
		owner := field(p.uuid, p.term())
		if w.redis.owner != owner {
			robbed, ok := w.redis.broken[owner]
			if !ok || s.Until > robbed+w.longer {
				w.violated("%s trusts %s until %v, but the key is %q's", p.uuid, owner, s.Until, w.redis.owner)
			}
			continue
		}
		delete(w.redis.broken, owner)
		if w.redis.expiresAt < s.Until {
			w.violated("%s trusts %s until %v, but the key expires at %v", p.uuid, owner, s.Until, w.redis.expiresAt)
		}
		if trusting != nil {
			w.violated("both %s and %s trust their leases", trusting.uuid, p.uuid)
		}
		trusting = p
		w.checkCount(p, s)
	}
}

// checkCount compares the count in Redis with the holder's while nothing is under way.
func (w *world) checkCount(p *process, s core.Snapshot) {
	term := p.term()
	for _, other := range p.underWay {
		if other == term {
			return
		}
	}
	if !p.stained[term] && s.Count != w.redis.count {
		w.violated("%s holds %d times, but the count in Redis is %d", p.uuid, s.Count, w.redis.count)
	}
}
