package lockkeeper

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// Ask sends a message with the span of ctx (see [WithTrace]) to an actor, and waits for the answer. Only goroutines may
// call it, since an actor must not block. The error is ErrInvalid if an argument is nil, actor.ErrDeadLetter if the
// actor stops before it has answered, and the cause of ctx if ctx ends first; in the last two cases the actor may have
// carried out the request. A System takes back a grant that arrives after Ask has returned; any other late answer
// becomes a dead letter, which proto.actor logs. Ask does not notice that an actor on another node stops, and waits
// until ctx ends.
func Ask(ctx context.Context, root *actor.RootContext, pid *actor.PID, message any) (answer any, err error) {
	switch {
	case ctx == nil:
		return nil, invalidError("ask", "", errNoContext)
	case root == nil, pid == nil, message == nil:
		return nil, invalidError("ask", "", errors.New("the root context, the PID or the message is nil"))
	}
	registry, process := root.ActorSystem().ProcessRegistry, &answerProcess{answers: make(chan any, 1), terminated: make(chan struct{}, 1)}
	self, _ := registry.Add(process, "future"+registry.NextId()) // named like a future, so it cannot own a lock
	defer registry.Remove(self)
	recipient, _ := registry.Get(pid)
	registered := func() bool { now, _ := registry.Get(pid); return request.SameLife(now, recipient) }
	watch := func() { recipient.SendSystemMessage(pid, &actor.Watch{Watcher: self}) }
	var due <-chan time.Time // when to watch the actor again
	if isActor(recipient) {  // watching a future would complete it
		watch()
		due = time.After(gonePause)
		defer recipient.SendSystemMessage(pid, &actor.Unwatch{Watcher: self})
	}
	e := *actor.WrapEnvelope(message)
	e.Sender = self
	root.Send(pid, request.WithTrace(ctx, &e))
	gone := false
	for {
		select {
		case answer = <-process.answers:
			return asked(answer)
		case <-process.terminated:
			if registered() { // the actor waits for its children to stop, and still answers
				due = time.After(delivery.StoppingPause)
				continue
			}
			err = actor.ErrDeadLetter
		case <-due:
			if registered() || !gone {
				gone = !registered()
				watch()
				due = time.After(gonePause)
				continue
			}
			err = actor.ErrDeadLetter
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if process.state.CompareAndSwap(askWaits, askLeft) {
			return nil, err
		}
		return asked(<-process.answers) // the answer may be a grant, which would be lost
	}
}

// gonePause is the time between two checks of Ask for the actor. proto.actor sends no Terminated for an actor that
// panics while it handles its Stopped, so an actor that is missing in two checks in a row counts as stopped.
const gonePause = 2 * time.Second

func asked(m any) (answer any, err error) {
	if _, dead := m.(*actor.DeadLetterResponse); dead {
		return nil, actor.ErrDeadLetter
	}
	return m, nil
}

func isActor(process actor.Process) bool {
	_, is := process.(*actor.ActorProcess)
	return is
}

// answerProcess receives the answer of an Ask: the first message that is sent to it. proto.actor's futures do not
// support a context, are not notified that the actor stops, and have a data race if two messages arrive.
type answerProcess struct {
	answers chan any
	// terminated receives a value when proto.actor reports that the recipient has stopped.
	terminated chan struct{}
	state      atomic.Int32
}

// The states of an answerProcess.
const (
	askWaits    int32 = iota
	askAnswered       // answers contains the answer, or will
	askLeft           // Ask has returned without an answer
)

// SendUserMessage implements actor.Process.
func (a *answerProcess) SendUserMessage(_ *actor.PID, m any) {
	if a.state.CompareAndSwap(askWaits, askAnswered) {
		a.answers <- actor.UnwrapEnvelopeMessage(m)
	}
}

// Wait returns actor.ErrTimeout if Ask has returned without an answer, as the Wait of a future does. The System takes
// back a grant that comes after that.
func (a *answerProcess) Wait() error {
	if a.state.Load() == askLeft {
		return actor.ErrTimeout
	}
	return nil
}

// SendSystemMessage implements actor.Process.
func (a *answerProcess) SendSystemMessage(_ *actor.PID, m any) {
	if _, is := m.(*actor.Terminated); is {
		select {
		case a.terminated <- struct{}{}:
		default:
		}
	}
}

// Stop implements actor.Process.
func (*answerProcess) Stop(*actor.PID) {}
