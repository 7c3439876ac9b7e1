package semaphore

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// The end of the System or of the actor: all requests are answered, and what has to be given back is given back, if
// there is time for it, or forgotten.

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

// abandon ends the command, and forgets what is not given back. It refuses the requests of both.
func (p *Pool) abandon(reason machine.Reason, detail string) {
	p.closing = true
	for _, one := range p.op.returns {
		if p.op.mayBeDone() {
			p.refuseReturn(one.ref, machine.Unavailable, p.counter.words().mayBeReturned+": "+detail)
		} else {
			p.refuseReturn(one.ref, reason, detail)
		}
	}
	for _, one := range p.pendingReturns {
		p.refuseReturn(one.ref, reason, detail)
	}
	changes := p.op.kind != opNone && p.op.kind != opLeave && p.op.command.Kind != Inspect
	if changes || len(p.pendingReturns)+len(p.rejects.returns) > 0 {
		p.reportForgotten(detail)
	}
	p.mayArrive = p.mayArrive || p.op.kind != opNone
	if p.op.kind == opChange {
		p.stopAwaitingChange(reason, detail)
	}
	p.op, p.pendingReturns, p.rejects.returns, p.entryN = op{}, nil, nil, 0
}
