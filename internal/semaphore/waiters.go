package semaphore

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// serve gives permits to the waiting requests, from the head, and returns how many it has given.
func (p *Pool) serve(n int, handedOff bool) (given int) {
	for p.queue.Len() > 0 && given+p.queue.Head().N <= n {
		req := p.queue.Pop()
		given += req.N
		p.effects.Answer(req.Ref, machine.Answer{Kind: machine.Granted, N: int64(req.N), HandedOff: handedOff})
	}
	return given
}

// trySoon makes the next try due at once, unless the process leaves the permits to others for now.
func (p *Pool) trySoon() { p.wait.NextAt = p.wait.deferUntil }

// retryUnserved handles a command that could not serve all requests up to last: it refuses the tries, and schedules the
// next Take for the others.
func (p *Pool) retryUnserved(last uint64) {
	p.wait.Refused = true
	p.refuseTries(last)
	if p.queue.Len() > 0 && p.queue.Head().ID > last { // it came after the command
		p.wait.RefusalIsStale = true
	}
	if p.wait.NextAt = p.now + p.jitter(p.cfg.EntryTimeout()/2); p.wait.RefusalIsStale {
		p.trySoon()
	}
}

// refuseTries refuses the tries up to last, which a command could not serve, and those that would have to overtake a
// request that waits.
func (p *Pool) refuseTries(last uint64) {
	first, waits := p.queue.FirstWaiting()
	for _, req := range p.queue.RemoveTries(func(req *Request) bool {
		return req.ID <= last || waits && req.ID > first.ID && !p.counter.together()
	}) {
		p.refuse(req.Ref, machine.Held, p.counter.words().refused)
	}
}

// refuseUnset refuses the waiting requests up to newest, because the number of permits was not set. When later ones
// came, another process may have set it. This process does not set it again: permits have no lease, so nothing tells
// when permits are back that were taken before Redis lost its data.
func (p *Pool) refuseUnset(newest uint64) {
	for _, req := range p.queue.Remove(func(req *Request) bool { return req.ID <= newest }) {
		p.refuse(req.Ref, machine.NoPermits, machine.NoNumber)
	}
	p.trySoon()
}

// rejectWaiting refuses all waiting acquires, changes and releases, because Redis permanently rejected a command.
// Returns that no request awaits stay in pendingReturns.
func (p *Pool) rejectWaiting(r *Result) {
	p.refuseAll(machine.Rejected, r.Err.Error())
	for _, one := range p.pendingReturns {
		p.refuseReturn(one.ref, machine.Rejected, r.Err.Error())
	}
	p.pendingReturns = slices.DeleteFunc(slices.Clone(p.pendingReturns), func(one permitReturn) bool { return one.ref != nil })
}

// refuseAll refuses the requests that wait for permits, and the changes that are not under way.
func (p *Pool) refuseAll(reason machine.Reason, detail string) {
	for _, req := range p.queue.Remove(func(*Request) bool { return true }) {
		p.refuse(req.Ref, reason, detail)
	}
	for _, c := range p.changes {
		p.refuseChange(c.Ref, reason, detail)
	}
	p.changes = nil
}

// abandon ends the command, forgets what is not given back, and answers their requests.
func (p *Pool) abandon(reason machine.Reason, detail string) {
	p.closing = true
	for _, one := range p.op.returns {
		if p.op.InFlight || p.op.Unsure {
			p.refuseReturn(one.ref, machine.Unavailable, p.counter.words().mayBeReturned+": "+detail)
		} else {
			p.refuseReturn(one.ref, reason, detail)
		}
	}
	for _, one := range p.pendingReturns {
		p.refuseReturn(one.ref, reason, detail)
	}
	if len(p.pendingReturns)+len(p.rejects.returns) > 0 || p.op.kind != 0 && p.op.kind != Inspect && !p.op.leaves {
		p.reportLost(detail)
	}
	p.mayArrive = p.mayArrive || p.op.kind != 0
	if p.op.change.Kind != 0 {
		p.leaveChange(reason, detail)
	}
	p.op, p.pendingReturns, p.rejects.returns, p.entry = op{}, nil, nil, 0
}
