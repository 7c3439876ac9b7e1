package lockkeeper

import (
	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// Request sends a request of package messages from an actor to the System of its actor system (see
// [From]). The actor is the sender, and therefore the owner of what it acquires, and receives the answer
// as a message. The spans of the request are children of the span that the request carries (see
// [WithTrace]), or otherwise of the span of the message that the actor is handling.
//
// While the actor handles its Stopped, the request has no sender, and an Acquire is refused, since an owner that has
// stopped gets no answer, and its locks are released.
//
// After Close, or if there is no System, the answer is proto.actor's DeadLetterResponse. With a nil ctx Request
// does nothing, since there is no actor to receive an answer.
func Request(ctx actor.Context, message any) {
	if ctx != nil {
		requestFrom(From(ctx.ActorSystem()).Guardian(), ctx, message)
	}
}

// requestFrom does the work of Request for the System of a guardian.
func requestFrom(guardian *actor.PID, ctx actor.Context, message any) {
	e := *actor.WrapEnvelope(message)
	if e.Sender = ctx.Self(); isStopped(ctx) {
		e.Sender = nil // another actor may have its name by now
	}
	within := request.TraceIn(actor.UnwrapEnvelopeHeader(&e))
	if !trace.SpanContextFromContext(within).IsValid() {
		within = TraceOf(ctx)
	}
	ctx.Send(guardian, request.WithTrace(within, &e))
}

func isStopped(ctx actor.Context) bool {
	_, is := ctx.Message().(*actor.Stopped)
	return is
}
