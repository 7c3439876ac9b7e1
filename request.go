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

// WithTrace returns a message that carries the span of ctx in its header (traceparent and tracestate, W3C
// Trace Context). Without a span in ctx it returns the message itself. Send it to an actor with Send:
// RequestFuture would wrap it once more. An envelope keeps its sender, as for an answer to a future:
//
//	future := actor.NewFuture(system, 5*time.Second)
//	job := &actor.MessageEnvelope{Message: order, Sender: future.PID()}
//	system.Root.Send(pid, lockkeeper.WithTrace(ctx, job))
//	answer, err := future.Result()
func WithTrace(ctx context.Context, message any) any { return actors.WithTrace(ctx, message) }

// TraceOf returns a context with the span that the message carries which the actor is handling. If [Config]
// has a Tracer, the answers of a lock to Acquire and Release, and LeaseAtRisk and LeaseLost, carry the span
// that the request carried. The context never ends.
func TraceOf(ctx actor.Context) context.Context { return actors.TraceIn(ctx.MessageHeader()) }
