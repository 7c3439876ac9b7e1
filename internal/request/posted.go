package request

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// posted is a request with the life of its sender: the process that the sender's PID had when it posted the request.
// When the request is read, another actor may have that PID, or be about to start.
type posted struct {
	message any
	life    actor.Process
}

// notingMailbox notes the lives of the senders of requests, on their own goroutines.
type notingMailbox struct {
	actor.Mailbox
	rules *Rules
}

// NotingLives returns a producer of mailboxes for an actor that gives its messages to Read.
func (r *Rules) NotingLives(inner actor.MailboxProducer) actor.MailboxProducer {
	return func() actor.Mailbox { return &notingMailbox{inner(), r} }
}

// PostUserMessage implements actor.Mailbox.
func (m *notingMailbox) PostUserMessage(message any) {
	if e, is := message.(*actor.MessageEnvelope); is && e.Sender != nil && IsMessage(e.Message) {
		noted := &struct { // together, which is cheaper
			actor.MessageEnvelope
			posted
		}{*e, posted{e.Message, m.rules.Process(e.Sender)}}
		noted.Message = &noted.posted
		message = &noted.MessageEnvelope
	}
	m.Mailbox.PostUserMessage(message)
}

// Ended says why a request for a lock no longer needs to be carried out; "" if it must be carried out.
func (r *Rules) Ended(call *Call) (why string) {
	if call.Withdrawn.Load() {
		return machine.WasWithdrawn
	}
	if pid, life := call.Requester().Owner(); life != nil && !SameLife(r.Process(pid), life) {
		return machine.OwnerDied
	}
	return ""
}

// lives returns a function for the life of a PID. For the sender of m it is the life when m was posted, if that was
// noted.
func (r *Rules) lives(m any, sender *actor.PID) (message any, lifeOf func(*actor.PID) actor.Process) {
	noted, is := m.(*posted)
	if !is {
		return m, r.Process
	}
	return noted.message, func(pid *actor.PID) actor.Process {
		if pid.Equal(sender) {
			return noted.life
		}
		return r.Process(pid)
	}
}
