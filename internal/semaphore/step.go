package semaphore

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// The events that are no requests, and what every event does: begin ends what is over, the event changes the state, and
// settle starts what can be done next.

// Signal says that a message came on the channel: there may be permits.
func (p *Pool) Signal(now Instant) {
	defer p.begin(now).settle()
	p.outdateRefusal()
}

// Asked says that permits are free for the process, by its place in the wait queue. Without a waiter, the process
// leaves the queue at once.
func (p *Pool) Asked(now Instant, _ uint64) {
	defer p.begin(now).settle()
	if p.entryIsUnused() {
		p.turn.Until = min(p.turn.Until, p.now)
	}
	p.outdateRefusal()
}

// Subscribed says that no message is missed from now on.
func (p *Pool) Subscribed(now Instant, term uint64) {
	defer p.begin(now).settle()
	if p.sub.Confirm(term) {
		p.outdateRefusal()
	}
}

// Transferred does nothing: permits are not transferred.
func (p *Pool) Transferred(Instant, machine.Transfer) {}

// Suspect does nothing: permits, and a count, have no holder here.
func (p *Pool) Suspect(Instant) {}

// Tick says that time has passed.
func (p *Pool) Tick(now Instant) { p.begin(now).settle() }

// Replied delivers the outcome of a command. It is ignored if the command is no longer under way. All tries have the
// same number, so a failure counts for the last one; between two tries it is ignored.
func (p *Pool) Replied(now Instant, number uint64, r Result) {
	defer p.begin(now).settle()
	if p.op.kind != opNone && p.op.command.Number == number && (r.Err == nil || p.op.InFlight) {
		p.replied(r)
	}
}

// begin opens an event: time may have ended something before it. An event is a method that begins with
//
//	defer p.begin(now).settle()
func (p *Pool) begin(now Instant) *Pool {
	p.now = max(p.now, now)
	p.endClose()
	p.refuseExpired()
	p.answerOverdueReturns()
	p.refuseOverdueChanges()
	p.overdue()
	return p
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
		p.replied(Result{Failure: *failure})
	} else if due {
		p.send()
	}
}

// replied handles the reply to the command, or its failure.
func (p *Pool) replied(r Result) {
	p.mayArrive = p.mayArrive || r.Unsure
	if r.Err != nil {
		p.noteFailure(r)
		ops[p.op.kind].failed(p, p.op, r)
		return
	}
	o := p.op
	p.op = op{}
	ops[o.kind].replied(p, o, r)
}

// noteFailure makes another try due after a pause, or ends the tries if their time is over.
func (p *Pool) noteFailure(r Result) {
	pause := p.pause
	if !r.Transient {
		pause = p.longPause
	}
	p.op.Failed(p.now, r.Failure, pause(p.op.Tries))
	if p.now >= p.op.until {
		if p.op.kind != opLeave {
			p.reportForgotten(r.Err.Error())
		}
		p.op.expired, p.op.Unsure = true, false
	}
}

// settle closes an event: it starts what can be done next.
func (p *Pool) settle() {
	p.handOff()
	if p.queue.Len() == 0 { // the turn goes on: each hand-off to the only waiter empties the queue for a moment
		p.wait = waiting{deferUntil: p.wait.deferUntil}
		p.trySoon()
	} else if p.wantsFewer() {
		p.trySoon()
	}
	p.overtakeLeave()
	p.retryRejected()
	if p.op.kind == opNone {
		p.next()
	}
	p.sub.Follow(p.now, p.queue.Len() > 0, p.wait.Refused, !p.closing, 0, &p.effects)
}

// overtakeLeave ends an opLeave between two tries if there is another command to send, which may leave the queue, too.
func (p *Pool) overtakeLeave() {
	if p.op.kind == opLeave && !p.op.InFlight && (p.awaited() || len(p.pendingReturns) > 0) {
		p.op = op{}
	}
}

// retryRejected sends a command again at once that Redis has rejected, if requests wait for its end: they are refused
// soon, or go on.
func (p *Pool) retryRejected() {
	if p.op.Rejected() && !p.op.InFlight && p.awaited() {
		p.send()
	}
}

// awaited reports whether requests wait for the end of the command under way.
func (p *Pool) awaited() bool {
	return p.queue.Len() > 0 || len(p.changes) > 0 || firstAnswerBy(p.pendingReturns) > 0
}

// turns is the order in which the kinds of ops take turns: there may always be more of each.
var turns = []opKind{opGive, opChange, opTake}

// next starts the next op, if there is one. The process leaves the wait queue when there is nothing else to do.
func (p *Pool) next() {
	if p.giveRejectedAgain() {
		return
	}
	first := slices.Index(turns, p.lastKind) + 1
	for i := range turns {
		if ops[turns[(first+i)%len(turns)]].next(p) {
			return
		}
	}
	ops[opLeave].next(p)
}

// NextWake returns when the pool needs its next Tick, unless another event comes first.
func (p *Pool) NextWake() (at Instant, ok bool) {
	var due machine.Earliest
	due.Add(p.queue.NextDeadline())
	due.Add(firstAnswerBy(p.pendingReturns))
	if len(p.changes) > 0 {
		due.Add(p.changes[0].answerBy)
	}
	if p.op.kind != opNone {
		due.Add(p.op.Due)
		due.Add(p.op.change.answerBy)
		due.Add(firstAnswerBy(p.op.returns))
	} else {
		if p.queue.Len() > 0 {
			due.Add(p.wait.NextAt)
		}
		if len(p.rejects.returns) > 0 {
			due.Add(p.givesAgainAt())
		}
		if p.entryIsUnused() {
			due.Add(p.leaveAt())
		}
	}
	due.Add(p.sub.Until)
	if !p.Idle() {
		due.Add(p.abandonAt)
	}
	return due.Get()
}
