package semaphore

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// take asks for the permits of the first waiting requests.
func (p *Pool) take() {
	if p.latch {
		p.readCount()
		return
	}
	first := p.queue.Front(batch)
	wanted := make([]int, len(first))
	for i, req := range first {
		wanted[i] = req.N
	}
	p.wait.again, p.wait.free = false, 0
	p.start(call{command: Command{Kind: Take, Wanted: wanted}, last: first[len(first)-1].ID})
}

// trySoon makes the next try due at once, unless the process leaves the permits to others for now.
func (p *Pool) trySoon() { p.wait.nextAt = p.wait.deferUntil }

// takeReplied handles the reply to a Take.
func (p *Pool) takeReplied(r *Result) {
	c := p.call
	switch {
	case r.Err == nil && p.latch:
		p.end()
		p.countRead(&c, r.N[0])
	case r.Err == nil:
		p.end()
		p.handOut(&c, r)
	case c.Unsure && (r.Transient || !p.latch): // an earlier try may have taken permits, which must be given back
		if p.wait.lastErr = r.Err.Error(); !r.Transient {
			p.rejectWaiting(r)
			p.reportRejection()
		}
	case r.Transient:
		p.end()
		p.wait.lastErr = r.Err.Error()
		p.wait.nextAt = p.now + p.pause(p.wait.tries)
		p.wait.tries++
	default:
		p.end()
		p.rejectWaiting(r)
	}
}

// rejectWaiting refuses all waiting acquires, changes and releases, because Redis permanently rejected a command. Debts
// that no request awaits stay in pendingReturns.
func (p *Pool) rejectWaiting(r *Result) {
	for _, req := range p.queue.Remove(func(*Request) bool { return true }) {
		p.refuse(req.Ref, machine.Rejected, r.Err.Error())
	}
	for _, c := range p.changes {
		p.refuseChange(c.Ref, machine.Rejected, r.Err.Error())
	}
	p.changes = nil
	for _, one := range p.pendingReturns {
		p.refuseReturn(one.ref, machine.Rejected, r.Err.Error())
	}
	p.pendingReturns = slices.DeleteFunc(slices.Clone(p.pendingReturns), func(one permitReturn) bool { return one.ref != nil })
}

// handOut hands out the permits that a Take has taken. The reply says how many of the requests that the Take named are
// served.
func (p *Pool) handOut(c *call, r *Result) {
	served := max(int(r.N[0]), 0)
	p.wait.tries, p.wait.lastErr = 0, ""
	if r.N[0] < 0 {
		p.refuseUnset()
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
	p.wait.free = r.N[1]
	p.retryUnserved(c.last)
}

// refuseUnset refuses all waiting requests, because the number of permits is not set. The process does not set it again:
// permits have no lease, so nothing tells when permits are back that were taken before Redis lost its data.
func (p *Pool) refuseUnset() {
	for _, req := range p.queue.Remove(func(*Request) bool { return true }) {
		p.refuse(req.Ref, machine.NoPermits, machine.NoNumber)
	}
}

// retryUnserved handles a command that could not serve all requests up to last: it refuses the tries, and schedules the
// next Take for the others.
func (p *Pool) retryUnserved(last uint64) {
	p.wait.refused = true
	p.refuseTries(last)
	if p.queue.Len() > 0 && p.queue.Head().Try { // it came after the command
		p.wait.again = true
	}
	if p.wait.nextAt = p.now + p.jitter(p.cfg.Poll); p.wait.again {
		p.trySoon()
	}
}

// serve gives permits to the waiting requests, from the head, and returns how many it has given.
func (p *Pool) serve(n int, handedOff bool) (given int) {
	for p.queue.Len() > 0 && given+p.queue.Head().N <= n {
		req := p.queue.Pop()
		given += req.N
		p.effects.Answer(req.Ref, machine.Answer{Kind: machine.Granted, N: int64(req.N), HandedOff: handedOff})
	}
	return given
}

// refuseTries refuses the tries up to last, which a command could not serve, and the tries behind a request that waits,
// unless it is for a latch.
func (p *Pool) refuseTries(last uint64) {
	first, waits := p.queue.FirstWaiting()
	for _, req := range p.queue.RemoveTries(func(req *Request) bool {
		return req.ID <= last || waits && req.ID > first.ID && !p.latch
	}) {
		p.refuse(req.Ref, machine.Held, p.whyRefused())
	}
}
