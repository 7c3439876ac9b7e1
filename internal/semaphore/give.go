package semaphore

import (
	"math"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Giving permits back: one Give is for the first returns, as many as one command may be about.

// nextGive gives back the first of pendingReturns.
func (p *Pool) nextGive() bool {
	if len(p.pendingReturns) == 0 {
		return false
	}
	p.pendingReturns = p.counter.give(p, p.pendingReturns)
	return true
}

// give sends a command that gives back the first of the returns, and returns the others. At the end of a turn, the
// permits are given back only if other processes wait.
func (permits) give(p *Pool, returns []permitReturn) (rest []permitReturn) {
	c := Command{Kind: Give, Leaves: p.entryIsUnused()}
	if p.turnIsOver() && !p.isDeferred() && p.queue.Len() > 0 {
		c = Command{Kind: Yield, Forced: p.turn.IsForced(p.now)}
	}
	n := 0
	for n < len(returns) && c.N <= machine.MaxPermits-int64(returns[n].n) {
		c.N += int64(returns[n].n)
		n++
	}
	p.start(op{kind: opGive, command: c, returns: returns[:n:n]})
	return returns[n:]
}

func (p *Pool) giveReplied(o op, r Result) {
	if len(p.rejects.returns) == 0 {
		p.rejects.tries = 0
	}
	p.counter.given(p, o, r)
}

// given answers the requests that have given permits back. A Yield that saw no other process has not given them back,
// and another turn begins.
func (permits) given(p *Pool, o op, r Result) {
	yields := o.command.Kind == Yield
	if yields && r.N[0] == 0 {
		p.pendingReturns = slices.Concat(o.returns, p.pendingReturns)
		p.turn.Start(p.now, p.cfg.HandOffLimit, p.cfg.ForcedYield)
		return
	}
	for _, one := range o.returns {
		if r.N[0] <= 0 && !one.ifExists { // the replies of a Give and of a Yield differ
			p.refuseReturn(one.ref, machine.NoPermits, machine.NoNumber+"; nothing is given back")
			continue
		}
		p.effects.Answer(one.ref, machine.Answer{Kind: machine.Freed, Done: r.N[0] == 1})
	}
	if yields {
		p.turn = machine.Turn{}
		p.wait.deferUntil = p.now + p.cfg.OpenTime()
		p.trySoon()
	}
	if yields || o.command.Leaves {
		p.entryN = 0
	}
}

// giveFailed answers the requests if Redis rejects the command.
func (p *Pool) giveFailed(o op, r Result) {
	switch {
	case r.Transient && !o.expired: // it is sent again
	case o.Unsure: // likewise, since an earlier try may have given the permits back
		p.op.returns = p.answerReturns(o.returns, endOfTime, r.Err.Error())
		p.rejectWaiting(r)
		p.reportRejectedOp()
	default:
		p.op = op{}
		p.dropRejected(o, r)
	}
}

// firstAnswerBy returns the time by which the first request that awaits a return is answered; 0 if there is none.
func firstAnswerBy(returns []permitReturn) Instant {
	for _, one := range returns {
		if one.ref != nil {
			return one.answerBy
		}
	}
	return 0
}

// answerOverdueReturns answers the returns whose time is over.
func (p *Pool) answerOverdueReturns() {
	p.op.returns = p.answerReturns(p.op.returns, p.now, p.lastError())
	p.pendingReturns = p.answerReturns(p.pendingReturns, p.now, p.lastError())
}

// endOfTime is, for answerReturns, the time of all returns.
const endOfTime Instant = math.MaxInt64

// answerReturns answers the requests whose time is over by then. Their permits are given back all the same.
func (p *Pool) answerReturns(returns []permitReturn, then Instant, why string) []permitReturn {
	if by := firstAnswerBy(returns); by == 0 || then < by {
		return returns
	}
	returns = slices.Clone(returns)
	for i, one := range returns {
		if one.ref != nil && then >= one.answerBy {
			p.refuseReturn(one.ref, machine.Unavailable, why+"; "+p.counter.words().returned+" in the background")
			returns[i].ref = nil
		}
	}
	return returns
}
