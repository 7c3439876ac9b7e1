package semaphore

import (
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

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

// Close refuses all waiting requests. What has to be given back is given back, until the watchdog's TTL is over: then
// the pool is idle in any case.
func (p *Pool) Close(now Instant) {
	defer p.begin(now).settle()
	if p.closing {
		return
	}
	p.closing, p.abandonAt = true, p.now+p.cfg.Watchdog
	p.refuseAll(machine.Closed, machine.Closing)
	p.retryNow()
}

// Stop is Close for a pool that has had its last Tick: all requests are answered. The command under way is sent at once
// if it was to be sent again, and permits are given back in the background.
func (p *Pool) Stop(now Instant, reason machine.Reason, detail string) {
	defer p.begin(now).settle()
	p.closing, p.abandonAt = true, p.now+p.cfg.Watchdog
	p.refuseAll(reason, detail)
	p.retryNow()
	p.op.returns = p.answerReturns(p.op.returns, endOfTime, detail)
	p.pendingReturns = p.answerReturns(p.pendingReturns, endOfTime, detail)
	if p.op.change.Ref != nil {
		p.stopAwaitingChange(reason, detail)
	}
	if p.op.kind != opNone && !p.op.InFlight {
		p.send()
	}
}

// retryNow shortens the pauses after rejections and of an opLeave.
func (p *Pool) retryNow() {
	p.rejects.nextAt, p.rejects.tries = 0, min(p.rejects.tries, 1)
	if (p.op.Rejected() || p.op.kind == opLeave) && !p.op.InFlight {
		p.op.Tries = 0
		p.send()
	}
}

// Abandon ends everything at once; permits that are not given back are forgotten.
func (p *Pool) Abandon(now Instant, reason machine.Reason, detail string) {
	defer p.begin(now).settle()
	p.refuseAll(reason, detail)
	p.abandon(reason, detail)
}

// endClose abandons what Redis has not confirmed when the time for that is over.
func (p *Pool) endClose() {
	if p.closing && p.now >= p.abandonAt && !p.Idle() {
		p.abandon(machine.Unavailable, "Redis has not confirmed it in time")
	}
}
