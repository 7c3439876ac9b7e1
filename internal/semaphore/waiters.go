package semaphore

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// The requests that wait: which are served, which are refused, and when the next try for them is due.

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

// outdateRefusal makes a try due, since there may be permits now; the refusal of a try under way may be older.
func (p *Pool) outdateRefusal() {
	p.wait.RefusalIsStale = true
	p.trySoon()
}

// wantsFewer reports whether the first request that waits wants fewer permits than the entry in the wait queue says.
func (p *Pool) wantsFewer() bool {
	first, waits := p.queue.FirstWaiting()
	return waits && first.N < p.entryN
}

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

// refuseTries refuses the tries up to last, which a command could not serve, and the tries that would have to overtake
// a request that waits.
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

// refuseExpired refuses the requests whose wait is over.
func (p *Pool) refuseExpired() {
	for _, req := range p.queue.RemoveExpired(p.now, machine.MaxExpired) {
		refused := p.wait.Refused || req.Deadline <= p.wait.deferUntil // a yield left the permits to others
		switch {
		case p.wait.LastErr != "":
			p.refuse(req.Ref, machine.Unavailable, p.wait.LastErr)
		case req.Try && refused:
			p.refuse(req.Ref, machine.Held, p.counter.words().refused)
		case !refused:
			p.refuse(req.Ref, machine.Unavailable, p.cfg.NoAnswer())
		default:
			p.refuse(req.Ref, machine.TimedOut, p.counter.words().refused)
		}
	}
}

// rejectWaiting refuses all waiting acquires, changes and releases, because Redis permanently rejected a command.
// Returns that no request awaits stay in pendingReturns.
func (p *Pool) rejectWaiting(r Result) {
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
