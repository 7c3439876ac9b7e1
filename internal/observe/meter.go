package observe

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockkeeper-go/lockkeeper/internal/host"
)

// metrics counts what locks, semaphores and latches do; a nil *metrics counts nothing. flush passes the sums
// since the last flush to the meter, on the host's queue.
type metrics struct {
	host *host.Host
	// recorders is nil for an instrument that the meter could not make. Only the host's queue uses recorders, options,
	// pending and at.
	recorders [instruments]func(n int64, o *options)
	options   map[sample]*options
	// pending are measurements for the meter.
	pending []measurement
	// at is the number of pending measurements that the meter has received.
	at int

	mu sync.Mutex // guards the fields below
	// tallies are the tallies of each instrument, by subject.
	tallies [instruments][]tally
	// values are the values of the histograms.
	values []measurement
	asked  bool // the host's queue has a call of flush
	// scripts are the names of the scripts that were called.
	scripts []string
	// numbers are the indexes of scripts.
	numbers map[string]subject
}

// tally contains the measurements of a subject since the last flush.
type tally struct {
	// sums are the sums of all instruments but the histograms.
	sums [words]int64
	// touched has a bit for each word with a sum, including words whose sum returned to 0.
	touched uint32
	// seen is the number of values of a histogram.
	seen [words]uint32
}

// maxValues bounds the values of histograms that wait for the meter. A metric counts the values for which there is no
// room, and the values at which the meter panics.
const maxValues = 16384

// manyValues is the number of values that do not wait for further values.
const manyValues = maxValues / 4

// fewValues is the number of values of one sort that a histogram gets between two flushes before it gets only a sample
// of the values. To record a value takes longer than some locks are held in memory. Counters have the exact numbers.
const fewValues = 512

// options are the attributes of a sample, as the meter takes them.
type options struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newMetrics(meter metric.Meter, h *host.Host) *metrics {
	if meter == nil {
		return nil
	}
	m := &metrics{host: h, options: map[sample]*options{}, numbers: map[string]subject{}}
	ctx := context.Background()
	for i, d := range described {
		name, text, unit := "lockkeeper."+d.name, metric.WithDescription(d.text), metric.WithUnit(d.unit)
		switch d.form {
		case counter:
			if c, err := meter.Int64Counter(name, text, unit); err == nil {
				m.recorders[i] = func(n int64, o *options) { c.Add(ctx, n, o.add...) }
			}
		case upDown:
			if c, err := meter.Int64UpDownCounter(name, text, unit); err == nil {
				m.recorders[i] = func(n int64, o *options) { c.Add(ctx, n, o.add...) }
			}
		case seconds:
			boundaries := lockBoundaries
			if instrument(i) == callTime {
				boundaries = callBoundaries
			}
			if h, err := meter.Float64Histogram(name, text, unit, metric.WithExplicitBucketBoundaries(boundaries...)); err == nil {
				m.recorders[i] = func(n int64, o *options) { h.Record(ctx, time.Duration(n).Seconds(), o.record...) }
			}
		}
	}
	return m
}

// add counts measurements. Callers pass several measurements at once, since all callers of a System share one mutex.
func (m *metrics) add(all ...measurement) {
	if m == nil || len(all) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ask()
	for _, one := range all {
		m.put(one)
	}
}

// changed adds n to an up-down counter.
func (m *metrics) changed(i instrument, n int64) { m.add(measurement{sample{instrument: i}, n}) }

// called counts the call of a script.
func (m *metrics) called(script string, result word, took time.Duration) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ask()
	of, known := m.numbers[script]
	if !known {
		of = subject(len(m.scripts))
		m.scripts = append(m.scripts, script)
		m.numbers[script] = of
	}
	m.put(measurement{sample{calls, result, of}, 1})
	m.put(measurement{sample{callTime, result, of}, int64(took)})
}

// ask puts a call of flush on the host's queue, unless one is there. mu is held here and in the functions below.
func (m *metrics) ask() {
	if !m.asked {
		m.asked = true
		m.host.Measure(m.flush)
	}
}

func (m *metrics) put(one measurement) {
	t := m.tally(one.sample)
	switch {
	case described[one.instrument].form != seconds:
		t.sums[one.what] += one.n
		t.touched |= 1 << one.what
	case !t.inSample(one.what):
	case len(m.values) == maxValues:
		m.put(measurement{sample{instrument: missed}, 1})
	default:
		m.values = append(m.values, measurement{one.sample, max(one.n, 0)})
		if len(m.values) == manyValues {
			m.host.FlushMeasures()
		}
	}
}

func (m *metrics) tally(s sample) *tally {
	all := &m.tallies[s.instrument]
	for int(s.of) >= len(*all) {
		*all = append(*all, tally{})
	}
	return &(*all)[s.of]
}

// inSample reports whether a value is to be recorded: each of the first fewValues, then every second value, and half as
// often each time the number of values has doubled.
func (t *tally) inSample(what word) bool {
	n := &t.seen[what]
	every := uint32(1) << bits.Len32(*n/fewValues)
	*n++
	return (*n-1)%every == 0
}

// flush passes the measurements to the meter: first the measurements that are left of a flush whose goroutine has
// ended.
func (m *metrics) flush() {
	m.mu.Lock()
	m.asked = false
	m.mu.Unlock()
	m.recordAll()
	m.collect()
	m.recordAll()
}

// recordAll passes pending to the meter, and continues after a panic of the meter. It passes the measurement in
// question once more; if the meter panics again, a sum waits for the next flush, and a value of a histogram is missed.
func (m *metrics) recordAll() {
	for m.at < len(m.pending) {
		one := m.pending[m.at]
		m.at++
		record := func() { m.record(one) }
		recorded := m.host.TryMeasure(record)
		if !recorded {
			recorded = m.host.TryMeasure(record)
		}
		if recorded {
			continue
		}
		m.mu.Lock()
		if described[one.instrument].form == seconds {
			one = measurement{sample{instrument: missed}, 1}
		}
		m.put(one)
		m.mu.Unlock()
	}
}

// collect makes the sums and values pending, when the meter has all earlier measurements.
func (m *metrics) collect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending, m.values, m.at = m.values, m.pending[:0], 0
	for i := range m.tallies {
		for of := range m.tallies[i] {
			t := &m.tallies[i][of]
			for bit := t.touched; bit != 0; bit &= bit - 1 {
				what := bits.TrailingZeros32(bit)
				m.pending = append(m.pending, measurement{sample{instrument(i), word(what), subject(of)}, t.sums[what]})
			}
			*t = tally{}
		}
	}
}

func (m *metrics) record(one measurement) {
	record := m.recorders[one.instrument]
	if record == nil {
		return
	}
	o := m.options[one.sample]
	if o == nil {
		attributes := metric.WithAttributeSet(m.attributes(one.sample))
		o = &options{[]metric.AddOption{attributes}, []metric.RecordOption{attributes}}
		m.options[one.sample] = o
	}
	record(one.n, o)
}

func (m *metrics) attributes(s sample) attribute.Set {
	var all []attribute.KeyValue
	d := described[s.instrument]
	if d.kinded {
		all = append(all, attribute.String(kindAttribute, s.of.kindWord()))
	}
	if d.script {
		m.mu.Lock()
		all = append(all, attribute.String(scriptAttribute, m.scripts[s.of]))
		m.mu.Unlock()
	}
	if d.what != "" {
		all = append(all, attribute.String(d.what, s.what.String()))
	}
	return attribute.NewSet(all...)
}
