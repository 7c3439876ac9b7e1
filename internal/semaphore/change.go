package semaphore

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Commands that do not wait for permits: Add, Set, Drain, Delete and Inspect.

// nextChange sends the first of the changes that wait.
func (p *Pool) nextChange() bool {
	if len(p.changes) == 0 {
		return false
	}
	c := p.changes[0]
	p.changes = p.changes[1:]
	p.start(op{kind: opChange, command: Command{Kind: c.Kind, N: c.N, TTL: c.TTL}, change: c})
	return true
}

// noKey is the TTL, in the reply to an Inspect, of a semaphore that does not exist.
const noKey = -2

func (p *Pool) changeReplied(o op, r Result) {
	c, answer := o.change, machine.Answer{Kind: machine.Changed, Done: true, N: r.N[0]}
	switch c.Kind {
	case Drain:
		// The answer to its request was that Redis does not answer. A negative number is taken away again: else there
		// would be more permits than AddPermits has left.
		if c.Ref == nil && r.N[0] != 0 {
			p.giveBackFirst(int(r.N[0]))
		}
	case Inspect:
		if r.N[1] == noKey && p.counter.mustBeSet() {
			p.refuseChange(c.Ref, machine.NoPermits, machine.NoNumber)
			return
		}
		answer.TTL = time.Duration(max(r.N[1], -1)) * time.Millisecond
	default:
		answer.Done, answer.N = r.N[0] == 1, r.N[1]
	}
	p.effects.Answer(c.Ref, answer)
	if c.Kind == Set && p.counter.mustBeSet() {
		p.answerSetsBefore(o.began, answer.N)
	}
}

// answerSetsBefore answers the Sets that came before a command which has set the number, or has found it set: they
// change nothing.
func (p *Pool) answerSetsBefore(began Instant, free int64) {
	for len(p.changes) > 0 && p.changes[0].Kind == Set && p.changes[0].answerBy <= began+p.cfg.TryTime() {
		p.effects.Answer(p.changes[0].Ref, machine.Answer{Kind: machine.Changed, N: free})
		p.changes = p.changes[1:]
	}
}

// changeFailed refuses the request of a change that is not sent again.
func (p *Pool) changeFailed(o op, r Result) {
	switch {
	case r.Transient && !o.expired: // it is sent again
	case o.Unsure && o.change.Kind != Inspect:
		p.stopAwaitingChange(machine.Unavailable, r.Err.Error())
		p.rejectWaiting(r)
		if o.change.Kind == Drain {
			p.reportRejectedOp()
		}
	default:
		p.op = op{}
		p.refuseChange(o.change.Ref, machine.Rejected, r.Err.Error())
	}
}

// refuseOverdueChanges refuses the changes whose time is over.
func (p *Pool) refuseOverdueChanges() {
	for len(p.changes) > 0 && p.now >= p.changes[0].answerBy {
		p.refuseChange(p.changes[0].Ref, machine.Unavailable, "it was not carried out: "+p.lastError())
		p.changes = p.changes[1:]
	}
	if by := p.op.change.answerBy; by > 0 && p.now >= by {
		p.stopAwaitingChange(machine.Unavailable, p.lastError())
	}
}

// stopAwaitingChange refuses the request of the change under way. The command is not sent again, except for a Drain:
// the permits that it has taken must be given back.
func (p *Pool) stopAwaitingChange(reason machine.Reason, why string) {
	o, detail := p.op, "it was not carried out: "
	if o.mayBeDone() && o.change.Kind != Inspect {
		reason, detail = machine.Unavailable, machine.MaybeDone
	}
	p.refuseChange(o.change.Ref, reason, detail+why)
	p.op.change.Ref, p.op.change.answerBy = nil, 0
	if o.change.Kind != Drain || !o.mayBeDone() {
		p.mayArrive = p.mayArrive || o.InFlight
		p.op = op{}
	}
}
