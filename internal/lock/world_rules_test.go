package lock_test

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// The rules for each process. They hold in every world, with any fault.

// checkGranted checks a grant: one holder at a time, or several that share; in the order of arrival.
func (w *world) checkGranted(i int, r request, a machine.Answer) {
	p := &w.processes[i]
	alone := func(h hold) bool { return r.req.Mode == machine.Exclusive || h.counts.exclusive > 0 }
	before := func(other request) bool { return other.what == acquire && other.id < r.id && w.inTurn(i, other) }
	switch {
	case a.Until <= w.now && !p.stalled: // a stalled actor delivers it late
		w.violated("p%d: %v is granted until %v, which is over", i, r, a.Until)
	case a.HoldID != r.id:
		w.checkReentered(i, r, a)
		return
	case a.Count != 1:
		w.violated("p%d: %v is granted with count %d", i, r, a.Count)
	case slices.ContainsFunc(p.holds, alone):
		w.violated("p%d: %v is granted while others hold the lock: %v", i, r, p.holds)
	case slices.ContainsFunc(p.requests, before):
		w.violated("p%d: %v is granted before earlier requests: %v", i, r, p.requests)
	case w.features.Fair && p.lock.Summary().Term != r.term:
		w.violated("p%d: %v is granted in term %d, but it waited as %d", i, r, p.lock.Summary().Term, r.term)
	}
	w.checkTokens(i, r, a)
	if w.now < w.keptUntil && !w.any(deleted, forced, restart) {
		w.violated("p%d: %v is granted at %v, although the minimum time of another lasts until %v", i, r, w.now, w.keptUntil)
	}
	h := hold{request: r, counts: counts{}.plus(r.req.Mode, 1), tokens: a.Tokens}
	if r.req.AtLeast > 0 && !p.stalled {
		h.keepUntil = w.now + r.req.AtLeast
	}
	w.setBound(i, &h, r, a)
	p.holds = append(p.holds, h)
	p.grants++
	w.planRelease(i, r)
}

// setBound records the end of a hold from an answer to a request. A lease and a max hold in the request bound the
// hold, and other requests do not change its end.
func (w *world) setBound(i int, h *hold, r request, a machine.Answer) {
	before := h.bound
	h.bound = a.Bound
	most := max(r.req.Lease, r.req.MaxHold)
	switch {
	case most > 0 && a.Bound == 0:
		w.violated("p%d: %v is not bound", i, r)
	case most > 0 && a.Bound > w.now+most:
		w.violated("p%d: %v is bound until %v, but it asked for %v at most", i, r, a.Bound, w.now+most)
	case h.id != r.id && a.Bound != before && (r.req.Lease == 0 || a.Bound < before):
		w.violated("p%d: %v has moved the end of %v from %v to %v", i, r, h, before, a.Bound)
	}
}

// inTurn reports whether the order of arrival applies to a request. In Redis's queue, an owner's second request
// gets its entry when it turns out not to be a re-entry, and a request that only tries has none.
func (w *world) inTurn(i int, r request) bool {
	if r.req.Deadline != 0 && r.req.Deadline <= w.now || w.processes[i].reenters(r) {
		return false
	}
	return !w.features.Fair || r.req.Owner == 0 && !r.req.Try && !w.factOf(w.owner(i, r.term)).exempt
}

// reenters reports whether the owner of a request is a holder.
func (p *process) reenters(r request) bool {
	return r.req.Owner != 0 && slices.ContainsFunc(p.holds, func(h hold) bool { return h.req.Owner == r.req.Owner })
}

// checkReentered checks that a request has re-entered a hold of its owner.
func (w *world) checkReentered(i int, r request, a machine.Answer) {
	p, h := &w.processes[i], w.holdByID(i, a.HoldID)
	switch {
	case h == nil || h.req.Owner == 0 || h.req.Owner != r.req.Owner:
		w.violated("p%d: %v has re-entered hold %d, but the holders are %v", i, r, a.HoldID, p.holds)
	case r.req.NoReentry:
		w.violated("p%d: %v has re-entered with NoReentry", i, r)
	case r.req.Mode == machine.Exclusive && len(p.holds) > 1:
		w.violated("p%d: %v has become exclusive together with others: %v", i, r, p.holds)
	}
	w.setBound(i, h, r, a)
	if r.req.AtLeast > 0 {
		h.keepUntil = max(h.keepUntil, w.now+r.req.AtLeast)
	}
	if h.tokens == nil && r.req.Fenced {
		w.checkTokens(i, r, a) // the hold had no token before
		h.tokens = a.Tokens
	}
	if h.counts = h.counts.plus(r.req.Mode, 1); a.Count != h.counts.in(r.req.Mode) || !slices.Equal(a.Tokens, h.tokens) {
		w.violated("p%d: %v has re-entered with count %d and tokens %v, but the hold has counts %v and tokens %v",
			i, r, a.Count, a.Tokens, h.counts, h.tokens)
	}
}

