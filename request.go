package lockkeeper

import (
	"context"
	"time"

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

// RequestFuture is the RequestFuture of a root context, with a message that carries the span of ctx; see
// [WithTrace]. ctx does not bound the wait.
func RequestFuture(ctx context.Context, root *actor.RootContext, pid *actor.PID, message any, timeout time.Duration) *actor.Future {
	future := actor.NewFuture(root.ActorSystem(), timeout)
	e := *actor.WrapEnvelope(message)
	e.Sender = future.PID()
	root.Send(pid, actors.WithTrace(ctx, &e))
	return future
}

// WithTrace returns a message that carries the span of ctx in its header (traceparent and tracestate, W3C
// Trace Context). Without a span in ctx it returns the message itself. Send it to an actor with Send; its
// own RequestFuture would wrap it once more. An envelope keeps its sender.
func WithTrace(ctx context.Context, message any) any { return actors.WithTrace(ctx, message) }

// TraceOf returns a context with the span that the message carries which the actor is handling. If [Config]
// has a Tracer, the answers of a lock to Acquire and Release, and LeaseAtRisk and LeaseLost, carry the span
// that the request carried. The context never ends.
func TraceOf(ctx actor.Context) context.Context { return actors.TraceIn(ctx.MessageHeader()) }
