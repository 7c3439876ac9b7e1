package semaphore

import (
	"cmp"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

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
// awaits is refused and dropped: its permits stay taken, as the answer says. Other rejected returns move to rejects,
// for a later command, until forgetAt.
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