// checkTokens checks that tokens increase from hold to hold unless a key was lost, and in each process even if
// Redis has lost its counter.
func (w *world) checkTokens(i int, r request, a machine.Answer) {
	want := 0
	if r.req.Fenced {
		want = w.processes[i].features.Tokens
	}
	if len(a.Tokens) != want {
		w.violated("p%d: %v is granted with tokens %v", i, r, a.Tokens)
	}
	if want == 0 {
		return
	}
	p := &w.processes[i]
	for n, had := range p.tokens {
		if a.Tokens[n] <= had {
			w.violated("p%d: %v is granted with tokens %v after %v", i, r, a.Tokens, p.tokens)
		}
	}
	if p.tokens = a.Tokens; w.tokensLost {
		return
	}
	token := a.Tokens[0]
	owner := w.owner(i, w.processes[i].lock.Summary().Term)
	_, _, has := w.heldInRedis(owner)
	if f := w.factOf(owner); f.keyLost && f.late {
		has = false // a late command has taken the key again, with a token of its own
	}
	if slices.Contains(w.tokens, token) || has && slices.Max(append(w.tokens, 0)) > token {
		w.violated("p%d: %v is granted with token %d after tokens %v", i, r, token, w.tokens)
	}
	w.tokens = append(w.tokens, token)
}

// checkRefused checks that the reason of a refusal applies to the request.
func (w *world) checkRefused(i int, r request, a machine.Answer) {
	fits := true
	switch a.Reason {
	case machine.Held:
		fits = r.req.Try
	case machine.TimedOut:
		fits = r.req.Deadline != 0
	case machine.Closed:
		fits = w.processes[i].closed
	case machine.Rejected:
		fits = w.any(rejected)
	case machine.CancelledByRequest:
		fits = w.any(cancels)
	case machine.QueueFull:
		fits = len(w.processes[i].requests) >= w.config.QueueLimit
	case machine.Invalid:
		fits = r.req.Owner != 0 && (r.req.Lease > 0 || r.req.MaxHold > 0 || r.req.AtLeast > 0)
	case machine.Reentry:
		fits = r.req.Owner != 0 && (r.req.NoReentry || r.req.Mode == machine.Exclusive && w.features.Shares)
	case machine.Lost, machine.MaxHold:
		fits = r.req.Owner != 0
	}
	if !fits {
		w.violated("p%d: %v is refused because of %v", i, r, a.Reason)
	}
}

// checkEnsured checks that a hold is ensured for as long as the request asked.
func (w *world) checkEnsured(i int, r request, a machine.Answer) {
	h := w.holdByID(i, r.hold)
	if h == nil || h.lost {
		w.violated("p%d: %v is ensured, but the holders are %v", i, r, w.processes[i].holds)
	}
	if a.Until < r.at+r.d && w.processes[i].pausedUntil <= r.at {
		w.violated("p%d: %v is ensured until %v, but it asked at %v for %v", i, r, a.Until, r.at, r.d)
	}
	h.ensured = max(h.ensured, a.Until)
}

// bounded notes that a hold has another end of its own. Only a request for another lease brings it forward.
func (w *world) bounded(i int, id uint64, a machine.Answer) {
	h := w.holdByID(i, id)
	if h == nil {
		w.violated("p%d: hold %d ends at %v, but the holders are %v", i, id, a.Bound, w.processes[i].holds)
	}
	h.bound = a.Bound
}

// checkExtended checks that a hold has the lease that was asked for, from no earlier than that and no longer than from now.
func (w *world) checkExtended(i int, r request, a machine.Answer) {
	h := w.holdByID(i, a.HoldID)
	if h == nil || h.lost || a.HoldID != r.hold {
		w.violated("p%d: %v is extended, but the holders are %v", i, r, w.processes[i].holds)
	}
	end := r.d - machine.Margin(r.d)
	ends := r.d == 0 && h.bound == 0 || h.bound >= r.at+end && h.bound <= w.now+end || h.req.MaxHold > 0
	if !ends || h.bound != 0 && a.Until > h.bound {
		w.violated("p%d: %v is extended until %v, and ends at %v", i, r, a.Until, h.bound)
	}
}

