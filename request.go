package lockkeeper

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockkeeper-go/lockkeeper/actors"
)

// Request sends a request of package messages from an actor to the System of its actor system (see
// [From]). The actor is the request's sender, and so the owner of what it acquires; the answer comes to
// it as a message. If the request carries a span (see [WithTrace]), or else the message that the actor is
// handling does, the spans of the request are children of that.
//
// After Close, or if there is no System, the answer is proto.actor's DeadLetterResponse.
func Request(ctx actor.Context, request any) {
	e := *actor.WrapEnvelope(request)
	e.Sender = ctx.Self()
	within := actors.TraceIn(actor.UnwrapEnvelopeHeader(&e))
	if !trace.SpanContextFromContext(within).IsValid() {
		within = TraceOf(ctx)
	}
	ctx.Send(From(ctx.ActorSystem()).Guardian(), actors.WithTrace(within, &e))
}

// Ask sends a message with the span of ctx (see [WithTrace]) to an actor, and waits for its answer, or until ctx
// ends: then the error is the cause of ctx, what was asked for may still be done, and an answer that comes late is
// a dead letter, which proto.actor logs. If the actor has
// stopped, it is actor.ErrDeadLetter.
func Ask(ctx context.Context, root *actor.RootContext, pid *actor.PID, message any) (answer any, err error) {
	registry, answers := root.ActorSystem().ProcessRegistry, make(asker, 1)
	self, _ := registry.Add(answers, "future"+registry.NextId()) // as futures are named, which are no owners of locks
	defer registry.Remove(self)
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

// asker is the process that takes the answer of an Ask. proto.actor's futures know no context, and race if two
// messages come.
type asker chan any

// SendUserMessage implements actor.Process.
func (a asker) SendUserMessage(_ *actor.PID, m any) {
	select {
	case a <- actor.UnwrapEnvelopeMessage(m):
	default: // there was an answer
	}
}

// SendSystemMessage implements actor.Process.
func (asker) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (asker) Stop(*actor.PID) {}

// WithTrace returns a message that carries the span of ctx in its header (traceparent and tracestate, W3C
// Trace Context). Without a span in ctx it returns the message itself. Send it to an actor with Send:
// proto.actor's RequestFuture would wrap it once more; see [Ask]. An envelope keeps its sender.
func WithTrace(ctx context.Context, message any) any { return actors.WithTrace(ctx, message) }

// TraceOf returns a context with the span that the message carries which the actor is handling. If [Config]
// has a Tracer, the answers of a lock to Acquire and Release, and LeaseAtRisk and LeaseLost, carry the span
// that the request carried. The context never ends.
func TraceOf(ctx actor.Context) context.Context { return actors.TraceIn(ctx.MessageHeader()) }
