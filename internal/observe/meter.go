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

// metrics counts what locks, semaphores and latches do; a nil *metrics counts nothing. The meter is the
// host's: it gets on the host's queue what has been counted since the last time.
type metrics struct {
	host *host.Host
	// recorders is nil for an instrument that the meter has not made. It belongs to the host's queue, as do
	// the options, and the measurements for the meter: pending, of which it has had the first at.
	recorders [instruments]func(n int64, o *options)
	options   map[sample]*options
	pending   []measurement
	at        int

	mu sync.Mutex // guards what follows
	// tallies are those of an instrument by its subjects, as far as there were any.
	tallies [instruments][]tally
	// values are those of the histograms.
	values []measurement
	asked  bool // flush is about to come
	// scripts are the names of those that were called, and numbers is where they are in it.
	scripts []string
	numbers map[string]subject
}

// tally is what was measured of a subject since the last flush.
type tally struct {
	// sums has what all but the histograms were added; touched has a bit for each word with a sum, also of 0, so
	// that what went up and down again is known.
	sums    [words]int64
	touched uint32
	// seen is how many values of a histogram there were.
	seen [words]uint32
}

// mostValues bounds the values of histograms that wait for the meter. Those for which there is
// no room are counted, and their number is a metric, as are those that the meter panics at.
const mostValues = 16384

// manyValues is how many do not wait for more.
const manyValues = mostValues / 4

// fewValues is how many values of one sort a histogram gets between two flushes before it gets only a sample
// of them. To record a value takes longer than some locks are held in memory. What needs the exact
// number has a counter.
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

// add counts measurements. Several are given together: the mutex is that of the System.
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

// changed adds to what is counted up and down.
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

// ask has flush called, if it is not about to come. mu is held, as for what follows.
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
	case len(m.values) == mostValues:
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

// inSample reports whether a value is to be recorded: of the first few every one, then every second, and of
// twice as many half as often.
func (t *tally) inSample(what word) bool {
	n := &t.seen[what]
	every := uint32(1) << bits.Len32(*n/fewValues)
	*n++
	return (*n-1)%every == 0
}

// flush gives the meter what was counted: first what is left since it ended the goroutine.
func (m *metrics) flush() {
	m.mu.Lock()
	m.asked = false
	m.mu.Unlock()
	m.recordAll()
	m.collect()
	m.recordAll()
}

// recordAll goes on behind what the meter panics at. The meter gets that once more; if it panics again, a
// sum waits for the next flush, and a value of a histogram is missed.
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

// collect takes what has been counted, when the meter has had all that came before.
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
