package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// parentIn is the context of the span that a message's header names; nil without a tracer.
func (r *Runtime) parentIn(header actor.ReadonlyMessageHeader) context.Context {
	if !r.Traces() {
		return nil
	}
	return TraceIn(header)
}

// WithTrace returns a message with the span of a context in its header, if it has one.
func WithTrace(ctx context.Context, message any) any {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return message
	}
	header, m, sender := actor.UnwrapEnvelope(message)
	e, carrier := Envelope(m, sender, header), propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	for _, key := range (propagation.TraceContext{}).Fields() {
		delete(e.Header, key) // of another trace
		if value := carrier.Get(key); value != "" {
			e.SetHeader(key, value)
		}
	}
	return e
}

// TraceIn is a context with the span that a message's header names, by the W3C's Trace Context.
func TraceIn(header actor.ReadonlyMessageHeader) context.Context {
	if header == nil {
		return context.Background()
	}
	return propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(header.ToMap()))
}
