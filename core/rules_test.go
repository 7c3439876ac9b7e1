package core_test

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// The rules that hold in every world, whatever goes wrong in it.

// granted checks a grant: one holder at a time, or several that share; in the order of arrival.
func (p *process) granted(r *request, a core.Answer) {
	w := p.w
	if a.Until <= w.now {
		w.violated("%s: %v is granted until %v, which is over", p.uuid, r, a.Until)
	}
	if a.HoldID != r.id {
		p.reentered(r, a)
		return
	}
	for _, h := range p.holds {
		if r.ticket.Mode == core.Exclusive || h.counts.exclusive > 0 {
			w.violated("%s: %v is granted while %v is not over", p.uuid, r, h)
		}
	}
	if a.Count != 1 {
		w.violated("%s: %v is granted with count %d", p.uuid, r, a.Count)
	}
	for _, other := range p.requests {
		if other.ticket != nil && other.id < r.id && p.inTurn(other) {
			w.violated("%s: %v is granted before %v", p.uuid, r, other)
		}
	}
	if w.kind.Queued && p.term() != r.term {
		w.violated("%s: %v is granted in term %d, but it waited as %d", p.uuid, r, p.term(), r.term)
	}
	p.checkTokens(r, a)
	p.holds = append(p.holds[:len(p.holds):len(p.holds)], r)
	r.counts = plus(counts{}, r.ticket.Mode, 1)
	r.tokens = a.Tokens
	p.bind(r, r, a)
	p.grants++
	p.planned(r)
}

// bind takes note of the end of a hold, as an answer to a request gives it: a lease and a
// max hold that were asked for are had, and nothing else moves it.
func (p *process) bind(h, r *request, a core.Answer) {
	w, before := p.w, h.bound
	h.bound = a.Bound
	most := max(r.ticket.Lease, r.ticket.MaxHold)
	switch {
	case most > 0 && a.Bound == 0:
		w.violated("%s: %v is not bound", p.uuid, r)
	case most > 0 && a.Bound > w.now+most:
		w.violated("%s: %v is bound until %v, but it wanted to be until %v at most", p.uuid, r, a.Bound, w.now+most)
	case h != r && a.Bound != before && (r.ticket.Lease == 0 || a.Bound < before):
		w.violated("%s: %v has moved the end of %v from %v to %v", p.uuid, r, h, before, a.Bound)
	}
}

// inTurn reports whether a request waits where its time of arrival belongs. In Redis's queue, an owner's second
// request gets its place when it turns out not to be a re-entry, and who only tries has none.
func (p *process) inTurn(r *request) bool {
	if r.ticket.Deadline != 0 && r.ticket.Deadline <= p.w.now || p.reenters(r) {
		return false
	}
	return !p.w.kind.Queued || r.ticket.Owner == 0 && !r.ticket.Try && !p.w.redis.forgotten[p.owner(r.term)]
}

// reenters reports whether a request is, or may be, the re-entry of a holder.
func (p *process) reenters(r *request) bool {
	for _, h := range p.holds {
		if h.ticket.Owner != 0 && h.ticket.Owner == r.ticket.Owner {
			return true
		}
	}
	return false
}

func plus(c counts, m core.Mode, n int) counts {
	if m == core.Shared {
		c.shared += n
	} else {
		c.exclusive += n
	}
	return c
}

func (c counts) in(m core.Mode) int {
	if m == core.Shared {
		return c.shared
	}
	return c.exclusive
}

// reentered checks that a request has become one more hold of its owner.
func (p *process) reentered(r *request, a core.Answer) {
	w, h := p.w, p.holding(a.HoldID)
	if h == nil || h.ticket.Owner == 0 || h.ticket.Owner != r.ticket.Owner {
		w.violated("%s: %v has re-entered hold %d, but the holders are %v", p.uuid, r, a.HoldID, p.holds)
	}
	if r.ticket.Once {
		w.violated("%s: %v has re-entered, and did not want to", p.uuid, r)
	}
	p.bind(h, r, a)
	for _, other := range p.holds {
		if r.ticket.Mode == core.Exclusive && other != h {
			w.violated("%s: %v has become exclusive beside %v", p.uuid, r, other)
		}
	}
	if h.counts = plus(h.counts, r.ticket.Mode, 1); a.Count != h.counts.in(r.ticket.Mode) {
		w.violated("%s: %v has re-entered with count %d, but it holds %v", p.uuid, r, a.Count, h.counts)
	}
	if h.tokens == nil && r.ticket.Fenced {
		p.checkTokens(r, a) // of a plain hold, this re-entry is the first to draw
		h.tokens = a.Tokens
	}
	if !slices.Equal(a.Tokens, h.tokens) {
		w.violated("%s: %v has re-entered with tokens %v instead of %v", p.uuid, r, a.Tokens, h.tokens)
	}
}

