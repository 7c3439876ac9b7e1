package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// leaving is the last mode of a lock actor that was given up: it refuses what is
// still in its mailbox, and stops when that is empty and the key is released.
type leaving struct {
	reason machine.Reason
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

// giveUp answers all requests and notifies all holders, releases the key, and lets the actor leave. Unless it awaits
// Redis, the actor leaves without its word.
func (s *lockState) giveUp(reason machine.Reason, detail string, awaits bool) {
	s.stopAlarm()
	s.rt.table.drop(s)
	s.leaving = &leaving{reason: reason, detail: detail, sent: s.gate.close()}
	s.leaving.cleanups = s.variant.giveUp(reason, detail, awaits)
	s.leaving.releases = len(s.leaving.cleanups)
	for call := range s.inspections {
		s.perform(&machine.Effect{Kind: machine.Reply, Ref: call, Answer: request.Refusal(request.OpInspect, reason, detail)})
	}
	s.inspections = nil
	s.observeStep()
	s.stopListening()
	s.cleanUp()
	if !awaits {
		s.leaving.releases = 0
	}
	s.leaving.check(s)
}

// endAll notifies all holders and refuses all who wait. It needs nothing of the machine but its lists, and returns it.
func (s *lockState) endAll(reason machine.Reason, detail string) (before machine.Machine) {
	holders, pending := s.lock.Outstanding()
	before, term := s.lock, s.lock.Term()
	s.lock = s.variant.fresh()
	s.until.Store(0)
	for _, holder := range holders {
		s.perform(&machine.Effect{Kind: machine.NotifyLost, Ref: holder.Ref, Term: term, Answer: machine.Answer{HoldID: holder.ID, Reason: reason, Detail: detail}})
	}
	for _, ref := range pending {
		s.perform(&machine.Effect{Kind: machine.Reply, Ref: ref, Answer: request.Refusal(ref.(*request.Call).Op, reason, detail)})
	}
	return before
}

// cleanUp has everything released that the lock may hold in Redis; the actor is told when that
// is done, or has no use any more.
func (s *lockState) cleanUp() {
	for _, each := range s.leaving.cleanups {
		each.run(func(certain bool) {
			if !certain {
				s.rt.server.LeaveToExpire(s.rt.Now() + each.ttl)
			}
			s.rt.Deliver(s.pid, cleanedUp{})
		})
	}
}

// cleanUpAgain is for a command that has taken something although the key was released.
func (s *lockState) cleanUpAgain() {
	s.leaving.releases += len(s.leaving.cleanups)
	s.cleanUp()
}

// receive refuses a request.
func (l *leaving) receive(s *lockState, m any, sender *actor.PID) {
	if _, stopping := m.(*actor.Stopping); stopping {
		return
	}
	s.accepted = m
	switch m := m.(type) {
	case *request.Call:
		if !l.moving {
			s.rt.refuse(m, l.reason, l.detail)
		} else if !s.rt.Deliver(s.rt.guardian, m) {
			s.rt.tooLate(m)
		}
	case *replied:
		s.variant.late(m)
	case *inspection:
		s.refuseInspection(m, l.reason, l.detail)
	case cleanedUp:
		l.releases--
	case abandon:
		s.variant.abandon()
		l.releases = 0
	}
	l.check(s)
}

// check leaves as soon as no request awaits an answer.
func (l *leaving) check(s *lockState) {
	if l.releases <= 0 && s.seen >= l.sent && !l.gone {
		l.gone = true
		s.rt.Deliver(s.rt.guardian, &retired{state: s})
	}
}
