package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// A lock actor that crashes is restarted around its cell and goes on. One that
// crashes more than crashLimit times within crashWindow is given up.
const (
	crashLimit  = 10
	crashWindow = 10 * time.Second
)

// supervision decides what becomes of a crashed child of the guardian. It runs on
// the guardian's goroutine.
type supervision struct{ guardian *guardian }

var _ actor.SupervisorStrategy = (*supervision)(nil)

func (s *supervision) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, message any) {
	rt := s.guardian.rt
	directive := actor.RestartDirective
	_, m, sender := actor.UnwrapEnvelope(message)
	if c := s.guardian.children[child.GetId()]; c != nil {
		rt.host.error("a lock actor crashed", "lock", c.label, "panic", reason)
		if c.crashed(m, sender) {
			directive = actor.ResumeDirective
		}
	} else {
		// Its instance keeps nothing, so that a new one would be no better.
		rt.host.error("the subscriber crashed", "panic", reason)
		rt.channels.crashed(m)
		directive = actor.ResumeDirective
	}
	if directive == actor.RestartDirective {
		supervisor.RestartChildren(child)
	} else {
		supervisor.ResumeChildren(child)
	}
	rt.host.publish(&actor.SupervisorEvent{Child: child, Reason: reason, Directive: directive})
}

// surviveTheEnd is the outermost middleware of every child of the guardian, where tests
// have injected faults. A panic in a lifecycle message would do what proto.actor has no
// cure for: keep an actor from stopping, or its death from being told.
func (r *Runtime) surviveTheEnd(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		switch envelope.Message.(type) {
		case *actor.Restarting, *actor.Stopping, *actor.Stopped:
			defer r.survive("an actor panicked while it was stopping")
		}
		next(ctx, envelope)
	}
}

// crashed settles what a crash leaves open: the message that was being handled is
// answered or repeated unless the lock had already taken it over, and an actor that does
// nothing but crash is given up. One that is leaving needs no new instance any more.
func (c *cell) crashed(swallowed any, sender *actor.PID) (isLeaving bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := unrepeated(swallowed)
	if isRequest(m) && c.counted != swallowed {
		c.counted = swallowed // the crash came before the actor itself saw it
		c.seen++
	}
	if c.accepted != m {
		c.accepted = m
		if !c.repeat(swallowed, sender) {
			c.refuse(m, sender, core.Crashed, "the lock actor crashed while it handled the request")
		}
	}
	now := c.rt.Now()
	c.crashes = append(slices.DeleteFunc(c.crashes, func(at core.Instant) bool { return at < now-crashWindow }), now)
	switch {
	case c.leaving != nil:
		c.leaving.check(c)
	case len(c.crashes) > crashLimit:
		c.rt.host.error("a lock actor crashes without end and is given up", "lock", c.label, "crashes", len(c.crashes))
		c.giveUp(core.Crashed, "the lock actor crashed too often and was given up")
	}
	return c.leaving != nil
}

// repeat has a message handled once more that nobody else will repeat, and reports whether
// it did: what Redis, others and the guardian have said, and what frees the lock, whose
// sender may have gone. It is repeated until it is handled, or the actor is given up.
func (c *cell) repeat(swallowed any, sender *actor.PID) bool {
	m := unrepeated(swallowed)
	switch m.(type) {
	case *replied, *actor.Terminated, unlocked, listening, suspicion, shutdown:
		return c.rt.deliver(c.pid, &again{m})
	}
	return frees(m) && c.gate.enter() && // it counts as one more request
		c.rt.deliver(c.pid, &actor.MessageEnvelope{Message: &again{m}, Sender: sender})
}

// refuse answers a request that is not carried out, whatever it was.
func (c *cell) refuse(m any, sender *actor.PID, reason core.Reason, detail string) {
	switch m := m.(type) {
	case *Call:
		m.refuse(reason, detail)
	case *inspection:
		if _, owed := c.inspections[m.by]; owed {
			delete(c.inspections, m.by)
			m.by.answered(c, refusal(OpInspect, reason, detail))
		}
	default:
		if by := letterOf(m, sender); by != nil {
			by.answered(c, refusal(by.op, reason, detail))
		}
	}
}
