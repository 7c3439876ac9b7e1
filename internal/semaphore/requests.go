package semaphore

import (
	"fmt"
	"math"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Request asks for permits. Of machine.Request, the fields ID, Owner, Try, Deadline and Ref have the same meaning here.
type Request struct {
	machine.Request
	// N is how many permits it wants, from 1.
	N int
}

// Acquire asks for permits. The request joins the queue. A try is refused at once if others wait, but not at a latch:
// there no request can overtake another.
func (p *Pool) Acquire(now Instant, req Request) {
	p.begin(now)
	defer p.settle()
	if req.Try {
		req.Deadline = p.now + p.cfg.TryTime()
	}
	switch {
	case p.closing:
		p.refuse(req.Ref, machine.Closed, machine.Closing)
	case req.Try && p.queue.Len() > 0 && p.wait.refused && !p.latch:
		p.refuse(req.Ref, machine.Held, "others wait already: "+p.whyRefused())
	case p.queue.Len() >= p.cfg.QueueLimit:
		p.refuse(req.Ref, machine.QueueFull, fmt.Sprintf("%d requests wait already, and their limit is %d", p.queue.Len(), p.cfg.QueueLimit))
	default:
		p.queue.Push(&req)
		if p.latch && req.Try {
			p.wait.again = true
			p.trySoon()
		}
	}
}

// Release gives permits back. If there is no such semaphore it is refused, or, with ifExists, done. ref is nil if no
// request awaits it.
func (p *Pool) Release(now Instant, n int, ifExists bool, ref any) {
	p.begin(now)
	defer p.settle()
	if len(p.pendingReturns) == 0 && p.mayHandOff() && p.queue.Head().N == n { // without memory for a return
		p.startTurn()
		p.serve(n, true)
		p.effects.Answer(ref, machine.Answer{Kind: machine.Freed, Done: true, HandedOff: true})
		return
	}
	p.pendingReturns = append(p.pendingReturns, permitReturn{n: n, ifExists: ifExists, ref: ref, until: p.now + p.cfg.TryTime()})
}

// Change asks for a command that does not wait for permits: Add, Set, Drain, Delete or Inspect.
func (p *Pool) Change(now Instant, c Change) {
	p.begin(now)
	defer p.settle()
	if p.closing {
		p.refuseChange(c.Ref, machine.Closed, machine.Closing)
		return
	}
	c.until = p.now + p.cfg.TryTime()
	p.changes = append(p.changes, c)
}

// Cancel withdraws the waiting requests of an owner, or the request with that id.
func (p *Pool) Cancel(now Instant, id uint64, owner machine.Owner, ref any) {
	p.begin(now)
	defer p.settle()
	withdrawn := p.queue.Withdraw(id, uint64(owner))
	detail := "the request was withdrawn"
	if p.wait.lastErr != "" {
		detail += "; the last try failed: " + p.wait.lastErr
	}
	for _, req := range withdrawn {
		p.refuse(req.Ref, machine.CancelledByRequest, detail)
	}
	p.effects.Answer(ref, machine.Answer{Kind: machine.Withdrawn, Count: len(withdrawn)})
}

// OwnerGone refuses the requests of an owner that has died. Another actor may have sent them.
func (p *Pool) OwnerGone(now Instant, owner machine.Owner) {
	p.begin(now)
	defer p.settle()
	for _, req := range p.queue.RemoveOwner(uint64(owner)) {
		p.refuse(req.Ref, machine.CancelledByRequest, machine.OwnerDied)
	}
}

// Close refuses all waiting requests, for that reason. What has to be given back is given back, until the
// watchdog's TTL is over: then the pool is idle in any case.
func (p *Pool) Close(now Instant, reason machine.Reason, detail string) {
	p.begin(now)
	defer p.settle()
	if p.closing {
		return
	}
	p.closing, p.closeAt = true, p.now+p.cfg.Watchdog
	p.refuseAll(reason, detail)
	p.retryNow()
}

// Stop is Close for a pool that gets no more Ticks: all are answered. The command under way is sent at
// once if it was to be sent again, and permits are given back in the background.
func (p *Pool) Stop(now Instant, reason machine.Reason, detail string) {
	p.begin(now)
	defer p.settle()
	p.closing, p.closeAt = true, p.now+p.cfg.Watchdog
	p.refuseAll(reason, detail)
	p.retryNow()
	p.call.returns = p.answerOverdue(p.call.returns, math.MaxInt64, detail)
	p.pendingReturns = p.answerOverdue(p.pendingReturns, math.MaxInt64, detail)
	if p.call.change.Ref != nil {
		p.leaveChange(reason, detail)
	}
	if p.call.kind != 0 && !p.call.InFlight {
		p.send()
	}
}

// Abandon ends everything at once; permits that are not given back are forgotten.
func (p *Pool) Abandon(now Instant, reason machine.Reason, detail string) {
	p.begin(now)
	defer p.settle()
	p.refuseAll(reason, detail)
	p.abandon(reason, detail)
}

func (p *Pool) abandon(reason machine.Reason, detail string) {
	p.closing = true
	for _, one := range p.call.returns {
		if p.call.InFlight || p.call.Unsure {
			p.refuseReturn(one.ref, machine.Unavailable, p.words("the permits may have been given back", "it may have been counted down")+": "+detail)
		} else {
			p.refuseReturn(one.ref, reason, detail)
		}
	}
	for _, one := range p.pendingReturns {
		p.refuseReturn(one.ref, reason, detail)
	}
	if len(p.pendingReturns)+len(p.rejects.returns) > 0 || p.call.kind != 0 && p.call.kind != Inspect {
		p.reportLost(detail)
	}
	p.mayArrive = p.mayArrive || p.call.kind != 0
	if p.call.change.Kind != 0 {
		p.leaveChange(reason, detail)
	}
	p.call, p.pendingReturns, p.rejects.returns = call{}, nil, nil
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

// dropExpired refuses the requests whose time is over.
func (p *Pool) dropExpired() {
	if p.closing && p.now >= p.closeAt && !p.Idle() {
		p.abandon(machine.Unavailable, "Redis has not confirmed it in time")
	}
	for _, req := range p.queue.RemoveExpired(p.now, machine.MaxExpired) {
		switch {
		case p.wait.lastErr != "":
			p.refuse(req.Ref, machine.Unavailable, p.wait.lastErr)
		case req.Try && p.wait.refused:
			p.refuse(req.Ref, machine.Held, p.whyRefused())
		case !p.wait.refused:
			p.refuse(req.Ref, machine.Unavailable, "Redis has not answered within the wait")
		default:
			p.refuse(req.Ref, machine.TimedOut, p.whyRefused())
		}
	}
	p.call.returns = p.answerOverdue(p.call.returns, p.now, p.lastError())
	p.pendingReturns = p.answerOverdue(p.pendingReturns, p.now, p.lastError())
	for len(p.changes) > 0 && p.now >= p.changes[0].until {
		p.refuseChange(p.changes[0].Ref, machine.Unavailable, "it was not carried out: "+p.lastError())
		p.changes = p.changes[1:]
	}
	if p.call.change.until > 0 && p.now >= p.call.change.until {
		p.leaveChange(machine.Unavailable, p.lastError())
	}
}

// lastError returns the error of the last try, which explains why there is no answer yet.
func (p *Pool) lastError() string {
	switch {
	case p.call.Last.Err != nil:
		return p.call.Last.Err.Error()
	case p.wait.lastErr != "":
		return p.wait.lastErr
	}
	return "Redis has not answered in time"
}
