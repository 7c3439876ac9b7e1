package actors

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// deliver sends a message and reports whether there was a recipient. All that
// actors and goroutines of a system send goes this way.
//
// What reaches no recipient becomes no dead letter, as it would with proto.actor's Send: the
// host's subscribers to the event stream run inside the sender, and may block or panic. A
// process on another node takes everything, whether it arrives there or not. A future that
// has timed out takes nothing, though it may still be found then.
func (r *Runtime) Deliver(pid *actor.PID, message any) (taken bool) {
	defer r.host.Recover("a recipient panicked") // a process of the host's own, or what a future is piped to
	process, taken := r.actor.ProcessRegistry.Get(pid)
	if taken {
		process.SendUserMessage(pid, message)
		taken = !timedOut(pid, process)
	}
	return taken
}

// timedOut reports whether a process is a future whose caller has got ErrTimeout, or will.
// It is for a future that has been sent something: it is done then, and Wait does not wait.
func timedOut(pid *actor.PID, process actor.Process) bool {
	future, ok := process.(interface{ Wait() error })
	return ok && request.IsFuture(pid) && errors.Is(future.Wait(), actor.ErrTimeout)
}

// deliverSystem is deliver for proto.actor's own messages.
func (r *Runtime) deliverSystem(pid *actor.PID, message any) (taken bool) {
	defer r.host.Recover("a recipient panicked")
	process, taken := r.actor.ProcessRegistry.Get(pid)
	if taken {
		process.SendSystemMessage(pid, message)
	}
	return taken
}

// forward hands on the message that an actor is handling, with its sender and headers.
func (r *Runtime) forward(ctx actor.Context, pid *actor.PID) (taken bool) {
	return r.Deliver(pid, request.Envelope(ctx.Message(), ctx.Sender(), ctx.MessageHeader()))
}

// mailboxAdapter is a mailbox, and the invoker behind it. It refuses the requests that its
// actor drops silently once it has stopped: those that were still queued, and those of
// senders who had found the actor just before.
//
// It lets go of the actor then. proto.actor goes on to refer to the mailbox: the PID does,
// and its lists of children and of watchers keep the PIDs of those that have gone, in the
// unused part of their arrays.
type mailboxAdapter struct {
	actor.Mailbox
	rt      *Runtime
	invoker actor.MessageInvoker
	// handler is nil if a crash of the actor leaves nothing open.
	handler crashHandler
	// stopped is the actor's PID when it has stopped; the invoker is nil then.
	stopped *actor.PID
}

// crashHandler settles what a crash of its actor leaves open, on the actor's own turn.
type crashHandler interface {
	// begins says that the actor is about to handle a message, and crashed that it has crashed over it.
	begins()
	crashed(message any, sender *actor.PID, reason any)
}

// answers makes such a mailbox of another.
func (r *Runtime) answers(inner actor.MailboxProducer, handler crashHandler) actor.PropsOption {
	return actor.WithMailbox(func() actor.Mailbox { return &mailboxAdapter{Mailbox: inner(), rt: r, handler: handler} })
}

func (a *mailboxAdapter) begins() {
	if a.handler != nil {
		a.handler.begins()
	}
}

// RegisterHandlers implements actor.Mailbox.
func (a *mailboxAdapter) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	a.invoker = invoker
	a.Mailbox.RegisterHandlers(a, dispatcher)
}

// InvokeSystemMessage implements actor.MessageInvoker.
func (a *mailboxAdapter) InvokeSystemMessage(message any) {
	if a.stopped != nil {
		if m, ok := message.(*actor.Watch); ok {
			a.rt.deliverSystem(m.Watcher, &actor.Terminated{Who: a.stopped})
		}
		return
	}
	a.begins()
	a.invoker.InvokeSystemMessage(message)
	switch message.(type) {
	case *actor.Stop, *actor.Terminated: // its own stop, or that of its last child
		self := a.invoker.(actor.Context).Self()
		if _, there := a.rt.actor.ProcessRegistry.GetLocal(self.Id); !there {
			a.invoker, a.handler, a.stopped = nil, nil, self
			// After a crash the mailbox is suspended, and its supervisor does not reach it any more.
			a.Mailbox.PostSystemMessage(&actor.ResumeMailbox{})
		}
	}
}

// InvokeUserMessage implements actor.MessageInvoker.
func (a *mailboxAdapter) InvokeUserMessage(message any) {
	if a.stopped == nil {
		a.begins()
		a.invoker.InvokeUserMessage(message)
		return
	}
	_, m, sender := actor.UnwrapEnvelope(message)
	if late, ok := unrepeated(m).(interface{ tooLate() }); ok { // a reply of Redis
		late.tooLate()
		return
	}
	a.rt.refuseAny(m, sender, machine.Closed, closedText)
}

// EscalateFailure implements actor.MessageInvoker. The supervisor, and proto.actor's log, get the type of
// the message: once it is answered, its caller may be using its memory again.
func (a *mailboxAdapter) EscalateFailure(reason, message any) {
	if a.stopped == nil {
		a.settle(reason, message)
		a.invoker.EscalateFailure(reason, fmt.Sprintf("%T", actor.UnwrapEnvelopeMessage(message)))
		return
	}
	a.rt.host.Error("a request to an actor that had stopped could not be refused", "panic", reason)
}

// settle has the actor's side of a crash settled, before its supervisor hears of it.
func (a *mailboxAdapter) settle(reason, message any) {
	if a.handler == nil {
		return
	}
	defer a.rt.host.Recover("a crash could not be settled")
	_, m, sender := actor.UnwrapEnvelope(message)
	a.handler.crashed(m, sender, reason)
}
