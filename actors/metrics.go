package actors

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// metrics counts what the locks do; a nil *metrics counts nothing. The meter is the
// host's: it is told on the host's queue, of what has been counted since the last time.
//
// No instrument carries a lock's name: names are without number.
type metrics struct {
	host     *host
	counters [actorCount]metric.Int64Counter
	actors   metric.Int64UpDownCounter

	mu      sync.Mutex // guards what follows
	pending map[sample]int64
}

// instrument is one of the counters.
type instrument uint8

const (
	granted instrument = iota
	refused
	losses
	risks
	failures
	actorCount
)

// sample is what a count belongs to; the attribute is the zero value if there is none.
type sample struct {
	instrument
	attribute attribute.KeyValue
}

func newMetrics(meter metric.Meter, h *host) *metrics {
	if meter == nil {
		return nil
	}
	m := &metrics{host: h, pending: map[sample]int64{}}
	counter := func(i instrument, name, what string) {
		if c, err := meter.Int64Counter("lockkeeper."+name, metric.WithDescription(what)); err == nil {
			m.counters[i] = c
		}
	}
	counter(granted, "granted", "locks granted; handed_on tells those passed on inside the process")
	counter(refused, "refused", "requests for a lock that were not granted, by reason")
	counter(losses, "lost", "holds that were lost, by reason")
	counter(risks, "at_risk", "leases whose renewal began to fail")
	counter(failures, "redis.failures", "scripts that failed, by whether that may pass")
	if c, err := meter.Int64UpDownCounter("lockkeeper.actors", metric.WithDescription("lock actors alive")); err == nil {
		m.actors = c
	}
	return m
}

// add counts n more, and has the meter told if it is not about to be.
func (m *metrics) add(i instrument, n int64, a attribute.KeyValue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pending) == 0 {
		m.host.measure(m.flush)
	}
	m.pending[sample{i, a}] += n
}

// flush tells the meter.
func (m *metrics) flush() {
	m.mu.Lock()
	pending := m.pending
	m.pending = map[sample]int64{}
	m.mu.Unlock()
	for s, n := range pending {
		var options []metric.AddOption
		if s.attribute.Valid() {
			options = append(options, metric.WithAttributes(s.attribute))
		}
		switch {
		case s.instrument == actorCount && m.actors != nil:
			m.actors.Add(context.Background(), n, options...)
		case s.instrument != actorCount && m.counters[s.instrument] != nil:
			m.counters[s.instrument].Add(context.Background(), n, options...)
		}
	}
}

func (m *metrics) answered(a lock.Answer) {
	if m == nil {
		return
	}
	switch a.Kind {
	case lock.Granted:
		m.add(granted, 1, attribute.Bool("handed_on", a.HandedOn))
	case lock.NotGranted:
		m.add(refused, 1, attribute.String("reason", a.Reason.String()))
	}
}

func (m *metrics) lost(reason lock.Reason) {
	if m != nil {
		m.add(losses, 1, attribute.String("reason", reason.String()))
	}
}

func (m *metrics) atRisk() {
	if m != nil {
		m.add(risks, 1, attribute.KeyValue{})
	}
}

func (m *metrics) replied(r lock.Result) {
	if m != nil && r.Outcome == lock.Failed {
		m.add(failures, 1, attribute.Bool("transient", r.Transient))
	}
}

func (m *metrics) locks(n int64) {
	if m != nil {
		m.add(actorCount, n, attribute.KeyValue{})
	}
}
