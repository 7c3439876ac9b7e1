package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// A lock actor that crashes is restarted around its lockState and goes on. One that
// crashes more than crashLimit times within crashWindow is given up.
const (
	crashLimit  = 10
	crashWindow = 10 * time.Second
)

// supervision restarts the lock actors that crash, and has the subscriber go on. What a
// crash leaves open is settled before, by the actor's own side: see answering.
type supervision struct{ guardian *guardian }

var _ actor.SupervisorStrategy = (*supervision)(nil)

func (s *supervision) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	// The subscriber's instance keeps nothing, so that a new one would be no better, and a
	// lock actor that is leaving needs none.
	directive := actor.ResumeDirective
	if s := s.guardian.children[child.GetId()]; s != nil && !s.gate.closed() {
		directive = actor.RestartDirective
		supervisor.RestartChildren(child)
	} else {
		supervisor.ResumeChildren(child)
	}
	s.guardian.rt.host.Publish(&actor.SupervisorEvent{Child: child, Reason: reason, Directive: directive})
}

// surviveTheEnd is the outermost middleware of every child of the guardian, where tests
// have injected faults. A panic in a lifecycle message would do what proto.actor has no
// cure for: keep an actor from stopping, or its death from being told.
func (r *Runtime) guardStop(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		switch envelope.Message.(type) {
		case *actor.Restarting, *actor.Stopping, *actor.Stopped:
			defer r.host.Recover("an actor panicked while it was stopping")
		}
		next(ctx, envelope)
	}
}

// crashed implements settler. The message that was being handled is answered or repeated, unless it had
// already been taken over. An actor that does nothing but crash is given up.
func (c *keyActor) crashed(swallowed any, sender *actor.PID, reason any) {
	c.rt.host.Error("a lock actor crashed", "lock", c.label, "panic", reason)
	m := unrepeated(swallowed)
	if isRequest(m) && c.counted != swallowed {
		c.counted = swallowed // the crash came before the actor itself saw it
		c.seen++
	}
	switch {
	case c.accepted == m:
	case c.state.isLeaving():
		c.state.receiveLast(m, sender)
	case !c.repeat(swallowed, sender):
		c.state.refuse(m, sender, lock.Crashed, "the actor crashed while it handled the request")
	}
	now := c.rt.Now()
	c.crashes = append(slices.DeleteFunc(c.crashes, func(at lock.Instant) bool { return at < now-crashWindow }), now)
	switch {
	case c.state.isLeaving():
		c.state.checkLeft()
	case len(c.crashes) > crashLimit:
		c.rt.host.Error("a lock actor crashes again and again, and is given up", "lock", c.label, "crashes", len(c.crashes))
		c.state.giveUp(lock.Crashed, "the actor crashed too often and was given up")
	}
}

// repeat has a message handled once more that nobody else will repeat, and reports whether
// it did: what Redis, others and the guardian have said, and what frees the lock, whose
// sender may have gone. It is repeated until it is handled, or the actor is given up.
func (c *keyActor) repeat(swallowed any, sender *actor.PID) bool {
	m := unrepeated(swallowed)
	switch m.(type) {
	case *replied, *permitReplied, *actor.Terminated, unlocked, listening, *transferred, suspicion, shutdown, abandon:
		return c.rt.deliver(c.pid, &again{m})
	}
	return frees(m) && c.gate.enter() && // it counts as one more request
		c.rt.deliver(c.pid, &actor.MessageEnvelope{Message: &again{m}, Sender: sender})
}

// refuse answers a request that is not carried out, whatever it was.
func (s *lockState) refuse(m any, sender *actor.PID, reason lock.Reason, detail string) {
	switch m := m.(type) {
	case *Call:
		m.refuse(reason, detail)
		s.rt.metrics.countRefused(m, reason)
	case *inspection:
		if _, owed := s.inspections[m.by]; owed {
			delete(s.inspections, m.by)
			m.by.answered(s, refusal(OpInspect, reason, detail))
		}
	default:
		if by := messageRequestOf(m, sender); by != nil {
			by.answered(s, refusal(by.op, reason, detail))
			s.rt.metrics.countRefused(by, reason)
		}
	}
}