// checkUnconfirmed counts a partial release that is not confirmed.
func (w *world) checkUnconfirmed(i int, r request, a machine.Answer) {
	h := w.holdByID(i, r.hold)
	if h == nil || h.dead || a.Reason != machine.Unavailable && a.Reason != machine.Rejected {
		return
	}
	w.factFor(w.owner(i, w.processes[i].lock.Summary().Term)).countRefused = true
	if h.counts = h.counts.plus(r.mode, -1); h.counts.total() == 0 {
		w.violated("p%d: %v is answered before the hold is over", i, r)
	}
}

// checkFreed checks that a hold was released or lost, but never both.
func (w *world) checkFreed(i int, r request, a machine.Answer) {
	p := &w.processes[i]
	e, over := p.endOf(r.hold)
	if over && e.lost {
		w.violated("p%d: %v is answered as if its hold had not been lost", i, r)
	}
	if over && e.keepUntil > w.now {
		w.keptUntil = max(w.keptUntil, e.keepUntil)
	}
	h := w.holdByID(i, r.hold)
	if o := w.owner(i, p.before); h == nil && !a.HandedOff && !w.factOf(o).late {
		for k := range w.redis.Parts() {
			if held := w.redis.Part(k).Of(o); held != (redismodel.Counts{}) {
				w.violated("p%d: %v is answered, but in Redis %v holds %v", i, r, o, held)
			}
		}
	}
	if h == nil || h.dead {
		return
	}
	if h.counts = h.counts.plus(r.mode, -1); a.Count == 0 || a.Count != h.counts.total() {
		w.violated("p%d: %v has left count %d, but it holds %v", i, r, a.Count, h.counts)
	}
}

// checkSend checks a command: its number is higher than all before, and only releases are for a term that is over.
func (w *world) checkSend(i int, c lock.Command) {
	p := &w.processes[i]
	if late := c.Deadline <= w.now && !p.stalled; c.Seq <= p.lastSeq || late || c.Lease <= 0 {
		w.violated("p%d: after command %d it sends %+v", i, p.lastSeq, c)
	}
	p.lastSeq = c.Seq
	if c.Kind == lock.Keep {
		w.factFor(w.owner(i, c.Term)).kept = true
	}
	frees := c.Kind == lock.Keep || c.Kind == lock.Release && c.Count+c.Shared == 0 || c.Kind == lock.ForceRelease || c.Kind == lock.SyncQueue
	// The event may have sent a command before it ended the term.
	if present := c.Term == p.lock.Summary().Term || c.Term == p.before; !frees && (c.Term == 0 || !present) ||
		c.Kind == lock.Release && c.Term == 0 {
		w.violated("p%d: %+v is sent in term %d", i, c, p.lock.Summary().Term)
	}
}

// checkForced checks that a forced release has freed only the owners that it names, however late it was. When the
// last reader with a valid lease leaves, readers whose leases are over leave as well.
func (w *world) checkForced(before *redismodel.Server, c lock.Command) {
	for i := range w.redis.Parts() {
		was := before.Part(i)
		for _, h := range was.Holders {
			over := was.Lasts(h.Owner) <= w.now
			if w.redis.Part(i).Of(h.Owner) == (redismodel.Counts{}) && !over && !slices.Contains(c.Owners, w.setup.Name(h.Owner)) {
				w.violated("a forced release of %v has freed %v", c.Owners, h.Owner)
			}
		}
	}
}

// checkProcess compares a lock with the answers and notifications of its clients.
func (w *world) checkProcess(i int) {
	p := &w.processes[i]
	s := p.lock.Snapshot()
	if s.HeldHere != (len(p.holds) > 0) || s.HeldHere != (s.Count > 0) || s.HeldHere && s.Until <= w.now {
		w.violated("p%d: the snapshot is %+v, but the holders are %v", i, s, p.holds)
	}
	for k := range p.holds {
		h := &p.holds[k]
		// The validity that the holder sees: the hold's own end, and the end of the lease.
		good := p.lock.Summary().LeaseUntil
		if h.bound != 0 {
			good = min(good, h.bound)
		}
		if good < h.good && h.shortest == 0 || good < min(h.good, h.shortest) {
			w.violated("p%d: %v was good until %v, and is now until %v", i, h, h.good, good)
		}
		h.good, h.ensured = good, min(h.ensured, good)
		switch {
		case h.bound == 0:
		case k == 0 && s.Until > h.bound:
			w.violated("p%d: %v may last until %v at most, but it lasts until %v", i, h, h.bound, s.Until)
		case w.now >= h.bound:
			w.violated("p%d: %v has lasted longer than %v", i, h, h.bound)
		}
		w.checkReleases(i, *h)
	}
	w.checkOutstanding(i)
	w.checkIdle(i)
	for _, r := range p.requests {
		w.checkWait(i, r)
	}
}

