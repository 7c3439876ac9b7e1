package semaphore

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

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

// isDeferred reports whether the process leaves the permits to others for now.
func (p *Pool) isDeferred() bool { return p.now < p.wait.deferUntil }

// mayHandOff reports whether permits that come back may go to local waiters.
func (p *Pool) mayHandOff() bool {
	return p.queue.Len() > 0 && !p.counter.together() && !p.turnIsOver() && !p.isDeferred() && p.op.command.Kind != Yield
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
		p.answerHandedOff(one.ref)
	}
	return all[returns:]
}

// handOffOne hands the permits of a release off if the first waiter wants as many and no other return comes before, and
// reports whether it has. That needs no memory for a return.
func (p *Pool) handOffOne(n int, ref any) bool {
	if len(p.pendingReturns) > 0 || !p.mayHandOff() || p.queue.Head().N != n {
		return false
	}
	p.startTurn()
	p.serve(n, true)
	p.answerHandedOff(ref)
	return true
}

func (p *Pool) answerHandedOff(ref any) {
	p.effects.Answer(ref, machine.Answer{Kind: machine.Freed, Done: true, HandedOff: true})
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

// rejectedReturns are returns that no request awaits, and that Redis has rejected. Their command had no effect, so
// other commands may be sent before the returns are given back again.
type rejectedReturns struct {
	returns []permitReturn
	// nextAt is the time of the next try if no request waits.
	nextAt Instant
	// triedAt is the time of the last rejection.
	triedAt Instant
	// tries counts the rejections: the pauses grow with it.
	tries int
}

// giveRejectedAgain gives rejected returns back again if that is due, and reports whether it is. Their command is a
// separate one, since Redis may reject these returns and accept others.
func (p *Pool) giveRejectedAgain() bool {
	if len(p.rejects.returns) == 0 || p.now < p.givesAgainAt() {
		return false
	}
	p.rejects.returns = p.counter.give(p, p.rejects.returns)
	return true
}

// givesAgainAt returns the time at which rejected returns are given back again. It is sooner if a request waits, since
// that may need their permits.
func (p *Pool) givesAgainAt() Instant {
	if p.queue.Len() > 0 {
		return min(p.rejects.nextAt, p.rejects.triedAt+p.cfg.Poll)
	}
	return p.rejects.nextAt
}

// dropRejected handles the end of a Give that changed nothing, or whose time is over. A return that a request still
// awaits is refused and dropped: its permits stay taken, as the answer says. Other rejected returns move to rejects, for
// a later command, until forgetAt.
func (p *Pool) dropRejected(o op, r Result) {
	why, before, forgotten := r.Err.Error(), len(p.rejects.returns), false
	for _, one := range o.returns {
		switch {
		case one.ref != nil:
			p.refuseReturn(one.ref, machine.Rejected, why)
		case o.expired: // reported already, as forgotten
		case one.forgetAt != 0 && p.now >= one.forgetAt:
			forgotten = true
		default:
			one.forgetAt = cmp.Or(one.forgetAt, p.now+machine.RepeatTime)
			p.rejects.returns = append(p.rejects.returns, one)
		}
	}
	if forgotten {
		p.reportForgotten(why)
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
