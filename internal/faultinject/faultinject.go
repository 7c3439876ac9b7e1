// Package faultinject lets tests put middleware between Lockkeeper's actors and all of their
// messages: to make an actor crash or stall, or to observe what it handles. Users' middleware
// (Config.Middleware) gets only the requests that come by message.
package faultinject

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

var id = extensions.NextExtensionID()

type injected []actor.ReceiverMiddleware

// ExtensionID implements extensions.Extension.
func (injected) ExtensionID() extensions.ExtensionID { return id }

// Into puts middleware around the lock actors and the subscriber of every System that is
// made in the actor system from now on, outermost first.
func Into(system *actor.ActorSystem, middleware ...actor.ReceiverMiddleware) {
	system.Extensions.Register(injected(append(Of(system), middleware...)))
}

// Of returns the middleware that Into has registered.
func Of(system *actor.ActorSystem) []actor.ReceiverMiddleware {
	middleware, _ := system.Extensions.Get(id).(injected)
	return middleware
}

// Guarded returns that middleware behind another middleware, which ends a panic in a lifecycle message by a call of
// recovers. proto.actor cannot repair such a panic: the actor would never stop, or its watchers would not be notified.
func Guarded(system *actor.ActorSystem, recovers func(what string)) []actor.ReceiverMiddleware {
	middleware := Of(system)
	if len(middleware) == 0 {
		return nil
	}
	return append([]actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			switch envelope.Message.(type) {
			case *actor.Restarting, *actor.Stopping, *actor.Stopped:
				defer recovers("an actor panicked while it was stopping")
			}
			next(ctx, envelope)
		}
	}}, middleware...)
}

// Request is implemented by a message of a lock actor that is a request.
type Request interface {
	// Requested returns the type of the message that asks for it, and the name of the lock.
	Requested() (messageType, lock string)
}

// TypeOf is the type of a message to a lock actor as %T prints it; for a request that came by message it is the type of
// that message.
func TypeOf(m any) string {
	if r, is := m.(Request); is {
		messageType, _ := r.Requested()
		return messageType
	}
	return fmt.Sprintf("%T", m)
}
