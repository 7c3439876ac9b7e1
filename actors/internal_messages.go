package actors

import (
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// What the actors send to themselves and to one another. All of it may come too
// late for an actor that has left; that is nothing to log.

// To a lock actor.
type (
	// tick: time has passed. It carries no term, since the lock looks at the clock itself.
	tick struct{}
	// unlocked: a message came on a channel of the lock's.
	unlocked struct{ ear ear }
	// listening: a channel of the lock's is subscribed, again or for the first time;
	// for the waiter of that term, if it has a channel of its own.
	listening struct {
		ear  ear
		term uint64
	}
	// inspection brings the reply of the inspect script.
	inspection struct {
		by   requester
		view wire.View
		err  error
	}
	// suspicion: a part of the lock, or the whole that it is a part of, was force-released.
	suspicion struct{}
	// shutdown: release everything and leave.
	shutdown struct{}
	// again brings a message that a crash has swallowed once more.
	again struct{ message any }
)

// To the guardian.
type (
	// retired: the lock actor may be stopped, its gate is closed.
	retired struct{ cell *cell }
	// closeAll: refuse new requests and shut down every lock; done is closed after the last.
	closeAll struct{ done chan struct{} }
	// abandonAll: stop waiting for the locks that are not released yet.
	abandonAll struct{}
)

// To the subscriber.
type (
	subscribe struct {
		cell    *cell
		channel string
		term    uint64
	}
	unsubscribe struct {
		cell    *cell
		channel string
	}
	// published and confirmed come from the connection.
	published struct{ channel string }
	confirmed struct{ channel string }
)

// IgnoreDeadLetterLogging implements a marker of proto.actor.
func (*Call) IgnoreDeadLetterLogging() {}

func (tick) IgnoreDeadLetterLogging()         {}
func (unlocked) IgnoreDeadLetterLogging()     {}
func (listening) IgnoreDeadLetterLogging()    {}
func (*inspection) IgnoreDeadLetterLogging()  {}
func (*again) IgnoreDeadLetterLogging()       {}
func (suspicion) IgnoreDeadLetterLogging()    {}
func (shutdown) IgnoreDeadLetterLogging()     {}
func (*replied) IgnoreDeadLetterLogging()     {}
func (*retired) IgnoreDeadLetterLogging()     {}
func (*closeAll) IgnoreDeadLetterLogging()    {}
func (abandonAll) IgnoreDeadLetterLogging()   {}
func (*subscribe) IgnoreDeadLetterLogging()   {}
func (*unsubscribe) IgnoreDeadLetterLogging() {}
func (*published) IgnoreDeadLetterLogging()   {}
func (*confirmed) IgnoreDeadLetterLogging()   {}

// unrepeated is the message itself, if it comes again.
func unrepeated(m any) any {
	if repeated, ok := m.(*again); ok {
		return repeated.message
	}
	return m
}

// frees tells the requests without which something stays that nobody wants any more,
// also if whoever sent them has gone.
func frees(m any) bool {
	switch m := m.(type) {
	case *messages.Release, *messages.Cancel:
		return true
	case *Call:
		return m.Op == OpRelease || m.Op == OpCancel
	}
	return false
}

// isRequest tells the messages that ask for something, and are therefore counted and
// always answered.
func isRequest(m any) bool {
	switch m.(type) {
	case *Call, *messages.Acquire, *messages.Release, *messages.Cancel, *messages.ForceRelease, *messages.Inspect:
		return true
	}
	return false
}
