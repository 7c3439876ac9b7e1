package actors

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// metrics counts what the locks do; a nil *metrics counts nothing.
//
// No instrument carries a lock's name: names are without number.
type metrics struct {
	granted, refused, losses, risks, failures metric.Int64Counter
	actors                                    metric.Int64UpDownCounter
}

func newMetrics(meter metric.Meter) *metrics {
	if meter == nil {
		return nil
	}
	counter := func(name, what string) metric.Int64Counter {
		c, err := meter.Int64Counter("lockkeeper."+name, metric.WithDescription(what))
		if err != nil {
			return nil
		}
		return c
	}
	m := &metrics{
		granted:  counter("granted", "locks granted; handed_on tells those passed on inside the process"),
		refused:  counter("refused", "requests for a lock that were not granted, by reason"),
		losses:   counter("lost", "holds that were lost, by reason"),
		risks:    counter("at_risk", "leases whose renewal began to fail"),
		failures: counter("redis.failures", "scripts that failed, by whether that may pass"),
	}
	m.actors, _ = meter.Int64UpDownCounter("lockkeeper.actors", metric.WithDescription("lock actors alive"))
	return m
}

func add(c metric.Int64Counter, attributes ...attribute.KeyValue) {
	if c != nil {
		c.Add(context.Background(), 1, metric.WithAttributes(attributes...))
	}
}

func (m *metrics) answered(a core.Answer) {
	if m == nil {
		return
	}
	switch a.Kind {
	case core.Granted:
		add(m.granted, attribute.Bool("handed_on", a.HandedOn))
	case core.NotGranted:
		add(m.refused, attribute.String("reason", a.Reason.String()))
	}
}

func (m *metrics) lost(reason core.Reason) {
	if m != nil {
		add(m.losses, attribute.String("reason", reason.String()))
	}
}

func (m *metrics) atRisk() {
	if m != nil {
		add(m.risks)
	}
}

func (m *metrics) replied(r core.Result) {
	if m != nil && r.Outcome == core.Failed {
		add(m.failures, attribute.Bool("transient", r.Transient))
	}
}

func (m *metrics) locks(n int64) {
	if m != nil && m.actors != nil {
		m.actors.Add(context.Background(), n)
	}
}
