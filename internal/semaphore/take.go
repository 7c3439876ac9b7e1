package semaphore

// Contending for permits: one Take is for the first waiting requests, and Redis serves as many of these as it can.

// batch bounds the waiters that one Take names, and the ids of one Give.
const batch = 100

// nextTake sends a command for the requests that wait if a try is due.
func (p *Pool) nextTake() bool {
	if p.queue.Len() == 0 || p.now < p.wait.NextAt {
		return false
	}
	p.counter.take(p)
	return true
}

// take asks for the permits of the first waiting requests.
func (permits) take(p *Pool) {
	first := p.queue.Front(batch)
	wanted := make([]int, len(first))
	for i, req := range first {
		wanted[i] = req.N
	}
	p.wait.RefusalIsStale = false
	o := op{kind: opTake, command: Command{Kind: Take, Wanted: wanted}, last: first[len(first)-1].ID, newest: p.queue.LastID()}
	if waiter, waits := p.queue.FirstWaiting(); waits {
		p.entryN = waiter.N
		o.command.Entry = Entry{N: waiter.N, TTL: p.cfg.EntryTimeout()}
	}
	p.start(o)
}

func (p *Pool) takeReplied(o op, r Result) { p.counter.taken(p, o, r) }

// taken hands out the permits that a Take has taken. The reply says how many of the requests that the Take named are
// served.
func (permits) taken(p *Pool, o op, r Result) {
	p.wait.CarriedOut()
	if r.N[0] < 0 { // there is no semaphore
		p.entryN = 0
		p.refuseUnset(o.newest)
		return
	}
	wanted, entry := o.command.Wanted, o.command.Entry
	served := min(int(r.N[0]), len(wanted))
	if served == len(wanted) || entry.N == 0 {
		p.entryN = 0
	}
	n := 0
	for _, one := range wanted[:served] {
		n += one
	}
	if n -= p.serve(n, false); n > 0 { // some requests have left
		p.giveBackFirst(n)
	}
	if served == len(wanted) {
		p.trySoon()
		return
	}
	// The entry wants the permits of a request that was served, or the first waiter was behind a try.
	if first, waits := p.queue.FirstWaiting(); waits && (first.N != entry.N || int64(first.N) <= r.N[1]) {
		p.wait.RefusalIsStale = true
	}
	p.retryUnserved(o.last)
}

// takeFailed schedules another try, or refuses the requests if Redis rejects the command.
func (p *Pool) takeFailed(o op, r Result) {
	switch {
	case o.Unsure && (r.Transient || len(o.command.Wanted) > 0):
		// An earlier try may have taken permits, which must be given back.
		if p.wait.LastErr = r.Err.Error(); !r.Transient {
			p.rejectWaiting(r)
			p.reportRejectedOp()
		}
	case r.Transient:
		p.op = op{}
		p.wait.Failed(r.Err.Error(), p.now+p.pause(p.wait.Tries))
	default:
		p.op = op{}
		p.rejectWaiting(r)
	}
}

// giveBackFirst gives back permits that a command has taken for a request which has left. n may be negative: see
// permitReturn.
func (p *Pool) giveBackFirst(n int) {
	p.pendingReturns = append([]permitReturn{{n: n, ifExists: true}}, p.pendingReturns...)
}
