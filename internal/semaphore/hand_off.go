package semaphore

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// Handing permits off: those that come back go to requests that wait in this process, until its turn is over.

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
