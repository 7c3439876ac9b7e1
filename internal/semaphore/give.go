package semaphore

import (
	"math"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// debt is permits that are to be given back.
type debt struct {
	n int
	// id is that of a count-down which has one; see CountDown.
	id string
	// ifExists: it is done, too, if there is no semaphore.
	ifExists bool
	// ref is the request that gives them back; nil if it is answered, or if there is none.
	ref any
	// until is when it is answered in any case.
	until Instant
	// forgetAt is when it is given up, 0 before Redis has rejected it.
	forgetAt Instant
}

// rejectedDebts are debts that no request awaits, and that Redis has rejected: it has not carried out their command, so
// that others may be sent before they are given back again.
type rejectedDebts struct {
	debts []debt
	// nextAt is when they are given back again if no request waits, triedAt when they were last rejected, and tries how
	// often.
	nextAt, triedAt Instant
	tries           int
}

// firstUntil is when the first of the debts is to be answered whose request is not; 0 if all are.
func firstUntil(debts []debt) Instant {
	for _, d := range debts {
		if d.ref != nil {
			return d.until
		}
	}
	return 0
}

// unconfirmed answers those debts whose time is over by then. They are given back all the same.
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

// handsOff reports whether permits that come back are given to the requests that wait here: as long as the
// process has its turn, which begins with the first of them.
func (p *Pool) handsOff() bool {
	if p.latch || p.queue.Len() == 0 || p.call.kind == Yield || p.now < p.wait.deferUntil {
		return false
	}
	if !p.turn.running {
		p.turn.running, p.turn.until = true, p.now+p.cfg.HandOffLimit
		if p.turn.forcedAt == 0 {
			p.turn.forcedAt = p.now + p.jitter(p.cfg.ForcedYield)
		}
	}
	return p.now < p.turn.until
}

// handOff gives permits that came back to the requests that wait here. It hands on all permits of a debt or none: Redis
// may refuse the rest, and the answer to the request that gives them back would be that none were.
func (p *Pool) handOff() {
	p.owed = p.handOn(p.owed)
	p.rejects.debts = p.handOn(p.rejects.debts)
}

// handOn hands on what it can of debts, and returns the rest.
func (p *Pool) handOn(all []debt) (rest []debt) {
	if len(all) == 0 || !p.handsOff() {
		return all
	}
	debts, n := p.whole(all)
	p.serve(n, true)
	for _, d := range all[:debts] {
		p.answer(d.ref, machine.Answer{Kind: machine.Freed, Done: true, HandedOff: true})
	}
	return all[debts:]
}

// whole returns the most debts that together are what so many of the first waiters want, and their permits.
func (p *Pool) whole(all []debt) (debts, permits int) {
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

// give gives back what is owed; at the end of a turn, only if others wait.
func (p *Pool) give() {
	if p.latch {
		p.countDown()
		return
	}
	c := call{command: Command{Kind: Give}}
	if p.turn.running && p.now >= p.turn.until && p.now >= p.wait.deferUntil && p.queue.Len() > 0 {
		c.command = Command{Kind: Yield, Listening: p.sub == listening, Forced: p.now >= p.turn.forcedAt}
	}
	same := 0
	for same < len(p.owed) && c.command.N <= mostPermits-int64(p.owed[same].n) {
		c.command.N += int64(p.owed[same].n)
		same++
	}
	c.debts, p.owed = p.owed[:same:same], p.owed[same:]
	p.start(c)
}

// mostPermits is the largest number of permits, as Redisson has it.
const mostPermits = 1<<31 - 1

// givesAgainAt is when what Redis has rejected is given back again: a request that waits may need it.
func (p *Pool) givesAgainAt() Instant {
	if p.queue.Len() > 0 {
		return min(p.rejects.nextAt, p.rejects.triedAt+p.cfg.Poll)
	}
	return p.rejects.nextAt
}

// giveAgain gives back what Redis has rejected, in a command without others: it may reject these debts alone.
func (p *Pool) giveAgain() {
	owed := p.owed
	p.owed, p.rejects.debts = p.rejects.debts, nil
	p.give()
	p.rejects.debts, p.owed = p.owed, owed
}

// gaveReply handles the reply to a Give or a Yield.
func (p *Pool) gaveReply(r *Result) {
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
			if r.N[0] == 0 && !d.ifExists {
				p.refuseReturn(d.ref, machine.NoPermits, noNumber+"; nothing is given back")
				continue
			}
			p.answer(d.ref, machine.Answer{Kind: machine.Freed, Done: r.N[0] == 1})
		}
		if c.kind == Yield {
			p.turn = turn{}
			p.wait.deferUntil = p.now + p.cfg.OpenTime()
			p.trySoon()
		} else {
			p.wait.free = r.N[1]
		}
	case r.Transient && !c.expired:
		p.again(r)
	case c.unsure:
		p.call.debts = p.unconfirmed(c.debts, math.MaxInt64, r.Err.Error())
		p.rejected(r)
		p.again(r)
	default:
		p.gaveInVain(r)
	}
}

// gaveInVain handles a rejection that does not pass: nothing was given back. What a request gives back stays taken, as
// its answer says; what none does is given back later, by another command.
func (p *Pool) gaveInVain(r *Result) {
	c, why, forgotten, before := p.call, r.Err.Error(), false, len(p.rejects.debts)
	p.end()
	for _, d := range c.debts {
		switch {
		case d.ref != nil:
			p.refuseReturn(d.ref, machine.Rejected, why)
			continue
		case c.expired: // which is reported
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
