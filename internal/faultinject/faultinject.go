// Package faultinject lets tests put middleware between Lockkeeper's actors and all of their
// messages: to make an actor crash or stall, or to observe what it handles. Users' middleware
// (Config.Middleware) gets only the requests that come by message.
package faultinject

import (
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
