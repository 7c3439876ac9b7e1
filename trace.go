package lockkeeper

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// WithTrace returns an envelope of message that carries the span of ctx in its header (traceparent and tracestate, W3C
// Trace Context). Without a span in ctx WithTrace returns message. If message is an envelope, its sender is kept. Use
// Send for the result: proto.actor's RequestFuture would wrap it again; see [Ask].
func WithTrace(ctx context.Context, message any) any {
	if ctx == nil {
		return message
	}
	return request.WithTrace(ctx, message)
}

// TraceOf returns a context with the span of the message that the actor is handling. If [Config] has a Tracer, the
// answer to a request, LeaseAtRisk and LeaseLost carry the span of the request. The context never ends.
func TraceOf(ctx actor.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return request.TraceIn(ctx.MessageHeader())
}
