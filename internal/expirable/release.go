package expirable

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// releaseBatch bounds the number of holds whose permits one command gives back; the reply has a bit for each. Together
// they have at most machine.MaxTogether permits.
const releaseBatch = 32

// release ends a hold. The permits go to the first waiter, or back to Redis.
func (s *Semaphore) release(h *hold, shown bool, ref any) {
	handsOff := !s.closing && !shown && !h.fixed && !s.extends(h)
	s.remove(h)
	s.failExtensions(h.id, machine.NotHeld, "the permit was released")
	b := permitReturn{permits: h.permits, ref: ref, until: h.takenUntil()}
	if s.queue.Len() > 0 && handsOff && h.until-s.now > s.cfg.Watchdog/3 {
		if next := s.queue.Head(); next.Lease == 0 && !next.Shown && next.Count == h.permits.N {
			if !s.turn.IsOver(s.now) {
				s.queue.Pop()
				if s.reserved == next.ID && s.queue.Len() > 0 && s.queue.Head().reserves() {
					s.reserved = s.queue.Head().ID // Redis knows only the process
				}
				s.grant(next, hold{
					permits: h.permits, sentAt: h.sentAt, until: h.until, unanswered: h.unanswered, longest: h.longest, restored: h.restored,
				}, true)
				s.effects.Answer(ref, machine.Answer{Kind: machine.Freed, HandedOff: true})
				return
			}
			b.yields = true
			s.startTurn()
		}
	}
	s.giveBack(b)
}

// startTurn starts the first turn, or another one.
func (s *Semaphore) startTurn() { s.turn.Start(s.now, s.cfg.HandOffLimit, s.cfg.ForcedYield) }

// nextRelease gives back the first permits that are to be given back.
func (s *Semaphore) nextRelease() bool {
	if len(s.pendingReturns) == 0 || s.now < s.returnAt {
		return false
	}
	s.endReleasedByID()
	o := op{kind: Release, count: fits(min(len(s.pendingReturns), releaseBatch), func(i int) int { return s.pendingReturns[i].permits.N })}
	o.yields = slices.ContainsFunc(s.pendingReturns[:o.count], func(b permitReturn) bool { return b.yields })
	s.start(o)
	return true
}

func (s *Semaphore) releaseCommand(o *op, c *Command) {
	for _, b := range s.pendingReturns[:o.count] {
		c.add(b.permits)
	}
}

// endReleasedByID ends the holds of permits that the next command gives back by their ids, and that were granted in the
// meantime.
func (s *Semaphore) endReleasedByID() {
	for i, b := range s.pendingReturns[:min(len(s.pendingReturns), releaseBatch)] {
		if !b.unknown {
			continue
		}
		if at := slices.IndexFunc(s.holds, func(h *hold) bool { return h.permits.Has(b.permits.First) }); at >= 0 {
			h := s.holds[at]
			s.pendingReturns = slices.Clone(s.pendingReturns)
			b.unknown, b.permits, b.until = false, h.permits, h.takenUntil()+s.cfg.CallTimeout
			s.pendingReturns[i] = b
			s.nextEnd.Add(b.until)
			s.end(h, machine.Forced, "it was released by its id")
		}
	}
}

// releaseReplied answers the requests that give permits back. After a yield, other processes go first if any listen,
// and now and then in any case, since some wait without listening.
func (s *Semaphore) releaseReplied(o op, r Result) {
	for i, b := range s.pendingReturns[:o.count] {
		switch {
		case r.Valid[i]:
			s.effects.Answer(b.ref, machine.Answer{Kind: machine.Freed})
		case b.unknown:
			s.effects.Refuse(b.ref, machine.NotFreed, machine.NotHeld, "there is no such permit: it has expired, or was released before")
		default:
			s.effects.Answer(b.ref, machine.Answer{Kind: machine.NotFreed, Reason: machine.Lost, Noticed: true, Detail: gone})
		}
	}
	s.pendingReturns = s.pendingReturns[o.count:]
	others := r.Receivers
	if s.sub.State == machine.Listening {
		others--
	}
	switch {
	case o.yields && (others > 0 || s.turn.IsForced(s.now)):
		s.turn.ForcedAt = s.now + s.cfg.ForcedYield
		s.wait.NextAt = s.now + s.cfg.OpenTime()
		s.wait.defers = true
	case !s.wait.defers && s.queue.Len() > 0:
		s.wait.NextAt = s.now
	}
}

// releaseFailed ends a release that Redis refuses for good. Permits that an earlier try may have freed are given back
// again later, by another command.
func (s *Semaphore) releaseFailed(o *op, r Result) (over bool) {
	if r.Transient {
		return false
	}
	reason, detail := r.Why()
	refused := s.pendingReturns[:o.count]
	s.pendingReturns = slices.Clip(s.pendingReturns[o.count:])
	for _, b := range refused {
		unsure := o.Unsure || b.rejections > 0
		answer := machine.Answer{Kind: machine.NotFreed, Reason: reason, Detail: detail}
		if unsure {
			answer.Reason, answer.Detail = machine.Unavailable, "it may have been released: "+detail
		}
		s.effects.Answer(b.ref, answer)
		switch {
		case unsure && !s.closing && s.now >= b.until: // it has expired
		case unsure && !s.closing:
			b.ref = nil
			s.returnAt = s.now + s.backoff(b.rejections)
			b.rejections++
			s.pendingReturns = append(s.pendingReturns, b)
			s.nextEnd.Add(b.until)
		case !b.unknown:
			s.effects.Add(machine.Effect{Kind: machine.LeaveToExpire, Answer: machine.Answer{Until: b.until}})
		}
	}
	return true
}

// expireBack answers the requests that have waited for long enough, and forgets the permits that have
// expired.
func (s *Semaphore) expireBack() {
	expired := func(b permitReturn) bool { return s.now >= b.until }
	busy := s.releasing()
	if busy > 0 && !s.main.InFlight && !slices.ContainsFunc(s.pendingReturns[:busy], func(b permitReturn) bool { return !expired(b) }) {
		s.main, busy = op{}, 0
	}
	var stay []permitReturn
	for i, b := range s.pendingReturns {
		if b.ref != nil && (s.now >= b.answerBy || expired(b)) {
			s.effects.Refuse(b.ref, machine.NotFreed, machine.Unavailable, "Redis has not confirmed the release")
			b.ref = nil
		}
		if i < busy || !expired(b) {
			stay = append(stay, b)
		}
	}
	s.pendingReturns = stay
}
