package expirable

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// releaseBatch bounds how many permits one command gives back; the reply has a bit for each.
const releaseBatch = 32

// giveBack is a permit that is to be given back in Redis.
type giveBack struct {
	permit machine.PermitID
	// ref is the request that awaits it until answerBy; nil if none does.
	ref      any
	answerBy Instant
	// unknown: it is not known to be a permit of this process.
	unknown bool
	// yields: it is given back although a request waits here.
	yields bool
	// until is when it has expired, or when there is no use in trying.
	until Instant
	// rejections is how often Redis has rejected it since a try that may have freed it.
	rejections int
}

func (p *Semaphore) giveBack(b giveBack) {
	b.answerBy = p.now + p.cfg.TryTime()
	b.until += p.cfg.CallTimeout // the command that set the expiry came later than it was sent
	p.back, p.backAt = append(p.back, b), 0
	p.wakeAt.sooner(min(b.answerBy, b.until))
}

// release ends a hold. The permit goes to the first waiter, or back to Redis.
func (p *Semaphore) release(h *hold, shown bool, ref any) {
	p.remove(h)
	b := giveBack{permit: h.permit, ref: ref, until: h.until}
	if p.queue.Len() > 0 && !p.closing && !shown && !h.fixed && h.until-p.now > p.cfg.Watchdog/3 {
		if next := p.queue.Head(); next.Lease == 0 && !next.Shown {
			if p.now < p.turnUntil {
				p.queue.Pop()
				p.grant(next, hold{permit: h.permit, sentAt: h.sentAt, until: h.until}, true)
				p.answer(ref, machine.Answer{Kind: machine.Freed, HandedOff: true})
				return
			}
			b.yields, p.turnUntil = true, p.now+p.cfg.HandOffLimit
		}
	}
	p.giveBack(b)
}

func (p *Semaphore) startRelease() {
	o := op{kind: Release, count: min(len(p.back), releaseBatch)}
	o.yields = slices.ContainsFunc(p.back[:o.count], func(b giveBack) bool { return b.yields })
	p.start(o)
}

// released answers the requests that have given back. After a yield, others come first if any listen, and
// now and then in any case, since some wait without listening.
func (p *Semaphore) released(o op, r Result) {
	for i, b := range p.back[:o.count] {
		switch {
		case r.Valid[i]:
			p.answer(b.ref, machine.Answer{Kind: machine.Freed})
		case b.unknown:
			p.answer(b.ref, machine.Answer{Kind: machine.NotFreed, Reason: machine.NotHeld, Detail: "there is no such permit: it has expired, or was released before"})
		default:
			p.answer(b.ref, machine.Answer{Kind: machine.NotFreed, Reason: machine.Lost, Noticed: true, Detail: gone})
		}
	}
	p.back = p.back[o.count:]
	others := r.Receivers
	if p.sub == listening {
		others--
	}
	switch {
	case o.yields && (others > 0 || p.now >= p.forcedYieldAt):
		p.forcedYieldAt = p.now + p.cfg.ForcedYield
		p.tryAt(p.now + p.cfg.OpenTime())
		p.wait.defers = true
	case !p.wait.defers && p.queue.Len() > 0:
		p.tryAt(p.now)
	}
}

const gone = "the permit is gone from Redis: it was released by its id, deleted, evicted or flushed, or it expired"

// releaseRefused ends a release that Redis refuses for good. Permits that an earlier try may have freed are given back
// again later, by another command.
func (p *Semaphore) releaseRefused(o *op, reason machine.Reason, detail string) {
	refused := p.back[:o.count]
	p.back = slices.Clip(p.back[o.count:])
	for _, b := range refused {
		unsure := o.unsure || b.rejections > 0
		answer := machine.Answer{Kind: machine.NotFreed, Reason: reason, Detail: detail}
		if unsure {
			answer.Reason, answer.Detail = machine.Unavailable, "it may have been released: "+detail
		}
		p.answer(b.ref, answer)
		switch {
		case unsure && !p.closing:
			b.ref = nil
			p.backAt = p.now + p.backoff(b.rejections)
			p.wakeAt.sooner(p.backAt)
			b.rejections++
			p.back = append(p.back, b)
		case !b.unknown:
			p.effect(machine.Effect{Kind: machine.LeaveToExpire, Answer: machine.Answer{Until: b.until}})
		}
	}
}

// releasing is how many of the first of back are under way.
func (p *Semaphore) releasing() int {
	if p.main.kind == Release {
		return p.main.count
	}
	return 0
}

// expireBack answers the requests that have waited for long enough, and forgets the permits that have
// expired.
func (p *Semaphore) expireBack() {
	expired := func(b giveBack) bool { return p.now >= b.until }
	busy := p.releasing()
	if busy > 0 && !p.main.inFlight && !slices.ContainsFunc(p.back[:busy], func(b giveBack) bool { return !expired(b) }) {
		p.main, busy = op{}, 0
	}
	var stay []giveBack
	for i, b := range p.back {
		if b.ref != nil && (p.now >= b.answerBy || expired(b)) {
			p.answer(b.ref, machine.Answer{Kind: machine.NotFreed, Reason: machine.Unavailable, Detail: "Redis has not confirmed the release"})
			b.ref = nil
		}
		if i < busy || !expired(b) {
			stay = append(stay, b)
		}
	}
	p.back = stay
}
