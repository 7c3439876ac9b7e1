package observe

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// A span is made when its request or hold is over, with the times as they were, on a queue of the host, since the
// tracer is the host's code, and so may be the context that has the parent.

// event is something that happened to a lock.
type event struct {
	at        machine.Instant
	name      string
	attribute attribute.KeyValue
}

// events are remembered for the spans of a lock: by the Ref of the hold that they concern, and under nil if they
// concern all requests that wait.
type events map[any][]event

// maxEvents is the number of the last events that are remembered, for each.
const maxEvents = 32

// note remembers an event, if there is a tracer. With the key "" the event has no attribute.
func (l *Lock) note(of any, name, key, value string) {
	if !l.o.Traces() {
		return
	}
	if l.events == nil {
		l.events = events{}
	}
	list := l.events[of]
	if len(list) == maxEvents {
		list = append(list[:0], list[1:]...)
	}
	l.events[of] = append(list, event{l.o.cfg.Now(), name, attribute.String(key, value)})
}

// Tried remembers, for the requests that wait, that Redis was asked for the lock.
func (l *Lock) Tried() { l.note(nil, "tried", "", "") }

// RepliedHeld remembers a reply: the owner that has the lock.
func (l *Lock) RepliedHeld(owner string) { l.note(nil, "held", "lockkeeper.owner", owner) }

// RepliedFailed remembers that a try has failed.
func (l *Lock) RepliedFailed(err error) {
	if l.o.Traces() {
		l.note(nil, "failed", "lockkeeper.error", err.Error())
	}
}

// Listening remembers, for the requests that wait, that a subscription to the lock's channel is confirmed.
func (l *Lock) Listening() { l.note(nil, "subscribed", "", "") }

// Transferred remembers, for the requests that wait, that another process has transferred the lock.
func (l *Lock) Transferred() { l.note(nil, "transferred", "", "") }

// traceAnswer makes the span of a request that has its answer.
func (l *Lock) traceAnswer(of Request, a *machine.Answer) {
	if !l.o.Traces() {
		return
	}
	var result event
	var failure string
	switch a.Kind {
	case machine.Granted:
		result = event{name: "granted", attribute: attribute.String(wayAttribute, grantVia(a).String())}
	case machine.NotGranted, machine.NotFreed:
		result = event{name: "refused", attribute: attribute.String(reasonAttribute, reasonWord(a.Reason))}
		failure = cmp.Or(a.Detail, reasonWord(a.Reason))
		if of.Leads && (a.Reason == machine.CancelledByRequest || a.Reason == machine.Closed) {
			failure = "" // the request stood by to the end
		}
	case machine.Freed:
		result = event{name: "released"}
	default:
		return
	}
	result.at = l.o.cfg.Now()
	if a.Kind == machine.Freed || a.Kind == machine.NotFreed {
		l.span("lockkeeper.release", of, []event{result}, failure)
		return
	}
	events := slices.DeleteFunc(slices.Clone(l.events[nil]), func(e event) bool { return e.at < of.Since })
	inVain := a.Reason == machine.TimedOut || a.Reason == machine.CancelledByRequest
	if inVain || a.HandedOff || a.Transferred || slices.ContainsFunc(events, func(e event) bool { return e.name == "held" }) {
		events = append([]event{{at: of.Since, name: "queued"}}, events...)
	}
	l.span("lockkeeper.acquire", of, append(events, result), failure)
}

// traceHold makes the span of a hold that has ended.
func (l *Lock) traceHold(of Request, ref any) {
	if !l.o.Traces() {
		return
	}
	events, failure := l.events[ref], ""
	delete(l.events, ref)
	for _, e := range events {
		if e.name == "lost" {
			failure = e.attribute.Value.AsString()
		}
	}
	l.span("lockkeeper.hold", of, events, failure)
}

// span makes a span, from when the request was made, or the hold granted, until now, unless the request has no
// parent. It has failed if there is a failure.
func (l *Lock) span(name string, of Request, events []event, failure string) {
	if of.Parent == nil {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.String("lockkeeper.lock", l.label), attribute.String(kindAttribute, of.Kind.LogValue().String()),
	}
	now, end := l.o.cfg.Now(), time.Now()
	wall := func(at machine.Instant) trace.SpanEventOption { return trace.WithTimestamp(end.Add(at - now)) }
	l.o.host.Trace(func() {
		_, span := l.o.cfg.Tracer.Start(of.Parent, name, wall(of.Since), trace.WithAttributes(attributes...))
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
