package expirable

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// findNextEnd finds nextEnd anew. What is under way ends with its command.
func (s *Semaphore) findNextEnd() {
	s.nextEnd = 0
	for _, h := range s.holds {
		s.nextEnd.Add(h.end())
	}
	for _, e := range s.extensions {
		s.nextEnd.Add(e.by)
	}
	for i, b := range s.pendingReturns {
		if b.ref != nil {
			s.nextEnd.Add(b.answerBy)
		}
		if i >= s.releasing() {
			s.nextEnd.Add(b.until)
		}
	}
	for _, one := range s.sets[s.setting():] {
		s.nextEnd.Add(one.until)
	}
}

// endExpiredHolds ends the holds that have lasted until now.
func (s *Semaphore) endExpiredHolds() {
	for _, h := range s.holds {
		if s.now < h.end() {
			continue
		}
		reason, detail := machine.Expired, "no renewal was made in time: the process was stopped, asleep or too busy"
		switch {
		case h.maxEnd != 0 && s.now >= h.maxEnd:
			reason, detail = machine.MaxHold, "the hold has reached its max hold"
		case h.fixed, h.leaseEnd != 0 && s.now >= h.leaseEnd:
			detail = "its fixed lease is over"
		case s.riskErr != "":
			detail = "no renewal succeeded in time: " + s.riskErr
		}
		s.lose(h, reason, detail)
	}
}

// lose ends a hold that was not released, and gives back its permits.
func (s *Semaphore) lose(h *hold, reason machine.Reason, detail string) {
	s.end(h, reason, detail)
	s.giveBack(permitReturn{permits: h.permits, until: h.takenUntil()})
}

const gone = "the permit is gone from Redis: it was released by its id, deleted, evicted or flushed, or it expired"

// endVanished ends a hold of which a permit is gone from Redis. The other permits go back, and so do all that a Restore
// may have taken again since.
func (s *Semaphore) endVanished(h *hold) {
	if h.permits.N == 1 && !h.restored {
		s.end(h, machine.Gone, gone)
	} else {
		s.lose(h, machine.Gone, gone)
	}
}

// end ends a hold that was not released, and notifies its holder.
func (s *Semaphore) end(h *hold, reason machine.Reason, detail string) {
	s.lost.Add(h.id, reason)
	s.failExtensions(h.id, machine.Lost, detail)
	s.effects.Add(machine.Effect{Kind: machine.NotifyLost, Ref: h.ref, Answer: machine.Answer{HoldID: h.id, Reason: reason, Detail: detail}})
	s.remove(h)
}

// refuseOver refuses a request about a hold that is over.
func (s *Semaphore) refuseOver(id uint64, ref any, kind machine.AnswerKind) {
	a := machine.Answer{
		Kind: kind, Reason: machine.NotHeld,
		Detail: "there is no such permit: it was never granted, or was released before",
	}
	if why := s.lost.Why(id); why != 0 {
		a.Reason, a.Detail = machine.Lost, "the permit was lost before: "+why.String()
	}
	s.effects.Answer(ref, a)
}

// remove takes out a hold.
func (s *Semaphore) remove(h *hold) {
	s.holds = without(s.holds, h)
	s.effects.Add(machine.Effect{Kind: machine.HoldEnded, Ref: h.ref})
}

// giveBack has permits given back in Redis.
func (s *Semaphore) giveBack(b permitReturn) {
	b.answerBy = s.now + s.cfg.TryTime()
	b.until += s.cfg.CallTimeout // the command that set the expiry came later than it was sent
	s.pendingReturns, s.returnAt = append(s.pendingReturns, b), 0
	s.nextEnd.Add(b.answerBy)
	s.nextEnd.Add(b.until)
}

// failExtensions refuses the extensions of a hold.
func (s *Semaphore) failExtensions(id uint64, reason machine.Reason, detail string) {
	for _, e := range s.extensions {
		if e.hold == id {
			s.answerExtension(e, machine.Answer{Kind: machine.NotDone, Reason: reason, Detail: detail})
		}
	}
}

// answerExtension answers an extension, which is over.
func (s *Semaphore) answerExtension(e *extension, a machine.Answer) {
	s.extensions, s.looked = without(s.extensions, e), 0 // another one of the hold may be next
	if e.ensures != 0 {
		a = e.asEnsureAnswer(a)
	}
	s.effects.Answer(e.ref, a)
}

// asEnsureAnswer converts the answer to the extension for an Ensure.
func (e *extension) asEnsureAnswer(a machine.Answer) machine.Answer {
	switch {
	case a.Kind != machine.Extended:
		return a
	case a.Until >= e.ensures:
		return machine.Answer{Kind: machine.Ensured, Until: a.Until}
	}
	return machine.Answer{Kind: machine.NotDone, Reason: machine.Unavailable, Detail: "Redis has not renewed the lease in time"}
}
