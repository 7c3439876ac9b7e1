package actors

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// Spans are made when what they tell of is over, with the times as they were, on a queue of the
// host's: the tracer is the host's code, and so may be the context that has the parent.

// event is something that happened to a lock.
type event struct {
	at        lock.Instant
	name      string
	attribute attribute.KeyValue
}

// events are remembered for the spans of a lock: by the holder whom they concern, and under nil
// those that concern all who wait.
type events map[*Call][]event

// mostEvents is how many of the last events are remembered, for each.
const mostEvents = 32

// note remembers an event, if there is a tracer. A key of "" is no attribute.
func (s *lockState) note(of *Call, name, key, value string) {
	if s.rt.cfg.Tracer == nil {
		return
	}
	if s.events == nil {
		s.events = events{}
	}
	list := s.events[of]
	if len(list) == mostEvents {
		list = append(list[:0], list[1:]...)
	}
	s.events[of] = append(list, event{s.rt.Now(), name, attribute.String(key, value)})
}

// noteReply remembers what Redis has said to a try.
func (s *lockState) noteReply(r lock.Result) {
	if s.rt.cfg.Tracer == nil {
		return
	}
	switch r.Outcome {
	case lock.Refused:
		s.note(nil, "held", "lockkeeper.owner", r.Holder)
	case lock.Failed:
		s.note(nil, "failed", "lockkeeper.error", r.Err.Error())
	}
}

// traceAnswer makes the span of a request that has its answer.
func (s *lockState) traceAnswer(of answered, a *lock.Answer) {
	if s.rt.cfg.Tracer == nil {
		return
	}
	var result event
	var failure string
	switch a.Kind {
	case lock.Granted:
		result = event{name: "granted", attribute: attribute.String(wayAttribute, grantVia(a).String())}
	case lock.NotGranted, lock.NotFreed:
		result, failure = event{name: "refused", attribute: attribute.String(reasonAttribute, reasonWord(a.Reason))}, cmp.Or(a.Detail, reasonWord(a.Reason))
		if of.leads && (a.Reason == lock.CancelledByRequest || a.Reason == lock.Closed) {
			failure = "" // it stood by to the end
		}
	case lock.Freed:
		result = event{name: "released"}
	default:
		return
	}
	result.at = s.rt.Now()
	if a.Kind == lock.Freed || a.Kind == lock.NotFreed {
		s.span("lockkeeper.release", of, []event{result}, failure)
		return
	}
	events := slices.DeleteFunc(slices.Clone(s.events[nil]), func(e event) bool { return e.at < of.since })
	inVain := a.Reason == lock.TimedOut || a.Reason == lock.CancelledByRequest
	if inVain || a.HandedOn || a.Transferred || slices.ContainsFunc(events, func(e event) bool { return e.name == "held" }) {
		events = append([]event{{at: of.since, name: "queued"}}, events...)
	}
	s.span("lockkeeper.acquire", of, append(events, result), failure)
}

// traceHold makes the span of a hold that has ended.
func (s *lockState) traceHold(call *Call) {
	if s.rt.cfg.Tracer == nil {
		return
	}
	events, failure := s.events[call], ""
	delete(s.events, call)
	for _, e := range events {
		if e.name == "lost" {
			failure = e.attribute.Value.AsString()
		}
	}
	s.span("lockkeeper.hold", s.about(call), events, failure)
}

// span has a span made, from when the request was made, or the hold granted, until now, unless the request has no parent.
// It has failed if there is a failure.
func (s *lockState) span(name string, of answered, events []event, failure string) {
	if of.parent == nil {
		return
	}
	attributes := []attribute.KeyValue{attribute.String("lockkeeper.lock", s.label), attribute.String(kindAttribute, of.kind.LogValue().String())}
	now, end := s.rt.Now(), time.Now()
	wall := func(at lock.Instant) trace.SpanEventOption { return trace.WithTimestamp(end.Add(at - now)) }
	s.rt.host.Trace(func() {
		_, span := s.rt.cfg.Tracer.Start(of.parent, name, wall(of.since), trace.WithAttributes(attributes...))
		for _, e := range events {
			options := []trace.EventOption{wall(e.at)}
			if e.attribute.Valid() {
				options = append(options, trace.WithAttributes(e.attribute))
			}
			span.AddEvent(e.name, options...)
		}
		if failure != "" {
			span.SetStatus(codes.Error, failure)
		}
		span.End(trace.WithTimestamp(end))
	})
}

// parentIn is the context of the span that a message's header names; nil without a tracer.
func (r *Runtime) parentIn(header actor.ReadonlyMessageHeader) context.Context {
	if r.cfg.Tracer == nil {
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
	e, carrier := envelope(m, sender, header), propagation.MapCarrier{}
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

// Traces reports whether spans are made.
func (r *Runtime) Traces() bool { return r.cfg.Tracer != nil }
