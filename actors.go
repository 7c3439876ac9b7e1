package lockkeeper

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Request sends a request of package messages from an actor to the System of its actor system (see
// [From]). The actor is the sender, and therefore the owner of what it acquires, and receives the answer
// as a message. The spans of the request are children of the span that the request carries (see
// [WithTrace]), or otherwise of the span of the message that the actor is handling.
//
// After Close, or if there is no System, the answer is proto.actor's DeadLetterResponse. With a nil ctx Request
// does nothing, since there is no actor to receive an answer.
func Request(ctx actor.Context, message any) {
	if ctx == nil {
		return
	}
	e := *actor.WrapEnvelope(message)
	e.Sender = ctx.Self()
	within := request.TraceIn(actor.UnwrapEnvelopeHeader(&e))
	if !trace.SpanContextFromContext(within).IsValid() {
		within = TraceOf(ctx)
	}
	ctx.Send(From(ctx.ActorSystem()).Guardian(), request.WithTrace(within, &e))
}

// Ask sends a message with the span of ctx (see [WithTrace]) to an actor, and waits for the answer. It is for
// goroutines: an actor must not block. The error is actor.ErrDeadLetter if the actor stops before it has
// answered, and the cause of ctx if ctx ends first; the actor may have carried out the request in both cases. An
// answer that arrives later is a dead letter, which proto.actor logs. If the actor is on another node, Ask does
// not notice that it stops, and waits until ctx ends.
func Ask(ctx context.Context, root *actor.RootContext, pid *actor.PID, message any) (answer any, err error) {
	switch {
	case ctx == nil:
		return nil, invalid("ask", "", errNoContext)
	case root == nil, pid == nil, message == nil:
		return nil, invalid("ask", "", errors.New("the root context, the PID or the message is nil"))
	}
	registry, answers := root.ActorSystem().ProcessRegistry, make(answerProcess, 1)
	self, _ := registry.Add(answers, "future"+registry.NextId()) // the name of a future, which cannot own a lock
	defer registry.Remove(self)
	if process, _ := registry.Get(pid); isActor(process) { // watching a future would complete it
		process.SendSystemMessage(pid, &actor.Watch{Watcher: self})
		defer process.SendSystemMessage(pid, &actor.Unwatch{Watcher: self})
	}
	e := *actor.WrapEnvelope(message)
	e.Sender = self
	root.Send(pid, request.WithTrace(ctx, &e))
	select {
	case answer = <-answers:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if _, dead := answer.(*actor.DeadLetterResponse); dead {
		return nil, actor.ErrDeadLetter
	}
	return answer, nil
}

func isActor(process actor.Process) bool {
	_, is := process.(*actor.ActorProcess)
	return is
}

// answerProcess is the process that receives the answer of an Ask, its first message. proto.actor's futures do not
// support a context, are not notified that the actor stops, and have a data race if two messages arrive.
type answerProcess chan any

// SendUserMessage implements actor.Process.
func (a answerProcess) SendUserMessage(_ *actor.PID, m any) {
	select {
	case a <- actor.UnwrapEnvelopeMessage(m):
	default:
	}
}

// SendSystemMessage implements actor.Process.
func (a answerProcess) SendSystemMessage(pid *actor.PID, m any) {
	if _, stopped := m.(*actor.Terminated); stopped {
		a.SendUserMessage(pid, &actor.DeadLetterResponse{})
	}
}

// Stop implements actor.Process.
func (answerProcess) Stop(*actor.PID) {}

// WithTrace returns an envelope of message that carries the span of ctx in its header (traceparent and
// tracestate, W3C Trace Context). Without a span in ctx it returns message. If message is an envelope, its
// sender is kept. Use Send for the result: proto.actor's RequestFuture would wrap it again; see [Ask].
func WithTrace(ctx context.Context, message any) any {
	if ctx == nil {
		return message
	}
	return request.WithTrace(ctx, message)
}

// TraceOf returns a context with the span of the message that the actor is handling. If [Config] has a
// Tracer, the answers to Acquire and Release, and LeaseAtRisk and LeaseLost, carry the span of the request.
// The context never ends.
func TraceOf(ctx actor.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return request.TraceIn(ctx.MessageHeader())
}

// Done is sent to an actor when the work of a Spawn has ended and the lock is released.
type Done struct {
	// Work is the PID that Spawn has returned.
	Work *actor.PID
	// Lock is the lock's name.
	Lock string
	// Err is the error of Do, or describes that the work has panicked or called [runtime.Goexit].
	Err error
}

// ErrStopped: the actor of a Spawn or a Respond was stopped or restarted, or its child was stopped. An *Error that
// wraps it is the cause of the context of the work.
var ErrStopped = errors.New("the actor that does the work is stopped")

// Spawn runs work under the lock for an actor, without blocking the actor. It spawns a child that runs Do in a
// goroutine, sends the actor a *[Done], and stops. The context of the work is that of Do, with the span of the
// message that the actor is handling. It ends when the lock is lost, and with ErrStopped as a cause when the child
// is stopped or the actor is stopped or restarted. The work must return then: the child has stopped only when the
// work has returned and the lock is released. An actor that stops may not receive the Done.
//
// Each Spawn has a new owner. To withdraw it, stop the child. With a nil ctx Spawn does nothing, and the PID does
// not belong to an actor.
func (l *Lock) Spawn(ctx actor.Context, work func(ctx context.Context) error, options ...Option) *actor.PID {
	return l.spawn(ctx, work, options, actor.Context.Self, func(child *actor.PID, err error) any {
		return &Done{Work: child, Lock: l.Name(), Err: err}
	})
}

// Respond is like Spawn, but sends the result to the sender of the message that the actor is handling. The result
// is what the function answer returns for the error of Do (see [Done.Err]). It is sent even if the actor stops. If
// answer panics or calls [runtime.Goexit], the result is a *messages.Failed.
func (l *Lock) Respond(ctx actor.Context, work func(ctx context.Context) error, answer func(err error) any, options ...Option) *actor.PID {
	if answer == nil {
		work = nil // it is not done
		answer = func(error) any {
			return &messages.Failed{Lock: &messages.Lock{Name: l.Name()}, Reason: messages.Reason_REASON_INVALID, Detail: "the function that makes the answer is nil"}
		}
	}
	return l.spawn(ctx, work, options, actor.Context.Sender, func(_ *actor.PID, err error) any { return answer(err) })
}

// LeaderProps returns the props of an actor that leads while it holds the lock, so that one of all processes
// that spawn it leads. It waits for the lock as Elect does. While it leads it has a child, with the props that
// the function child returns for this term. The term's context is like that of Do: it ends when the lock is
// lost or the leader stops, and HoldFrom returns its hold, for example for the fencing token.
//
// A child that crashes is restarted within its term, any number of times, with a growing delay. For another
// supervisor strategy, Configure the props with [actor.WithSupervisor]. If the lock is lost, the child is
// stopped, and the leader waits for the lock again; another process may lead while the child is still
// stopping. If the child stops by itself, the leader stops too, and this process does not lead again. The
// leader also stops if Elect would return an error of Acquire, and when the System is closed; it logs why. If
// the function child panics or calls [runtime.Goexit], the leader crashes, and its supervisor decides.
//
// To hand over, stop the leader. It has stopped when its child has stopped and the lock is released, at most
// 5 s later.
//
//	leader := system.Root.Spawn(locks.Lock("cleaner").LeaderProps(func(term context.Context) *actor.Props {
//		return actor.PropsFromProducer(func() actor.Actor { return &cleaner{term: term} })
//	}))
//	defer system.Root.StopFuture(leader).Wait() // before the Close of locks
func (l *Lock) LeaderProps(child func(term context.Context) *actor.Props, options ...Option) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		candidacy, resign := context.WithCancelCause(context.Background())
		alive, noChild := context.WithCancel(context.Background())
		return &leader{
			lock: l, props: child, options: options,
			candidacy: candidacy, resign: resign, alive: alive, noChild: noChild,
		}
	}, actor.WithSupervisor(childBackoff))
}
