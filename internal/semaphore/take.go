package semaphore

// take asks for the permits of the first waiting requests.
func (permits) take(p *Pool) {
	first := p.queue.Front(batch)
	wanted := make([]int, len(first))
	for i, req := range first {
		wanted[i] = req.N
	}
	p.wait.RefusalIsStale = false
	c := op{command: Command{Kind: Take, Wanted: wanted}, last: first[len(first)-1].ID}
	if waiter, waits := p.queue.FirstWaiting(); waits {
		p.entry = waiter.N
		c.command.Entry = Entry{N: waiter.N, TTL: p.cfg.EntryTimeout()}
	}
	p.start(c)
}

// leaves reports whether the process has an entry in the wait queue, and no waiter.
func (p *Pool) leaves() bool { return p.entry > 0 && p.queue.Len() == 0 }

// leaveAt returns when the process then leaves the wait queue. In a turn, the next waiter may come at once.
func (p *Pool) leaveAt() Instant {
	if p.closing {
		return p.now
	}
	return max(p.turn.Until, p.now)
}

// leave removes the entry from the wait queue, or tries to until it has expired.
func (p *Pool) leave() {
	p.start(op{command: Command{Kind: Take}, leaves: true})
	p.op.until = p.now + p.cfg.EntryTimeout()
}

// takeReplied handles the reply to a Take.
func (p *Pool) takeReplied(r *Result) {
	c := p.op
	switch {
	case r.Err == nil:
		p.end()
		p.counter.taken(p, &c, r)
	case c.leaves:
		if !r.Transient || c.expired || p.closing { // the entry expires
			p.end()
			p.entry = 0
		}
	case c.Unsure && (r.Transient || len(c.command.Wanted) > 0):
		// An earlier try may have taken permits, which must be given back.
		if p.wait.LastErr = r.Err.Error(); !r.Transient {
			p.rejectWaiting(r)
			p.reportRejection()
		}
	case r.Transient:
		p.end()
		p.wait.Failed(r.Err.Error(), p.now+p.pause(p.wait.Tries))
	default:
		p.end()
		p.rejectWaiting(r)
	}
}

// taken hands out the permits that a Take has taken. The reply says how many of the requests that the Take named are
// served.
func (permits) taken(p *Pool, c *op, r *Result) {
	served := max(int(r.N[0]), 0)
	p.wait.CarriedOut()
	if served >= len(c.command.Wanted) || c.command.Entry.N == 0 || r.N[0] < 0 {
		p.entry = 0
	}
	if r.N[0] < 0 {
		p.refuseUnset(c.newest)
		return
	}
	n := 0
	for _, wanted := range c.command.Wanted[:min(served, len(c.command.Wanted))] {
		n += wanted
	}
	n -= p.serve(n, false)
	if n > 0 { // some requests have left
		p.pendingReturns = append([]permitReturn{{n: n, ifExists: true}}, p.pendingReturns...)
	}
	if served == len(c.command.Wanted) {
		p.trySoon()
		return
	}
	// The entry wants the permits of a request that was served, or the first waiter was behind a try.
	if first, waits := p.queue.FirstWaiting(); waits && (first.N != c.command.Entry.N || int64(first.N) <= r.N[1]) {
		p.wait.RefusalIsStale = true
	}
	p.retryUnserved(c.last)
}
