package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// leaving is the last mode of a lock actor that was given up: it refuses what is
// still in its mailbox, and stops when that is empty and the key is released.
type leaving struct {
	reason lock.Reason
	detail string
	// sent is how many requests were sent before the gate was closed.
	sent uint64
	// cleanups are what is done so that nothing is left in Redis; the list never changes.
	// releases is how many of them are not known to have been carried out.
	cleanups []cleanup
	releases int
	// gone: the guardian has been asked to stop the actor.
	gone bool
	// moving: requests go back to the guardian, who has another lock actor take them.
	moving bool
}

// cleanup frees something that the lock may hold in Redis. It calls done once, on any goroutine; if it is
// not certain that nothing is left, that expires after ttl.
type cleanup struct {
	ttl time.Duration
	run func(done func(certain bool))
}

// giveUp tells everybody that the lock actor has failed them, releases the key, and
// lets the actor leave. It needs nothing of the lock but its lists.
func (s *lockState) giveUp(reason lock.Reason, detail string) {
	holders, pending := s.lock.Outstanding()
	before, term := s.lock, s.lock.Term()
	s.lock = s.variant.fresh()
	s.stopAlarm()
	s.rt.table.drop(&s.keyActor)
	s.leaving = &leaving{reason: reason, detail: detail, sent: s.gate.close(), cleanups: s.variant.cleanups(before)}
	s.leaving.releases = len(s.leaving.cleanups)

	s.until.Store(0)
	for _, holder := range holders {
		s.perform(&lock.Effect{Kind: lock.NotifyLost, Ref: holder.Ref, Term: term, Answer: lock.Answer{HoldID: holder.ID, Reason: reason, Detail: detail}})
	}
	for _, ref := range pending {
		s.perform(&lock.Effect{Kind: lock.Reply, Ref: ref, Answer: refusal(ref.(replier).asked(), reason, detail)})
	}
	for by := range s.inspections {
		s.perform(&lock.Effect{Kind: lock.Reply, Ref: by, Answer: refusal(OpInspect, reason, detail)})
	}
	s.inspections = nil
	s.gauge()
	s.stopListening()
	s.cleanUp()
	s.leaving.check(s)
}

// cleanUp has everything released that the lock may hold in Redis; the actor is told when that
// is done, or has no use any more.
func (s *lockState) cleanUp() {
	for _, each := range s.leaving.cleanups {
		each.run(func(certain bool) {
			if !certain {
				s.rt.server.LeaveToExpire(s.rt.Now() + each.ttl)
			}
			s.rt.deliver(s.pid, cleanedUp{})
		})
	}
}

// receive refuses a request.
func (l *leaving) receive(s *lockState, m any, sender *actor.PID) {
	if _, stopping := m.(*actor.Stopping); stopping {
		return
	}
	s.accepted = m
	switch late := m.(type) {
	case *replied:
		if late.result.Outcome == lock.Done { // after the release that was sent when the lock was given up
			l.releases += len(l.cleanups)
			s.cleanUp()
		}
	case cleanedUp:
		l.releases--
	case abandon:
		l.abandon(s)
	default:
		if !l.moving || !isRequest(m) {
			s.refuse(m, sender, l.reason, l.detail)
		} else if !s.rt.deliver(s.rt.guardian, &admitted{key: s.key, message: m, sender: sender}) {
			s.rt.tooLate(m, sender)
		}
	}
	l.check(s)
}

// abandon stops waiting for Redis; the requests that are on their way are still refused.
func (l *leaving) abandon(s *lockState) {
	l.releases = 0
	l.check(s)
}

// check leaves as soon as no request awaits an answer.
func (l *leaving) check(s *lockState) {
	if l.releases <= 0 && s.seen >= l.sent && !l.gone {
		l.gone = true
		s.rt.deliver(s.rt.guardian, &retired{state: &s.keyActor})
	}
}
