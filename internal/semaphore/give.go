package semaphore

import (
	"math"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// debt is permits that are to be given back.
type debt struct {
	n int
	// id is the id of a count-down; empty if it has none. See CountDown.
	id string
	// ifExists: the request is not refused if there is no semaphore.
	ifExists bool
	// ref is the request that gives the permits back; nil if it is answered, or if there is none.
	ref any
	// until is the time by which the request is answered in any case.
	until Instant
	// forgetAt is the time at which the debt is given up; 0 before Redis has rejected it.
	forgetAt Instant
}

// rejectedDebts are debts that no request awaits, and that Redis has rejected. Their command had no effect, so other
// commands may be sent before the debts are given back again.
type rejectedDebts struct {
	debts []debt
	// nextAt is the time of the next try if no request waits. triedAt is the time of the last rejection. tries counts
	// the rejections: the pauses grow with it.
	nextAt, triedAt Instant
	tries           int
}

// firstUntil returns the time by which the first request that awaits one of the debts is answered; 0 if there is none.
func firstUntil(debts []debt) Instant {
	for _, d := range debts {
		if d.ref != nil {
			return d.until
		}
	}
	return 0
}

// unconfirmed answers the debts whose time is over by now. They are given back all the same.
func (p *Pool) unconfirmed(debts []debt, now Instant, why string) []debt {
	if until := firstUntil(debts); until == 0 || now < until {
		return debts
	}
	debts = slices.Clone(debts)
	for i, d := range debts {
		if d.ref != nil && now >= d.until {
			p.refuseReturn(d.ref, machine.Unavailable, why+"; "+p.words("the permits are given back", "it is counted down")+" in the background")
			debts[i].ref = nil
		}
	}
	return debts
}

// mayHandOff reports whether permits that come back may go to local waiters.
func (p *Pool) mayHandOff() bool {
	over := p.turn.running && p.now >= p.turn.until
	return !over && !p.latch && p.queue.Len() > 0 && p.call.kind != Yield && p.now >= p.wait.deferUntil
}

// startTurn starts a turn if none is running.
func (p *Pool) startTurn() {
	if p.turn.running {
		return
	}
	p.turn.running, p.turn.until = true, p.now+p.cfg.HandOffLimit
	if p.turn.nextForcedYield == 0 {
		p.turn.nextForcedYield = p.now + p.jitter(p.cfg.ForcedYield)
	}
}

// handOff gives permits that came back to the requests that wait here. It hands on all permits of a debt or none. Redis
// may reject the rest of a divided debt, and the answer to its request would say that no permits were given back.
func (p *Pool) handOff() {
	p.owed = p.handOn(p.owed)
	p.rejects.debts = p.handOn(p.rejects.debts)
}

// handOn hands on as many debts as match the waiters, and returns the others.
func (p *Pool) handOn(all []debt) (rest []debt) {
	if len(all) == 0 || !p.mayHandOff() {
		return all
	}
	p.startTurn()
	debts, n := p.exactMatch(all)
	p.serve(n, true)
	for _, d := range all[:debts] {
		p.effects.Answer(d.ref, machine.Answer{Kind: machine.Freed, Done: true, HandedOff: true})
	}
	return all[debts:]
}

// exactMatch returns the length of the longest prefix of debts whose permits exactly serve a prefix of the queue, and
// the number of those permits.
func (p *Pool) exactMatch(all []debt) (debts, permits int) {
	owed, wanted, next := 0, 0, 0
	for _, req := range p.queue.Front(batch) {
		for wanted += req.N; owed < wanted; next++ {
			if next == len(all) {
				return debts, permits
			}
			owed += all[next].n
		}
		if owed == wanted {
			debts, permits = next, owed
		}
	}
	return debts, permits
}

// give sends a command that gives back the first of the debts, and returns the others. At the end of a turn, the
// permits are given back only if other processes wait.
func (p *Pool) give(debts []debt) (rest []debt) {
	if p.latch {
		return p.countDown(debts)
	}
	c := call{command: Command{Kind: Give}}
	if p.turn.running && p.now >= p.turn.until && p.now >= p.wait.deferUntil && p.queue.Len() > 0 {
		c.command = Command{Kind: Yield, Listening: p.sub == machine.Listening, Forced: p.now >= p.turn.nextForcedYield}
	}
	same := 0
	for same < len(debts) && c.command.N <= mostPermits-int64(debts[same].n) {
		c.command.N += int64(debts[same].n)
		same++
	}
	c.debts = debts[:same:same]
	p.start(c)
	return debts[same:]
}

// mostPermits is the largest number of permits: that of Redisson.
const mostPermits = 1<<31 - 1

// givesAgainAt returns the time at which rejected debts are given back again. It is sooner if a request waits, since
// that may need their permits.
func (p *Pool) givesAgainAt() Instant {
	if p.queue.Len() > 0 {
		return min(p.rejects.nextAt, p.rejects.triedAt+p.cfg.Poll)
	}
	return p.rejects.nextAt
}

// giveReplied handles the reply to a Give or a Yield.
func (p *Pool) giveReplied(r *Result) {
	c := p.call
	if r.Err == nil && len(p.rejects.debts) == 0 {
		p.rejects.tries = 0
	}
	switch {
	case r.Err == nil && c.kind == Yield && r.N[0] == 0:
		p.end()
		p.owed = slices.Concat(c.debts, p.owed)
		p.turn.until = p.now + p.cfg.HandOffLimit
	case r.Err == nil && p.latch:
		p.end()
		p.countedDown(&c, r.N[0])
	case r.Err == nil:
		p.end()
		for _, d := range c.debts {
			if r.N[0] <= 0 && !d.ifExists { // the replies of a Give and of a Yield differ
				p.refuseReturn(d.ref, machine.NoPermits, noNumber+"; nothing is given back")
				continue
			}
			p.effects.Answer(d.ref, machine.Answer{Kind: machine.Freed, Done: r.N[0] == 1})
		}
		if c.kind == Yield {
			p.turn = turn{}
			p.wait.deferUntil = p.now + p.cfg.OpenTime()
			p.trySoon()
		} else {
			p.wait.free = r.N[1]
		}
	case r.Transient && !c.expired:
		p.again()
	case c.Unsure:
		p.call.debts = p.unconfirmed(c.debts, math.MaxInt64, r.Err.Error())
		p.rejectWaiting(r)
		p.again()
	default:
		p.giveRejected(r)
	}
}

// giveRejected handles a Give that changed nothing, or whose time is over. A debt that a request still awaits is
// refused and dropped: its permits stay taken, as the answer says. Other rejected debts move to rejects, for a later
// command, until forgetAt.
func (p *Pool) giveRejected(r *Result) {
	c, why, forgotten, before := p.call, r.Err.Error(), false, len(p.rejects.debts)
	p.end()
	for _, d := range c.debts {
		switch {
		case d.ref != nil:
			p.refuseReturn(d.ref, machine.Rejected, why)
			continue
		case c.expired: // reported already, as forgotten
			continue
		case d.forgetAt == 0:
			d.forgetAt = p.now + repeatTime
		case p.now >= d.forgetAt:
			forgotten = true
			continue
		}
		p.rejects.debts = append(p.rejects.debts, d)
	}
	if forgotten {
		p.forget(why)
	}
	if len(p.rejects.debts) == before || before > 0 && p.now < p.givesAgainAt() {
		return // the rejection of others does not postpone the next try
	}
	if p.rejects.tries == 0 {
		p.owes(why)
	}
	p.rejects.triedAt = p.now
	p.rejects.nextAt = p.now + p.longPause(p.rejects.tries)
	p.rejects.tries++
}
