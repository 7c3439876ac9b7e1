package lockkeeper

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockkeeper-go/lockkeeper/actors"
)

// Request sends a request of package messages from an actor to the System of its actor system (see
// [From]). The actor is the request's sender, and so the owner of what it acquires; the answer comes to
// it as a message. If the request carries a span (see [WithTrace]), or else the message that the actor is
// handling does, the spans of the request are children of that.
//
// After Close, or if there is no System, the answer is proto.actor's DeadLetterResponse. With a nil ctx nothing is
// sent, since there is no actor to answer.
func Request(ctx actor.Context, request any) {
	if ctx == nil {
		return
	}
	e := *actor.WrapEnvelope(request)
	e.Sender = ctx.Self()
	within := actors.TraceIn(actor.UnwrapEnvelopeHeader(&e))
	if !trace.SpanContextFromContext(within).IsValid() {
		within = TraceOf(ctx)
	}
	ctx.Send(From(ctx.ActorSystem()).Guardian(), actors.WithTrace(within, &e))
}

// Ask sends a message with the span of ctx (see [WithTrace]) to an actor, and waits for its answer. It is for
// goroutines: an actor must not block. The error is actor.ErrDeadLetter if the actor has stopped, or stops before
// it has answered, and the cause of ctx if that ends first. What was asked for may be done in either case. An answer
// that comes after that is a dead letter, which proto.actor logs. An actor that does not answer, or is on another
// node, is waited for until ctx ends.
func Ask(ctx context.Context, root *actor.RootContext, pid *actor.PID, message any) (answer any, err error) {
	switch {
	case ctx == nil:
		return nil, invalid("ask", "", errNoContext)
	case root == nil, pid == nil, message == nil:
		return nil, invalid("ask", "", errors.New("the root context, the PID or the message is nil"))
	}
	registry, answers := root.ActorSystem().ProcessRegistry, make(asker, 1)
	self, _ := registry.Add(answers, "future"+registry.NextId()) // like a future, it cannot be the owner of a lock
	defer registry.Remove(self)
	if process, _ := registry.Get(pid); isActor(process) { // watching a future would complete it
		process.SendSystemMessage(pid, &actor.Watch{Watcher: self})
		defer process.SendSystemMessage(pid, &actor.Unwatch{Watcher: self})
	}
	e := *actor.WrapEnvelope(message)
	e.Sender = self
	root.Send(pid, actors.WithTrace(ctx, &e))
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

// asker is the process that takes the answer of an Ask: its first message. proto.actor's futures know no
// context, do not learn that the actor stops, and race if two messages come.
type asker chan any

// SendUserMessage implements actor.Process.
func (a asker) SendUserMessage(_ *actor.PID, m any) {
	select {
	case a <- actor.UnwrapEnvelopeMessage(m):
	default:
	}
}

// SendSystemMessage implements actor.Process.
func (a asker) SendSystemMessage(pid *actor.PID, m any) {
	if _, stopped := m.(*actor.Terminated); stopped {
		a.SendUserMessage(pid, &actor.DeadLetterResponse{})
	}
}

// Stop implements actor.Process.
func (asker) Stop(*actor.PID) {}

// WithTrace returns a message that carries the span of ctx in its header (traceparent and tracestate, W3C
// Trace Context). Without a span in ctx it returns the message itself. Send it to an actor with Send:
// proto.actor's RequestFuture would wrap it once more; see [Ask]. An envelope keeps its sender.
func WithTrace(ctx context.Context, message any) any {
	if ctx == nil {
		return message
	}
	return actors.WithTrace(ctx, message)
}

// TraceOf returns a context with the span that the message carries which the actor is handling. If [Config]
// has a Tracer, the answers of a lock to Acquire and Release, and LeaseAtRisk and LeaseLost, carry the span
// that the request carried. The context never ends.
func TraceOf(ctx actor.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return actors.TraceIn(ctx.MessageHeader())
}
