package semaphore

import (
	"math"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// firstUntil returns the time by which the first request that awaits a return is answered; 0 if there is none.
func firstUntil(returns []permitReturn) Instant {
	for _, one := range returns {
		if one.ref != nil {
			return one.until
		}
	}
	return 0
}

// answerOverdue answers the returns whose time is over by now. They are given back all the same.
func (p *Pool) answerOverdue(returns []permitReturn, now Instant, why string) []permitReturn {
	if until := firstUntil(returns); until == 0 || now < until {
		return returns
	}
	returns = slices.Clone(returns)
	for i, one := range returns {
		if one.ref != nil && now >= one.until {
			p.refuseReturn(one.ref, machine.Unavailable, why+"; "+p.counter.words().returned+" in the background")
			returns[i].ref = nil
		}
	}
	return returns
}

// mayHandOff reports whether permits that come back may go to local waiters.
func (p *Pool) mayHandOff() bool {
	return !p.turnIsOver() && !p.counter.together() && p.queue.Len() > 0 && p.op.kind != Yield && p.now >= p.wait.deferUntil
}

// startTurn starts a turn if none is running.
func (p *Pool) startTurn() {
	if p.turn == (machine.Turn{}) {
		p.turn.Start(p.now, p.cfg.HandOffLimit, p.jitter(p.cfg.ForcedYield))
	}
}

// turnIsOver reports whether a turn has ended, and no yield has followed.
func (p *Pool) turnIsOver() bool { return p.turn != (machine.Turn{}) && p.turn.IsOver(p.now) }

// handOff gives permits that came back to the requests that wait here. It hands off all permits of a return or none:
// Redis could reject the rest of a divided return, and the answer to its request would say that none were given back.
func (p *Pool) handOff() {
	p.pendingReturns = p.handOffAll(p.pendingReturns)
	p.rejects.returns = p.handOffAll(p.rejects.returns)
}

// handOffAll hands off as many returns as match the waiters, and returns the others.
func (p *Pool) handOffAll(all []permitReturn) (rest []permitReturn) {
	if len(all) == 0 || !p.mayHandOff() {
		return all
	}
	p.startTurn()
	returns, n := p.exactMatch(all)
	p.serve(n, true)
	for _, one := range all[:returns] {
		p.effects.Answer(one.ref, machine.Answer{Kind: machine.Freed, Done: true, HandedOff: true})
	}
	return all[returns:]
}

// exactMatch returns the length of the longest prefix of returns whose permits exactly serve a prefix of the queue, and
// the number of those permits.
func (p *Pool) exactMatch(all []permitReturn) (returns, permits int) {
	returned, wanted, next := 0, 0, 0
	for _, req := range p.queue.Front(batch) {
		for wanted += req.N; returned < wanted; next++ {
			if next == len(all) {
				return returns, permits
			}
			returned += all[next].n
		}
		if returned == wanted {
			returns, permits = next, returned
		}
	}
	return returns, permits
}

// give sends a command that gives back the first of the returns, and returns the others. At the end of a turn, the
// permits are given back only if other processes wait.
func (permits) give(p *Pool, returns []permitReturn) (rest []permitReturn) {
	c := op{command: Command{Kind: Give, Leaves: p.leaves()}}
	if p.turnIsOver() && p.now >= p.wait.deferUntil && p.queue.Len() > 0 {
		c.command = Command{Kind: Yield, Forced: p.turn.IsForced(p.now)}
	}
	same := 0
	for same < len(returns) && c.command.N <= machine.MaxPermits-int64(returns[same].n) {
		c.command.N += int64(returns[same].n)
		same++
	}
	c.returns = returns[:same:same]
	p.start(c)
	return returns[same:]
}

// givesAgainAt returns the time at which rejected returns are given back again. It is sooner if a request waits, since
// that may need their permits.
func (p *Pool) givesAgainAt() Instant {
	if p.queue.Len() > 0 {
		return min(p.rejects.nextAt, p.rejects.triedAt+p.cfg.Poll)
	}
	return p.rejects.nextAt
}

// giveReplied handles the reply to a Give or a Yield.
func (p *Pool) giveReplied(r *Result) {
	c := p.op
	if r.Err == nil && len(p.rejects.returns) == 0 {
		p.rejects.tries = 0
	}
	switch {
	case r.Err == nil:
		p.end()
		p.counter.given(p, &c, r)
	case r.Transient && !c.expired: // it is sent again
	case c.Unsure:
		p.op.returns = p.answerOverdue(c.returns, math.MaxInt64, r.Err.Error())
		p.rejectWaiting(r)
		p.reportRejection()
	default:
		p.giveRejected(r)
	}
}

// given answers the requests that have given permits back. A Yield that saw no other process has not given them back,
// and another turn begins.
func (permits) given(p *Pool, c *op, r *Result) {
	if c.kind == Yield && r.N[0] == 0 {
		p.pendingReturns = slices.Concat(c.returns, p.pendingReturns)
		p.turn.Start(p.now, p.cfg.HandOffLimit, p.cfg.ForcedYield)
		return
	}
	for _, one := range c.returns {
		if r.N[0] <= 0 && !one.ifExists { // the replies of a Give and of a Yield differ
			p.refuseReturn(one.ref, machine.NoPermits, machine.NoNumber+"; nothing is given back")
			continue
		}
		p.effects.Answer(one.ref, machine.Answer{Kind: machine.Freed, Done: r.N[0] == 1})
	}
	if c.kind == Yield {
		p.turn = machine.Turn{}
		p.wait.deferUntil = p.now + p.cfg.OpenTime()
		p.trySoon()
	}
	if c.kind == Yield || c.command.Leaves {
		p.entry = 0
	}
}

// giveRejected handles a Give that changed nothing, or whose time is over. A return that a request still awaits is
// refused and dropped: its permits stay taken, as the answer says. Other rejected returns move to rejects, for a later
// command, until forgetAt.
func (p *Pool) giveRejected(r *Result) {
	c, why, forgotten, before := p.op, r.Err.Error(), false, len(p.rejects.returns)
	p.end()
	for _, one := range c.returns {
		switch {
		case one.ref != nil:
			p.refuseReturn(one.ref, machine.Rejected, why)
			continue
		case c.expired: // reported already, as forgotten
			continue
		case one.forgetAt == 0:
			one.forgetAt = p.now + machine.RepeatTime
		case p.now >= one.forgetAt:
			forgotten = true
			continue
		}
		p.rejects.returns = append(p.rejects.returns, one)
	}
	if forgotten {
		p.reportLost(why)
	}
	if len(p.rejects.returns) == before || before > 0 && p.now < p.givesAgainAt() {
		return // the rejection of others does not postpone the next try
	}
	if p.rejects.tries == 0 {
		p.reportRejectedReturn(why)
	}
	p.rejects.triedAt = p.now
	p.rejects.nextAt = p.now + p.longPause(p.rejects.tries)
	p.rejects.tries++
}
