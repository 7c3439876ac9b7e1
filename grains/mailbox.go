package grains

import (
	"context"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
)

// mailbox is the mailbox of a grain. It passes a message on only while the grain may begin it. Otherwise it reports the
// message to its sender, as for a PID without a process. This includes messages behind a stop, which proto.actor drops
// silently.
type mailbox struct {
	actor.Mailbox
	post   *delivery.Post
	serves func() bool
	it     *activation[*actor.PID]
	// refused counts the messages that are not begun.
	refused *atomic.Int64
	term    *extension
	end     context.CancelFunc
	actor.MessageInvoker
}

func newMailbox(post *delivery.Post, t *term, it *activation[*actor.PID], refused *atomic.Int64) *mailbox {
	ctx, end := context.WithCancel(t.ctx)
	return &mailbox{
		Mailbox: actor.Unbounded()(), post: post, serves: t.serves, it: it, refused: refused, end: end,
		term: &extension{Term{token: it.token, hold: t.hold, ctx: ctx}},
	}
}

// RegisterHandlers implements actor.Mailbox.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.MessageInvoker = invoker
	m.Mailbox.RegisterHandlers(m, dispatcher)
}

// InvokeSystemMessage implements actor.MessageInvoker.
func (m *mailbox) InvokeSystemMessage(message any) {
	switch message.(type) {
	case *actor.Restart: // proto.actor would turn a stop that waits for children into a restart, and revive a stopped grain
		if !m.it.begins(m.serves()) {
			message = &actor.Stop{}
			m.stop()
		}
	case *actor.Stop:
		m.stop()
	}
	m.MessageInvoker.InvokeSystemMessage(message)
}

// stop is called when the grain begins to stop. A mailbox that is suspended because the grain has crashed is resumed,
// and refuses its messages.
func (m *mailbox) stop() {
	m.it.stopping.Store(true)
	m.end()
	m.PostSystemMessage(&actor.ResumeMailbox{})
}

// InvokeUserMessage implements actor.MessageInvoker.
func (m *mailbox) InvokeUserMessage(message any) {
	_, poison := actor.UnwrapEnvelopeMessage(message).(*actor.PoisonPill)
	switch {
	case m.it.begins(poison || m.serves()):
		m.MessageInvoker.InvokeUserMessage(message)
	case !poison:
		m.refuse(message)
	}
}

// refuse reports a message that the grain does not handle. The host's subscribers to the event stream must not keep the
// grain from stopping.
func (m *mailbox) refuse(message any) {
	m.refused.Add(1)
	_, letter, sender := actor.UnwrapEnvelope(message)
	if sender != nil {
		m.post.Deliver(sender, &actor.DeadLetterResponse{Target: m.pid()})
	}
	m.post.Host.Publish(&actor.DeadLetterEvent{PID: m.pid(), Message: letter})
}

// pid returns the PID of the grain.
func (m *mailbox) pid() *actor.PID { return m.post.System.NewLocalPID(pidOf(m.it.grain)) }
