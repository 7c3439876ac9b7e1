package semaphore

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// Signal says that a message came on the channel: there may be permits.
func (p *Pool) Signal(now Instant) {
	defer p.begin(now).settle()
	p.wait.RefusalIsStale = true
	p.trySoon()
}

// Transferred does nothing: permits are not transferred.
func (p *Pool) Transferred(Instant, machine.Transfer) {}

// Asked says that permits are free for the process, by its place in the wait queue. Without a waiter, the process
// leaves the queue at once.
func (p *Pool) Asked(now Instant, _ uint64) {
	defer p.begin(now).settle()
	if p.leaves() {
		p.turn.Until = min(p.turn.Until, p.now)
	}
	p.wait.RefusalIsStale = true
	p.trySoon()
}

// Subscribed says that no message is missed from now on.
func (p *Pool) Subscribed(now Instant, term uint64) {
	defer p.begin(now).settle()
	if p.sub.Confirm(term) {
		p.wait.RefusalIsStale = true
		p.trySoon()
	}
}

// Suspect does nothing: permits, and a count, have no holder here.
func (p *Pool) Suspect(Instant) {}

// Tick says that time has passed.
func (p *Pool) Tick(now Instant) {
	p.begin(now).settle()
}

// Replied delivers the outcome of a command. It is ignored if the command is no longer under way. All tries have the
// same number, so a failure counts for the last one; between two tries it is ignored.
func (p *Pool) Replied(now Instant, number uint64, r Result) {
	defer p.begin(now).settle()
	if p.op.kind != 0 && p.op.command.Number == number && (r.Err == nil || p.op.InFlight) {
		p.replied(&r)
	}
}

// begin opens an event: time may have ended something before it. An event is a method that begins with
//
//	defer p.begin(now).settle()
func (p *Pool) begin(now Instant) *Pool {
	p.now = max(p.now, now)
	p.dropExpired()
	p.overdue()
	return p
}

// dropExpired refuses the requests whose time is over.
func (p *Pool) dropExpired() {
	if p.closing && p.now >= p.closeAt && !p.Idle() {
		p.abandon(machine.Unavailable, "Redis has not confirmed it in time")
	}
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
	p.op.returns = p.answerOverdue(p.op.returns, p.now, p.lastError())
	p.pendingReturns = p.answerOverdue(p.pendingReturns, p.now, p.lastError())
	for len(p.changes) > 0 && p.now >= p.changes[0].until {
		p.refuseChange(p.changes[0].Ref, machine.Unavailable, "it was not carried out: "+p.lastError())
		p.changes = p.changes[1:]
	}
	if p.op.change.until > 0 && p.now >= p.op.change.until {
		p.leaveChange(machine.Unavailable, p.lastError())
	}
}

// lastError returns the error of the last try, which explains why there is no answer yet.
func (p *Pool) lastError() string {
	switch {
	case p.op.Last.Err != nil:
		return p.op.Last.Err.Error()
	case p.wait.LastErr != "":
		return p.wait.LastErr
	}
	return "Redis has not answered in time"
}

// overdue stops waiting for a reply that is late, or sends the command again if that is due.
func (p *Pool) overdue() {
	if failure, due := p.op.Overdue(p.now, p.op.until); failure != nil {
		p.replied(&Result{Failure: *failure})
	} else if due {
		p.send()
	}
}

// replied handles the reply to the command, or its failure.
func (p *Pool) replied(r *Result) {
	p.mayArrive = p.mayArrive || r.Unsure
	if r.Err != nil {
		pause := p.pause
		if !r.Transient {
			pause = p.longPause
		}
		p.op.Failed(p.now, r.Failure, pause(p.op.Tries))
		if p.now >= p.op.until {
			if !p.op.leaves {
				p.reportLost(r.Err.Error())
			}
			p.op.expired, p.op.Unsure = true, false
		}
	}
	switch p.op.kind {
	case Take:
		p.takeReplied(r)
	case Give, Yield:
		p.giveReplied(r)
	default:
		p.changeReplied(r)
	}
}

// settle closes an event: it begins what can be done next.
func (p *Pool) settle() {
	p.handOff()
	if p.queue.Len() == 0 { // the turn goes on: each hand-off to the only waiter empties the queue for a moment
		p.wait = waiting{deferUntil: p.wait.deferUntil}
		p.trySoon()
	} else if p.wantsFewer() {
		p.trySoon()
	}
	p.proceed()
	p.sub.Follow(p.now, p.queue.Len() > 0, p.wait.Refused, !p.closing, 0, &p.effects)
}

// wantsFewer reports whether the first request that waits wants fewer permits than the entry in the wait queue says.
func (p *Pool) wantsFewer() bool {
	first, waits := p.queue.FirstWaiting()
	return waits && first.N < p.entry
}

// proceed sends the next command, if there is one to send.
func (p *Pool) proceed() {
	if p.op.leaves && !p.op.InFlight && (p.awaited() || len(p.pendingReturns) > 0) {
		p.end() // another command comes first, and may do the same
	}
	if p.op.kind != 0 {
		if p.op.Rejected() && !p.op.InFlight && p.awaited() { // the requests that wait are refused soon, or go on
			p.send()
		}
		return
	}
	if len(p.rejects.returns) > 0 && p.now >= p.givesAgainAt() {
		// in a separate command, since Redis may reject these returns and accept others
		p.rejects.returns = p.counter.give(p, p.rejects.returns)
		return
	}
	for i := range numWorks {
		switch next := (p.op.lastWork + 1 + i) % numWorks; {
		case next == returns && len(p.pendingReturns) > 0:
			p.pendingReturns = p.counter.give(p, p.pendingReturns)
			return
		case next == changes && len(p.changes) > 0:
			p.change()
			return
		case next == takes && p.queue.Len() > 0 && p.now >= p.wait.NextAt:
			p.counter.take(p)
			return
		}
	}
	if p.leaves() && p.now >= p.leaveAt() {
		p.leave()
	}
}

// awaited reports whether requests wait for the end of the command under way.
func (p *Pool) awaited() bool {
	return p.queue.Len() > 0 || len(p.changes) > 0 || firstUntil(p.pendingReturns) > 0
}

// NextWake returns when the pool needs its next Tick, unless another event comes first.
func (p *Pool) NextWake() (at Instant, ok bool) {
	var due machine.Earliest
	due.Add(p.queue.NextDeadline())
	if p.op.kind != 0 {
		due.Add(p.op.Due)
		due.Add(p.op.change.until)
	} else {
		if p.queue.Len() > 0 {
			due.Add(p.wait.NextAt)
		}
		if len(p.rejects.returns) > 0 {
			due.Add(p.givesAgainAt())
		}
	}
	if len(p.changes) > 0 {
		due.Add(p.changes[0].until)
	}
	due.Add(firstUntil(p.pendingReturns))
	due.Add(firstUntil(p.op.returns))
	due.Add(p.sub.Until)
	if p.op.kind == 0 && p.leaves() {
		due.Add(p.leaveAt())
	}
	if !p.Idle() {
		due.Add(p.closeAt)
	}
	return due.Get()
}
