package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// A lock actor that crashes is restarted around its lockState and goes on. One that
// crashes more than crashLimit times within crashWindow is given up.
const (
	crashLimit  = 10
	crashWindow = 10 * time.Second
)

// supervision restarts the lock actors that crash, and resumes the subscriber. What a
// crash leaves open is settled before, by the actor's own side: see package delivery.
type supervision struct{ guardian *guardian }

var _ actor.SupervisorStrategy = (*supervision)(nil)

func (s *supervision) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	// The subscriber's instance keeps nothing, so that a new one would be no better, and a
	// lock actor that is leaving needs none.
	directive := actor.ResumeDirective
	if s := s.guardian.children[child.GetId()]; s != nil && !s.gate.Closed() {
		directive = actor.RestartDirective
		supervisor.RestartChildren(child)
	} else {
		supervisor.ResumeChildren(child)
	}
	s.guardian.rt.host.Publish(&actor.SupervisorEvent{Child: child, Reason: reason, Directive: directive})
}

// Crashed implements delivery.CrashHandler. The message that was being handled is answered or repeated, unless it had
// already been taken over. An actor that does nothing but crash is given up.
func (s *lockState) Crashed(swallowed any, sender *actor.PID, reason any) {
	s.rt.host.Error("a lock actor crashed", "lock", s.label, "panic", reason)
	m := unrepeated(swallowed)
	call, isCall := m.(*request.Call)
	if isCall && s.counted != swallowed {
		s.counted = swallowed // the crash came before the actor itself saw it
		s.seen++
	}
	const detail = "the actor crashed while it handled the request"
	switch {
	case s.accepted == m:
	case s.leaving != nil:
		s.leaving.receive(s, m, sender)
	case s.repeat(swallowed, sender):
	case isCall:
		s.rt.refuse(call, machine.Crashed, detail)
	default:
		if m, is := m.(*inspection); is {
			s.refuseInspection(m, machine.Crashed, detail)
		}
	}
	now := s.rt.Now()
	s.crashes = append(slices.DeleteFunc(s.crashes, func(at machine.Instant) bool { return at < now-crashWindow }), now)
	switch {
	case s.leaving != nil:
		s.leaving.check(s)
	case len(s.crashes) > crashLimit:
		s.rt.host.Error("a lock actor crashes again and again, and is given up", "lock", s.label, "crashes", len(s.crashes))
		s.giveUp(machine.Crashed, "the actor crashed too often and was given up", true)
	}
}

// repeat sends the message of the crash to the actor again if no other component will resend it, and reports whether
// it did. It repeats replies of Redis, messages of other actors, and requests that free something: their sender may
// have gone. The message is repeated until it is handled, or the actor is given up.
func (s *lockState) repeat(swallowed any, sender *actor.PID) bool {
	switch m := unrepeated(swallowed).(type) {
	case *kinds.Reply, *actor.Terminated, unlocked, listening, *transferred, suspicion, shutdown, abandon:
		return s.rt.Deliver(s.pid, &again{m})
	case *request.Call:
		return m.Op.Frees() && s.gate.Enter() && // it counts as one more request
			s.rt.Deliver(s.pid, &actor.MessageEnvelope{Message: &again{m}, Sender: sender})
	}
	return false
}
