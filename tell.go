package lockkeeper

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// tell sends a message from an actor or a goroutine of ours, which the host must not hold up: over a message to an actor
// that has stopped, proto.actor's Send runs the host's subscribers to the event stream.
func (l *Lock) tell(system *actor.ActorSystem, to *actor.PID, message any) {
	if l.checkUsable() != nil { // no lock is held
		system.Root.Send(to, message)
		return
	}
	process, there := system.ProcessRegistry.Get(to)
	if !there {
		l.runtime.CallHost("a subscriber of the event stream", func() {
			system.EventStream.Publish(&actor.DeadLetterEvent{PID: to, Message: message})
		})
		return
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			l.runtime.Log(slog.LevelError, "a recipient panicked", "panic", panicked)
		}
	}()
	process.SendUserMessage(to, message)
}