// checkIdle checks that an idle process holds nothing in Redis and has no entry, except what a late command has taken,
// or what Redis does not let it release, or what was transferred to waiters that have left.
func (w *world) checkIdle(i int) {
	p := &w.processes[i]
	if !p.lock.Idle() || w.any(rejected) || w.underWay(i, command, reply) > 0 {
		return
	}
	for k := range w.redis.Parts() {
		for _, h := range w.redis.Part(k).Holders {
			ttl := w.config.TransferTTL()
			transferred := w.features.WaitQueue && w.redis.Part(k).Lasts(h.Owner) <= w.now+ttl+machine.Margin(ttl)
			if h.Client == p.client && !w.factOf(h.Owner).late && !transferred && !h.Kept {
				w.violated("p%d is idle, but in Redis %v holds the lock", i, h.Owner)
			}
		}
		for _, e := range w.redis.Part(k).Entries {
			if o := w.owner(i, e.Term); e.Client == p.client && !w.factOf(o).late {
				w.violated("p%d is idle, but in Redis it has the entry %+v", i, e)
			}
		}
	}
}

// checkOutstanding checks that the lock knows its holders and its requests without an answer.
func (w *world) checkOutstanding(i int) {
	p := &w.processes[i]
	holders, pending := p.lock.Outstanding()
	if !slices.EqualFunc(holders, p.holds, func(a machine.Holder, b hold) bool { return a.Ref == b.ref && a.ID == b.id }) {
		w.violated("p%d: the holders are %v, not %v", i, holders, p.holds)
	}
	for k, one := range pending {
		open := slices.ContainsFunc(p.requests, func(r request) bool { return r.ref == one })
		if slices.Contains(pending[:k], one) || !open && w.counted[death] == 0 {
			w.violated("p%d: %v is pending twice, or is answered already", i, one)
		}
	}
	for _, r := range p.requests {
		if !slices.Contains(pending, any(r.ref)) {
			w.violated("p%d: no answer is pending for %v", i, r)
		}
	}
}

// checkWait checks that a request does not wait for too long. One that only tries waits neither for a holder nor for
// a Redis that does not answer.
func (w *world) checkWait(i int, r request) {
	p := &w.processes[i]
	since := max(r.at, p.pausedUntil)
	call := w.config.CallTimeout + sec
	switch {
	case (r.what == forceRelease || r.what == ensure || r.what == extend) && w.now > since+w.config.TryTime()+200*ms: // a timer may be late
		w.violated("p%d: %v is still not answered after %v", i, r, w.now-since)
	case r.what != acquire:
		if e, over := p.endOf(r.hold); over && r.what == release && w.now > max(e.at, since)+w.longest()+call {
			w.violated("p%d: %v is still not answered, but its hold was over at %v", i, r, e.at)
		}
	case !r.req.Try:
	case len(p.holds) > 0 && !p.reenters(r) && (r.req.Mode == machine.Exclusive || p.holds[0].counts.exclusive > 0):
		w.violated("p%d: %v only tries, but waits while %v hold the lock", i, r, p.holds)
	case w.now > since+4*call:
		w.violated("p%d: %v only tries, but waits for %v", i, r, w.now-since)
	}
}

// checkReleases checks that a hold that is released completely ends soon, even if Redis refuses commands, and that a partial
// release is answered soon.
func (w *world) checkReleases(i int, h hold) {
	p := &w.processes[i]
	rest, since := h.counts, p.pausedUntil
	waiting := false
	for _, r := range p.requests {
		if r.what == release && r.hold == h.id && rest.in(r.mode) > 0 {
			rest, since, waiting = rest.plus(r.mode, -1), max(since, r.at), true
		}
	}
	// The command under way may succeed late, and others may come first.
	if most := time.Duration(2+len(p.requests)) * (w.config.CallTimeout + sec); waiting && w.now > since+most {
		w.violated("p%d: a release of %v has waited for %v: the remaining counts are %v", i, h, w.now-since, rest)
	}
}

// checkTick checks that a Tick has ended all that is over, and that the next one is later.
func (w *world) checkTick(i int) {
	p := &w.processes[i]
	if wake, ok := p.lock.NextWake(); ok && wake <= w.now && !p.dead {
		w.violated("p%d: a Tick at %v needs the next one at %v", i, w.now, wake)
	}
	for _, r := range p.requests {
		if r.req.Deadline != 0 && r.req.Deadline <= w.now {
			w.violated("p%d: %v still waits after its deadline %v", i, r, r.req.Deadline)
		}
	}
}
