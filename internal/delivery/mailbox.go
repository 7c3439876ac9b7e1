package delivery

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// CrashHandler settles what a crash of its actor leaves open, on the actor's own turn.
type CrashHandler interface {
	// Begins says that the actor is about to handle a message.
	Begins()
	// Crashed says that the actor has crashed over a message.
	Crashed(message any, sender *actor.PID, reason any)
}

// WithMailbox gives an actor a mailbox that passes messages after its stop to Late. handler is nil if a crash of the
// actor leaves nothing open.
func (p *Post) WithMailbox(inner actor.MailboxProducer, handler CrashHandler) actor.PropsOption {
	return actor.WithMailbox(func() actor.Mailbox { return &mailbox{Mailbox: inner(), post: p, handler: handler} })
}

// mailbox is a mailbox, and the invoker behind it. It passes on the requests that its actor drops silently once it has
// stopped: requests that were still queued, and requests of senders that had found the actor just before.
//
// The mailbox keeps no reference to an actor that has stopped. proto.actor still refers to the mailbox: through the
// PID, and through its lists of children and of watchers, which keep the PIDs of stopped actors in the unused part of
// their arrays.
type mailbox struct {
	actor.Mailbox
	post    *Post
	invoker actor.MessageInvoker
	handler CrashHandler
	// stopped is the actor's PID when it has stopped; the invoker is nil then.
	stopped *actor.PID
}

func (box *mailbox) begins() {
	if box.handler != nil {
		box.handler.Begins()
	}
}

// RegisterHandlers implements actor.Mailbox.
func (box *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	box.invoker = invoker
	box.Mailbox.RegisterHandlers(box, dispatcher)
}

// InvokeSystemMessage implements actor.MessageInvoker.
func (box *mailbox) InvokeSystemMessage(message any) {
	if box.stopped != nil {
		if m, ok := message.(*actor.Watch); ok {
			box.post.DeliverSystem(m.Watcher, &actor.Terminated{Who: box.stopped})
		}
		return
	}
	box.begins()
	box.invoker.InvokeSystemMessage(message)
	switch message.(type) {
	case *actor.Stop, *actor.Terminated: // the actor's own stop, or the stop of its last child
		self := box.invoker.(actor.Context).Self()
		if _, there := box.post.System.ProcessRegistry.GetLocal(self.Id); !there {
			box.invoker, box.handler, box.stopped = nil, nil, self
			// After a crash the mailbox is suspended, and its supervisor no longer reaches it.
			box.PostSystemMessage(&actor.ResumeMailbox{})
		}
	}
}

// InvokeUserMessage implements actor.MessageInvoker.
func (box *mailbox) InvokeUserMessage(message any) {
	if box.stopped == nil {
		box.begins()
		box.invoker.InvokeUserMessage(message)
		return
	}
	_, m, sender := actor.UnwrapEnvelope(message)
	box.post.Late(m, sender)
}

// EscalateFailure implements actor.MessageInvoker. The supervisor, and proto.actor's log, get only the type of the
// message: after the answer, the caller may use the memory of the message again.
func (box *mailbox) EscalateFailure(reason, message any) {
	if box.stopped == nil {
		box.settle(reason, message)
		box.invoker.EscalateFailure(reason, fmt.Sprintf("%T", actor.UnwrapEnvelopeMessage(message)))
		return
	}
	box.post.Host.Error("a request to an actor that had stopped could not be refused", "panic", reason)
}

// settle lets the actor handle its crash before its supervisor is notified.
func (box *mailbox) settle(reason, message any) {
	if box.handler == nil {
		return
	}
	defer box.post.Host.Recover("a crash could not be settled")
	_, m, sender := actor.UnwrapEnvelope(message)
	box.handler.Crashed(m, sender, reason)
}
