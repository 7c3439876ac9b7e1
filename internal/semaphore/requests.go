package semaphore

import (
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// The requests of callers. Each is an event, which is answered at once or after a later event.

// Acquire asks for permits, or waits until a latch is open. The request joins the queue. A try that would have to
// overtake other requests is refused at once.
func (p *Pool) Acquire(now Instant, req Request) {
	defer p.begin(now).settle()
	if req.Try {
		req.Deadline = p.now + p.cfg.TryTime()
	}
	switch {
	case p.closing:
		p.refuse(req.Ref, machine.Closed, machine.Closing)
	case req.Try && p.queue.Len() > 0 && p.wait.Refused && !p.counter.together():
		p.refuse(req.Ref, machine.Held, "others wait already: "+p.counter.words().refused)
	case p.queue.Len() >= p.cfg.QueueLimit:
		p.refuse(req.Ref, machine.QueueFull, fmt.Sprintf("%d requests wait already, and their limit is %d", p.queue.Len(), p.cfg.QueueLimit))
	default:
		p.queue.Push(&req)
		if req.Try && p.counter.together() {
			p.outdateRefusal()
		}
	}
}

// Release gives permits back. If there is no such semaphore, the release is refused or, with ifExists, done. ref is nil
// if no request awaits it.
func (p *Pool) Release(now Instant, n int, ifExists bool, ref any) {
	defer p.begin(now).settle()
	if !p.handOffOne(n, ref) {
		one := permitReturn{n: n, ifExists: ifExists, ref: ref, answerBy: p.now + p.cfg.TryTime()}
		p.pendingReturns = append(p.pendingReturns, one)
	}
}

// CountDown counts a latch down by one. Redis counts an id that is not empty once. ref is nil if no request awaits it.
func (p *Pool) CountDown(now Instant, id string, ref any) {
	defer p.begin(now).settle()
	if p.closing && ref != nil {
		p.refuseReturn(ref, machine.Closed, machine.Closing)
		return
	}
	p.pendingReturns = append(p.pendingReturns, permitReturn{n: 1, id: id, ref: ref, answerBy: p.now + p.cfg.TryTime()})
}

// Change asks for a command that does not wait for permits: Add, Set, Drain, Delete or Inspect.
func (p *Pool) Change(now Instant, c Change) {
	defer p.begin(now).settle()
	if p.closing {
		p.refuseChange(c.Ref, machine.Closed, machine.Closing)
		return
	}
	c.answerBy = p.now + p.cfg.TryTime()
	p.changes = append(p.changes, c)
}

// Cancel withdraws the waiting requests of an owner, or the request with that id.
func (p *Pool) Cancel(now Instant, id uint64, owner machine.Owner, ref any) {
	defer p.begin(now).settle()
	withdrawn := p.queue.Withdraw(id, uint64(owner))
	detail := machine.WasWithdrawn
	if p.wait.LastErr != "" {
		detail += "; the last try failed: " + p.wait.LastErr
	}
	for _, req := range withdrawn {
		p.refuse(req.Ref, machine.CancelledByRequest, detail)
	}
	p.effects.Answer(ref, machine.Answer{Kind: machine.Withdrawn, Count: len(withdrawn)})
}

// OwnerGone refuses the requests of an owner that has died. Another actor may have sent them.
func (p *Pool) OwnerGone(now Instant, owner machine.Owner) {
	defer p.begin(now).settle()
	for _, req := range p.queue.RemoveOwner(uint64(owner)) {
		p.refuse(req.Ref, machine.CancelledByRequest, machine.OwnerDied)
	}
}
