// Package delivery sends messages to actors so that no message is lost without a trace: the sender learns whether there
// is a recipient, and requests to an actor that has stopped are answered.
package delivery

import (
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// Post delivers the messages of one system.
type Post struct {
	System *actor.ActorSystem
	Host   *host.Host
	// Late handles a message that has reached an actor after it had stopped.
	Late func(message any, sender *actor.PID)
}

// Deliver sends a message and reports whether there was a recipient. All messages of the actors and goroutines of a
// system go this way.
//
// A message that reaches no recipient does not become a dead letter, as it would with proto.actor's Send: the host's
// subscribers to the event stream would run inside the sender, and may block or panic. A process on another node takes
// every message, whether the message arrives there or not. A future that has timed out takes nothing, though it may
// still be found then.
func (p *Post) Deliver(pid *actor.PID, message any) (taken bool) {
	return p.DeliverTo(nil, pid, message)
}

// DeliverTo is Deliver if life is the process of the PID, or nil. A dead actor's name is free before its watchers know
// that it has died, so another actor may have it.
func (p *Post) DeliverTo(life actor.Process, pid *actor.PID, message any) (taken bool) {
	defer p.Host.Recover("a recipient panicked") // a process of the host, or a process that a future is piped to
	process, taken := p.System.ProcessRegistry.Get(pid)
	if taken = taken && (life == nil || request.SameLife(process, life)); taken {
		process.SendUserMessage(pid, message)
		taken = !timedOut(pid, process)
	}
	return taken
}

// timedOut reports whether a process is a future whose caller has got ErrTimeout, or will. The future must have been
// sent a message: then it is done, and Wait does not wait.
func timedOut(pid *actor.PID, process actor.Process) bool {
	future, ok := process.(interface{ Wait() error })
	return ok && request.IsFuture(pid) && errors.Is(future.Wait(), actor.ErrTimeout)
}

// DeliverSystem is Deliver for proto.actor's own messages.
func (p *Post) DeliverSystem(pid *actor.PID, message any) (taken bool) {
	process, taken := p.System.ProcessRegistry.Get(pid)
	if taken {
		p.SendSystem(process, pid, message)
	}
	return taken
}

// SendSystem sends one of proto.actor's own messages to a process. Another actor may have the PID by now.
func (p *Post) SendSystem(process actor.Process, pid *actor.PID, message any) {
	defer p.Host.Recover("a recipient panicked")
	process.SendSystemMessage(pid, message)
}

// StoppingPause is the pause before an actor is watched again that waits for its children to stop. It is watched again
// until it has stopped.
const StoppingPause = 100 * time.Millisecond

// WatchAgain watches an actor that is registered though it has said that it has terminated. proto.actor says so while
// it waits for its children to stop, and does not say when they have.
func (p *Post) WatchAgain(process actor.Process, pid, watcher *actor.PID) {
	time.AfterFunc(StoppingPause, func() { p.SendSystem(process, pid, &actor.Watch{Watcher: watcher}) })
}

// Forward forwards the message that an actor is handling, with its sender and headers.
func (p *Post) Forward(ctx actor.Context, pid *actor.PID) (taken bool) {
	return p.Deliver(pid, request.Envelope(ctx.Message(), ctx.Sender(), ctx.MessageHeader()))
}
