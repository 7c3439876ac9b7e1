package semaphore

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// noKey is the TTL, in the reply to an Inspect, of a semaphore that does not exist.
const noKey = -2

// change sends the first of the changes that wait.
func (p *Pool) change() {
	c := p.changes[0]
	p.changes = p.changes[1:]
	p.start(op{command: Command{Kind: c.Kind, N: c.N, TTL: c.TTL}, change: c})
}

// changeReplied handles the reply to a change.
func (p *Pool) changeReplied(r *Result) {
	c := p.op
	answer := machine.Answer{Kind: machine.Changed, Done: true, N: r.N[0]}
	switch {
	case r.Err != nil && r.Transient && !c.expired:
		return
	case r.Err != nil && c.Unsure && c.kind != Inspect:
		p.leaveChange(machine.Unavailable, r.Err.Error())
		p.rejectWaiting(r)
		if p.op.kind == Drain {
			p.reportRejection()
		}
		return
	case r.Err != nil:
		p.end()
		p.refuseChange(c.change.Ref, machine.Rejected, r.Err.Error())
		return
	}
	p.end()
	switch c.kind {
	case Drain:
		// The answer to its request was that Redis does not answer. A negative number is taken away again: else there
		// would be more permits than AddPermits has left.
		if c.change.Ref == nil && r.N[0] != 0 {
			p.pendingReturns = append([]permitReturn{{n: int(r.N[0]), ifExists: true}}, p.pendingReturns...)
		}
	case Inspect:
		if r.N[1] == noKey && p.counter.mustBeSet() {
			p.refuseChange(c.change.Ref, machine.NoPermits, machine.NoNumber)
			return
		}
		answer.TTL = time.Duration(max(r.N[1], -1)) * time.Millisecond
	default:
		answer.Done, answer.N = r.N[0] == 1, r.N[1]
	}
	p.effects.Answer(c.change.Ref, answer)
	isSet := c.kind == Set && p.counter.mustBeSet()
	for isSet && len(p.changes) > 0 && p.changes[0].Kind == Set && p.changes[0].until <= c.began+p.cfg.TryTime() {
		// It came before, and the number is set.
		p.effects.Answer(p.changes[0].Ref, machine.Answer{Kind: machine.Changed, N: answer.N})
		p.changes = p.changes[1:]
	}
}

// leaveChange answers a change whose reply is awaited no longer. Only a Drain is sent again, to give back the permits
// that it has taken.
func (p *Pool) leaveChange(reason machine.Reason, why string) {
	c := p.op
	detail := "it was not carried out: "
	if (c.InFlight || c.Unsure) && c.kind != Inspect {
		reason, detail = machine.Unavailable, machine.MaybeDone
	}
	p.refuseChange(c.change.Ref, reason, detail+why)
	p.op.change.Ref, p.op.change.until = nil, 0
	if c.kind != Drain || !c.InFlight && !c.Unsure {
		p.mayArrive = p.mayArrive || c.InFlight
		p.end()
	}
}
