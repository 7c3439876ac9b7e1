package lockkeeper

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/actors"
)

// Request sends a request of package messages from an actor to the System of its actor system (see
// [From]). The actor is the request's sender, and so the owner of what it acquires; the answer comes to
// it as a message. If the message that the actor is handling carries a span (see [WithTrace]), the request's
// spans are children of it.
//
// After Close, or if there is no System, the answer is proto.actor's DeadLetterResponse.
func Request(ctx actor.Context, request any) {
	e := &actor.MessageEnvelope{Message: request, Sender: ctx.Self()}
	ctx.Send(From(ctx.ActorSystem()).Guardian(), actors.WithTrace(TraceOf(ctx), e))
}

// WithTrace returns a message that carries the span of ctx in its header (traceparent and tracestate, W3C
// Trace Context), to be sent to an actor. Without a span in ctx it returns the message itself.
func WithTrace(ctx context.Context, message any) any { return actors.WithTrace(ctx, message) }

// TraceOf returns a context with the span that the message carries which the actor is handling. An answer to a
// request, and a LeaseAtRisk or LeaseLost, carries the span of the request if [Config] has a Tracer. The
// context never ends.
func TraceOf(ctx actor.Context) context.Context { return actors.TraceIn(ctx.MessageHeader()) }