// checkTokens checks that tokens grow from hold to hold, unless the lock was robbed.
func (p *process) checkTokens(r *request, a core.Answer) {
	w := p.w
	if want := w.kind.Tokens; !r.ticket.Fenced && len(a.Tokens) > 0 || r.ticket.Fenced && len(a.Tokens) != want {
		w.violated("%s: %v is granted with tokens %v", p.uuid, r, a.Tokens)
	}
	if len(a.Tokens) == 0 || w.redis.forgetful {
		return
	}
	token := a.Tokens[0]
	if w.tokens[token] {
		w.violated("%s: %v is granted with token %d, which another hold has had", p.uuid, r, token)
	}
	if w.tokens[token] = true; token > w.token {
		w.token = token
	} else if _, _, has := w.redis.has(p.owner(p.term())); has {
		w.violated("%s: %v is granted with token %d after token %d", p.uuid, r, token, w.token)
	}
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
	case core.Invalid:
		fits = r.ticket.Owner != 0 && (r.ticket.Lease > 0 || r.ticket.MaxHold > 0)
	case core.Reentry:
		fits = r.ticket.Owner != 0 && (r.ticket.Once || r.ticket.Mode == core.Exclusive && p.w.kind.Shares)
	case core.Lost, core.MaxHold:
		fits = r.ticket.Owner != 0
	}
	if !fits {
		p.w.violated("%s: %v is refused because of %v", p.uuid, r, a.Reason)
	}
}

// gaveBack takes note of a release that leaves something of a hold, and is not confirmed: it
// counts all the same.
func (p *process) gaveBack(r *request, a core.Answer) {
	h := p.holding(r.hold)
	if h == nil || h.dead || a.Reason != core.Unavailable && a.Reason != core.Rejected {
		return
	}
	p.owing = p.term()
	if h.counts = plus(h.counts, r.mode, -1); h.counts.total() == 0 {
		p.w.violated("%s: %v is answered before the hold is over", p.uuid, r)
	}
}

// freed checks that a hold was released or lost, but never both.
func (p *process) freed(r *request, a core.Answer) {
	if p.lost[r.hold] {
		p.w.violated("%s: %v is answered as if its hold had not been lost", p.uuid, r)
	}
	h := p.holding(r.hold)
	if o := p.owner(p.termBefore); h == nil && !a.HandedOn && !p.late[o.Term] {
		if held, _, has := p.w.redis.has(o); has {
			p.w.violated("%s: %v is answered, but in Redis %s holds %v", p.uuid, r, o, held)
		}
	}
	if h != nil && !h.dead {
		if h.counts = plus(h.counts, r.mode, -1); a.Count == 0 {
			p.w.violated("%s: %v is answered before the hold is over", p.uuid, r)
		}
		if a.Count != h.counts.total() {
			p.w.violated("%s: %v has left count %d, but it holds %v", p.uuid, r, a.Count, h.counts)
		}
	}
}

// told checks a notice of loss: once, and only to the present holder.
func (p *process) told(h *request, a core.Answer) {
	w := p.w
	w.logf("%s: hold %d is lost: %v, %s", p.uuid, a.HoldID, a.Reason, a.Detail)
	if p.holding(a.HoldID) != h || h.lost {
		w.violated("%s: %v is told of the loss of hold %d, but the holders are %v", p.uuid, h, a.HoldID, p.holds)
	}
	if a.Reason == 0 || a.Detail == "" {
		w.violated("%s: %v is lost without a reason", p.uuid, h)
	}
	f := w.faults
	robbed := f.robbed || f.crash
	ailing := f.slow || f.lost || f.late || f.errors || f.rejected || f.frozen || f.paused || f.sleepy
	if (a.Reason == core.Gone || a.Reason == core.Taken) && !robbed || a.Reason == core.Expired && h.ticket.Lease == 0 && !ailing {
		w.violated("%s: %v is lost because of %v", p.uuid, h, a.Reason)
	}
	if w.now < h.good && (a.Reason == core.Expired || a.Reason == core.MaxHold) {
		w.violated("%s: %v is over, and was said to be good until %v", p.uuid, h, h.good)
	}
	h.lost, p.lost[h.id] = true, true
}

func (p *process) warned(h *request, a core.Answer) {
	p.w.logf("%s: hold %d is at risk: %s", p.uuid, a.HoldID, a.Detail)
	if p.holding(a.HoldID) != h {
		p.w.violated("%s: %v is warned, but the holders are %v", p.uuid, h, p.holds)
	}
}

func (p *process) over(h *request) {
	p.w.logf("%s: hold %d is over", p.uuid, h.id)
	if p.holding(h.id) != h || h.over {
		p.w.violated("%s: %v is over, but the holders are %v", p.uuid, h, p.holds)
	}
	h.over = true
	p.holds = slices.DeleteFunc(slices.Clone(p.holds), func(each *request) bool { return each == h })
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
	case core.Acquire, core.Renew, core.Yield, core.Look:
		// What the event sent before it ended a term is still under way.
		if c.Term == 0 || c.Term != p.term() && c.Term != p.termBefore {
			w.violated("%s: %s is sent in term %d", p.uuid, describe(c), p.term())
		}
	case core.Release:
		if c.Term == 0 || c.Count+c.Shared > 0 && c.Term != p.term() && c.Term != p.termBefore {
			w.violated("%s: %s is sent in term %d", p.uuid, describe(c), p.term())
		}
	}
}
