package request

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// WithTrace returns a message with the span of a context in its header, if the context has a span.
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

// TraceIn returns a context with the span that a message's header names, by the W3C's Trace Context.
func TraceIn(header actor.ReadonlyMessageHeader) context.Context {
	if header == nil {
		return context.Background()
	}
	return propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(header.ToMap()))
}

// Envelope returns an envelope with a message, its sender, and a copy of its header, which may be nil.
func Envelope(message any, sender *actor.PID, header actor.ReadonlyMessageHeader) *actor.MessageEnvelope {
	e := &actor.MessageEnvelope{Message: message, Sender: sender}
	if header != nil {
		for _, key := range header.Keys() {
			e.SetHeader(key, header.Get(key))
		}
	}
	return e
}
