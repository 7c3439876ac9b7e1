package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/records"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The messages that the actors send to themselves and to one another. A message for an actor that has left is dropped,
// but a request goes back to the guardian.

// To a lock actor.
type (
	// wakeUp: a renewal, another try, or the end of a wait or of a lease is due. It carries no term: the machine gets
	// the time, and does what is due by then.
	wakeUp struct{ to *lockActor }
	// unlocked: a message came on a channel of the lock.
	unlocked struct {
		to      listener
		channel backend.Channel
	}
	// listening: a channel of the lock is subscribed, again or for the first time. If a waiter has its own channel,
	// term is the term of that waiter.
	listening struct {
		to      listener
		channel backend.Channel
		term    uint64
	}
	// transferred: another process has made this process the holder, or wants the lock; or permits are free.
	transferred struct {
		to       *lockActor
		transfer machine.Transfer
	}
	// inspection carries the state in Redis, or a refusal. It is sent twice: without and with the holder's record, which
	// is awaited until the deadline.
	inspection struct {
		call     *request.Call
		status   *messages.Status
		refusal  *machine.Answer
		holder   *records.Holder
		deadline time.Time
	}
	// suspicion: a part of the lock, or a lock that it is a part of, was force-released, or another
	// server has become the master.
	suspicion struct{ to *lockActor }
	// leaveIfIdle: there are many actors.
	leaveIfIdle struct{ to *lockActor }
	// shutdown: release everything and leave.
	shutdown struct{}
	// abandon: leave without waiting for Redis.
	abandon struct{}
	// cleanedUp: one of the cleanups that the actor awaits before it leaves is done, or no longer needed.
	cleanedUp struct{}
	// again repeats a message that was being handled in a crash.
	again struct{ message any }
)

// To the guardian.
type (
	// retired: the lock actor may be stopped, its gate is closed.
	retired struct{ pid *actor.PID }
	// kindChange: by leaves once it has seen all its requests, for a lock of another kind.
	kindChange struct {
		by    *lockActor
		calls []*request.Call // for the next actor
		seen  uint64
	}
	// closeAll: refuse new requests and shut down every lock; done is closed after the last.
	closeAll struct{ done chan struct{} }
	// abandonAll: stop waiting for the locks that are not released yet.
	abandonAll struct{}
)

// To the subscriber.
type (
	// listener gets the messages of a channel: a lock actor, or a listenFunc.
	listener  interface{ post(m any) }
	subscribe struct {
		to      listener
		channel backend.Channel
		term    uint64
	}
	unsubscribe struct {
		to      listener
		channel backend.Channel
	}
	// published and confirmed come from the connection.
	published struct{ channel, payload string }
	confirmed struct{ channel string }
)

// unrepeated returns the message inside an again.
func unrepeated(m any) any {
	if repeated, ok := m.(*again); ok {
		return repeated.message
	}
	return m
}

// post sends the actor a message of this package. It does not look the actor up: with many leases to renew, look-ups
// were a fifth of the work. If the actor has stopped, its mailbox settles the message (see package delivery).
func (a *lockActor) post(m any) {
	defer a.rt.host.Recover("a recipient panicked")
	a.process.SendUserMessage(a.pid, m)
}

// Replied implements kinds.Actor.
func (a *lockActor) Replied(r *kinds.Reply) { a.post(r) }

// Wake implements alarm.Sleeper.
func (a *lockActor) Wake() { a.post(wakeUp{a}) }
