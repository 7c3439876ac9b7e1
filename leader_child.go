package lockkeeper

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// leaderChild makes sure that the child of a leader always stops, and is not restarted after its term or while it
// stops. proto.actor alone would restart the child in three cases: if a restart arrives while the child waits for its
// own children to stop, if a restart arrives after the stop, and if the child panics while it stops. Strategies like
// childBackoff send a restart later than the leader sends the stop.
type leaderChild struct {
	lock *Lock
	term context.Context
	pid  *actor.PID
	// ends: the child is handling its Stopped.
	ends atomic.Bool

	stopping, stopped bool
	// discarded: the present instance must not start, and gets no messages.
	discarded bool
}

// props returns a copy of the user's props, for one child.
func (c *leaderChild) props(of *actor.Props) *actor.Props {
	return of.Clone(actor.WithReceiverMiddleware(c.middleware))
}

func (c *leaderChild) middleware(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		switch envelope.Message.(type) {
		case *actor.Started:
			if c.stopping || c.term.Err() != nil {
				c.discarded = true
				c.stop(ctx)
			}
		case *actor.Restarting:
			if c.stopping {
				c.refuseRestart(ctx)
				return
			}
		case *actor.Stopping:
			if c.stopping {
				return // the stop goes on after a refused restart
			}
			c.stopping = true
			c.stop(ctx) // from now on its PID is looked up: a restart after the stop finds no actor
		case *actor.Stopped:
			c.stopped = true
			c.ends.Store(true)
			defer c.ends.Store(false)
		}
		if c.discarded {
			return
		}
		if c.stopping {
			defer c.recover()
		}
		next(ctx, envelope)
	}
}

// isGone reports whether proto.actor has removed the child, which happens before its Stopped, and the child is not
// handling the Stopped. isGone may be called on any goroutine.
func (c *leaderChild) isGone(system *actor.ActorSystem) bool {
	_, lives := system.ProcessRegistry.GetLocal(c.pid.Id)
	return !lives && !c.ends.Load() && c.pid.Address == system.Address() // the host may spawn it on another node
}

// refuseRestart continues the stop of the child. It does not send another stop, since the children of the child may
// have stopped already, and the child would be restarted before it handles the message.
func (c *leaderChild) refuseRestart(ctx actor.ReceiverContext) {
	child, ok := ctx.(actor.MessageInvoker)
	switch {
	case c.stopped:
	case ok:
		child.InvokeSystemMessage(&actor.Stop{})
	default: // the user's decorator hides the method; a new instance is discarded
		c.stop(ctx)
	}
}

// stop sends a stop to the child, unless it has stopped.
func (c *leaderChild) stop(ctx actor.ReceiverContext) {
	if !c.stopped {
		ctx.ActorSystem().Root.Stop(ctx.Self())
	}
}

// recover logs a panic of the child while it stops.
func (c *leaderChild) recover() {
	if panicked := recover(); panicked != nil {
		c.lock.runtime.Log(slog.LevelError, "the child of a leader has panicked while it was stopping", "lock", c.lock.Name(), "panic", panicked)
	}
}
