package expirable

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// nextSet sends the first of the sets.
func (s *Semaphore) nextSet() bool {
	if len(s.sets) == 0 {
		return false
	}
	s.start(op{kind: Set, until: s.sets[0].until})
	return true
}

func (s *Semaphore) setCommand(_ *op, c *Command) {
	if c.Mode, c.Count = s.sets[0].mode, s.sets[0].count; c.Mode == Restore {
		c.Lease = s.cfg.Watchdog
		c.IDs, c.Leases = s.restored()
	}
}

// restored returns the permits that this process holds, for a Restore, and for how long each is trusted, or may be once
// an extension under way is confirmed.
func (s *Semaphore) restored() (ids []machine.PermitID, rests []time.Duration) {
	s.holds = slices.Clone(s.holds)
	for i, h := range s.holds {
		until := h.until
		if s.extends(h) {
			until = h.takenUntil()
		}
		if rest := until - s.now; rest > 0 {
			ids, rests = h.permits.AppendTo(ids), append(rests, slices.Repeat([]time.Duration{rest}, h.permits.N)...)
			again := *h
			again.restored = true
			s.holds[i] = &again
		}
	}
	return ids, rests
}

func (s *Semaphore) setReplied(o op, r Result) {
	mode := s.sets[0].mode
	if mode == Restore {
		s.restoreReplied(r)
	}
	s.answerSet(machine.Answer{Kind: machine.Changed, Done: r.Done})
	for mode == SetIfUnset && len(s.sets) > 0 && s.sets[0].mode == SetIfUnset && s.sets[0].until <= o.sentAt+s.cfg.TryTime() {
		s.answerSet(machine.Answer{Kind: machine.Changed}) // it came before, and the number is set
	}
}

func (s *Semaphore) setFailed(o *op, r Result) (over bool) {
	if r.Transient && s.now < o.until {
		return false
	}
	reason, detail := r.Why()
	if s.sets[0].mode == Restore {
		s.restoreFailed(r, reason, detail)
	}
	if o.Unsure {
		reason, detail = machine.Unavailable, machine.MaybeDone+detail
	}
	s.answerSet(machine.Answer{Kind: machine.NotDone, Reason: reason, Detail: detail})
	return true
}

// restoreReplied schedules the next try for when the number is set at the earliest. If that is not
// now, the tries are refused.
func (s *Semaphore) restoreReplied(r Result) {
	s.wait.NextAt = s.now + r.Wait
	if s.wait.LastErr = ""; r.Wait <= 0 {
		return
	}
	s.wait.Refused, s.wait.lastReason, s.wait.LastErr = true, machine.TimedOut, beingSet
	later := false
	for _, req := range s.queue.RemoveTries(func(req *Request) bool {
		later = later || req.ID > s.wait.unset
		return req.ID <= s.wait.unset
	}) {
		s.refuse(req, machine.NoPermits, fmt.Sprintf("%s; it is set again in %v, when all leases from before are over", machine.NoNumber, r.Wait))
	}
	if later {
		s.wait.NextAt = s.now
	}
}

// restoreFailed schedules another try, or refuses all requests if that has no use.
func (s *Semaphore) restoreFailed(r Result, reason machine.Reason, detail string) {
	for _, req := range s.queue.Remove(func(req *Request) bool { return req.Try || !r.Transient }) {
		s.refuse(req, reason, detail)
	}
	s.wait.Failed(detail, s.now+s.backoff(s.wait.Tries))
}

// answerSet answers the first of the sets, whose command is over. If the command has failed, the next set comes before
// an Acquire, which may need it.
func (s *Semaphore) answerSet(a machine.Answer) {
	if a.Kind == machine.NotDone {
		s.after = 0
	}
	s.effects.Answer(s.sets[0].ref, a)
	s.sets = s.sets[1:]
}

// expireSets answers the sets that have not been begun in time. A set under way ends with its command.
func (s *Semaphore) expireSets() {
	busy := s.setting()
	stay := slices.Clip(s.sets[:busy])
	for _, one := range s.sets[busy:] {
		if s.now < one.until {
			stay = append(stay, one)
			continue
		}
		s.effects.Refuse(one.ref, machine.NotDone, machine.Unavailable, "Redis has not answered in time")
	}
	s.sets = stay
}
