package actors

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// metrics counts what locks, semaphores and latches do; a nil *metrics counts nothing. The meter is the
// host's: it is told on the host's queue, of what has been counted since the last time.
//
// No instrument carries a lock's name: names are without number.
type metrics struct {
	host *host
	// told belongs to the host's queue, as do the options.
	told    [instruments]func(context.Context, *tally, metric.MeasurementOption)
	options map[sample]metric.MeasurementOption

	mu      sync.Mutex // guards what follows
	pending map[sample]*tally
	asked   bool // flush is about to come
	// values is how many of a histogram's wait in pending.
	values int
}

// mostValues bounds the values of histograms that wait for the meter. Those for which there is
// no room are counted, and their number is a metric.
const mostValues = 4096

// tally is what the meter is to be told of one sample: a sum, or the values of a histogram.
type tally struct {
	n      int64
	values []time.Duration
}

// sample is what is measured, and the attributes of that: kind is that of a lock, made says that it
// is of a semaphore or a latch instead, script names a script, and what is the way, the reason or
// the result. An attribute that the instrument does not have is the zero value.
type sample struct {
	instrument
	made         making
	kind         messages.Kind
	script, what string
}

type instrument uint8

const (
	holds instrument = iota
	waiters
	grants
	refusals
	losses
	risks
	waitTime
	holdTime
	callTime
	renewals
	subscriptions
	reconnects
	lockActors
	missed
	instruments
)

// form is how an instrument adds up.
type form uint8

const (
	counter form = iota
	upDown
	seconds // a histogram
)

const (
	kindAttribute   = "lockkeeper.kind"
	scriptAttribute = "lockkeeper.script"
	wayAttribute    = "lockkeeper.way"
	reasonAttribute = "lockkeeper.reason"
	resultAttribute = "lockkeeper.result"
)

// described are the instruments as docs/operate.md has them. what names the attribute of
// sample.what.
var described = [instruments]struct {
	name string
	form
	unit, text     string
	kinded, script bool
	what           string
}{
	holds:         {name: "holds", form: upDown, unit: "{hold}", kinded: true, text: "Holds of this process. Permits of a semaphore have no owner, and are none."},
	waiters:       {name: "waiters", form: upDown, unit: "{request}", kinded: true, text: "Requests of this process that wait for a lock, permits or a latch."},
	grants:        {name: "grants", unit: "{grant}", kinded: true, what: wayAttribute, text: "Grants to requests for a lock, permits or a latch, by the way they came."},
	refusals:      {name: "refusals", unit: "{request}", kinded: true, what: reasonAttribute, text: "Requests for a lock, permits or a latch that were not granted."},
	losses:        {name: "losses", unit: "{hold}", kinded: true, what: reasonAttribute, text: "Holds that were lost. Those that Close ended are none of them."},
	risks:         {name: "at_risk", unit: "{hold}", kinded: true, text: "Holds whose renewals began to fail."},
	waitTime:      {name: "wait.duration", form: seconds, unit: "s", kinded: true, what: resultAttribute, text: "How long requests for a lock, permits or a latch waited for their answer."},
	holdTime:      {name: "hold.duration", form: seconds, unit: "s", kinded: true, text: "How long locks were held."},
	callTime:      {name: "redis.call.duration", form: seconds, unit: "s", script: true, what: resultAttribute, text: "How long Redis took to answer the call of a script."},
	renewals:      {name: "renewals", unit: "{lease}", what: resultAttribute, text: "Leases that the watchdog was to renew."},
	subscriptions: {name: "subscriptions", form: upDown, unit: "{channel}", text: "Channels on which this process waits for a release."},
	reconnects:    {name: "reconnects", unit: "{connection}", text: "Connections for pub/sub that were opened after one had broken."},
	lockActors:    {name: "actors", form: upDown, unit: "{actor}", text: "Actors of locks, semaphores and latches alive."},
	missed:        {name: "missed", unit: "{value}", text: "Values that histograms missed, since the meter was too slow."},
}

// Boundaries in seconds: a call to Redis takes tenths of a millisecond, a job may hold a lock for hours.
var (
	callBoundaries = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
	lockBoundaries = []float64{.0005, .001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 3600}
)

func newMetrics(meter metric.Meter, h *host) *metrics {
	if meter == nil {
		return nil
	}
	m := &metrics{host: h, options: map[sample]metric.MeasurementOption{}, pending: map[sample]*tally{}}
	for i, d := range described {
		name, text, unit := "lockkeeper."+d.name, metric.WithDescription(d.text), metric.WithUnit(d.unit)
		switch d.form {
		case counter:
			if c, err := meter.Int64Counter(name, text, unit); err == nil {
				m.told[i] = func(ctx context.Context, t *tally, o metric.MeasurementOption) { c.Add(ctx, t.n, o) }
			}
		case upDown:
			if c, err := meter.Int64UpDownCounter(name, text, unit); err == nil {
				m.told[i] = func(ctx context.Context, t *tally, o metric.MeasurementOption) { c.Add(ctx, t.n, o) }
			}
		case seconds:
			boundaries := lockBoundaries
			if instrument(i) == callTime {
				boundaries = callBoundaries
			}
			if h, err := meter.Float64Histogram(name, text, unit, metric.WithExplicitBucketBoundaries(boundaries...)); err == nil {
				m.told[i] = func(ctx context.Context, t *tally, o metric.MeasurementOption) {
					for _, each := range t.values {
						h.Record(ctx, each.Seconds(), o)
					}
				}
			}
		}
	}
	return m
}

// add counts n more, and has the meter told if it is not about to be.
func (m *metrics) add(s sample, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(s).n += n
}

// time adds a value to a histogram.
func (m *metrics) time(s sample, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values >= mostValues {
		m.of(sample{instrument: missed}).n++
		return
	}
	t := m.of(s)
	t.values = append(t.values, max(d, 0))
	if m.values++; m.values == mostValues/4 {
		m.host.meter.hurry()
	}
}

func (m *metrics) of(s sample) *tally {
	if !m.asked {
		m.asked = true
		m.host.measure(m.flush)
	}
	t := m.pending[s]
	if t == nil {
		t = &tally{}
		m.pending[s] = t
	}
	return t
}

// flush tells the meter.
func (m *metrics) flush() {
	m.mu.Lock()
	pending := m.pending
	m.pending, m.values, m.asked = map[sample]*tally{}, 0, false
	m.mu.Unlock()
	defer m.putBack(pending)
	for s, t := range pending {
		if tell := m.told[s.instrument]; tell != nil { // also of 0: what went up and down again is known then
			tell(context.Background(), t, m.attributes(s))
		}
		delete(pending, s)
	}
}

// putBack keeps what a panic of the meter has left, for the next time.
func (m *metrics) putBack(left map[sample]*tally) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s, t := range left {
		if now := m.pending[s]; now != nil {
			t.n += now.n
			t.values = append(t.values, now.values...)
		}
		m.pending[s] = t
		m.values += len(t.values)
	}
}

func (m *metrics) attributes(s sample) metric.MeasurementOption {
	option := m.options[s]
	if option == nil {
		var all []attribute.KeyValue
		d := described[s.instrument]
		if d.kinded {
			all = append(all, attribute.String(kindAttribute, s.kindWord()))
		}
		if d.script {
			all = append(all, attribute.String(scriptAttribute, s.script))
		}
		if d.what != "" {
			all = append(all, attribute.String(d.what, s.what))
		}
		option = metric.WithAttributeSet(attribute.NewSet(all...))
		m.options[s] = option
	}
	return option
}

func (s sample) kindWord() string {
	if word := synchronizerName[s.made]; word != "" {
		return word
	}
	return s.kind.LogValue().String()
}

// reasonWord is a reason as it is logged.
func reasonWord(r lock.Reason) string { return messages.Reason(r).LogValue().String() }

// answered measures the answer to a request that was made at a time.
func (m *metrics) answered(by replier, a lock.Answer, since, now lock.Instant) {
	if m == nil {
		return
	}
	kind := by.kind()
	switch a.Kind {
	case lock.Granted:
		m.add(sample{instrument: grants, kind: kind, what: wayOf(a)}, 1)
		m.time(sample{instrument: waitTime, kind: kind, what: "granted"}, now-since)
	case lock.NotGranted:
		m.refused(kind, a.Reason)
		m.time(sample{instrument: waitTime, kind: kind, what: "refused"}, now-since)
	}
}

// wayOf is the way in which a lock came to its holder.
func wayOf(a lock.Answer) string {
	switch {
	case a.Count > 1:
		return "reentry"
	case a.HandedOn:
		return "hand_off"
	case a.Transferred:
		return "transfer"
	}
	return "redis"
}

func (m *metrics) refused(kind messages.Kind, reason lock.Reason) {
	m.add(sample{instrument: refusals, kind: kind, what: reasonWord(reason)}, 1)
}

// turnedAway counts a request that no lock has seen.
func (m *metrics) turnedAway(by replier, reason lock.Reason) {
	if m != nil && by.asked() == OpAcquire {
		m.refused(by.kind(), reason)
	}
}

func (m *metrics) lost(by replier, reason lock.Reason) {
	if m != nil && reason != lock.Closed {
		m.add(sample{instrument: losses, kind: by.kind(), what: reasonWord(reason)}, 1)
	}
}

func (m *metrics) atRisk(by replier) {
	if m != nil {
		m.add(sample{instrument: risks, kind: by.kind()}, 1)
	}
}

func (m *metrics) held(by replier, d time.Duration) {
	if m != nil {
		m.time(sample{instrument: holdTime, kind: by.kind()}, d)
	}
}

// changed adds to what is counted up and down.
func (m *metrics) changed(i instrument, n int64) {
	if m != nil {
		m.add(sample{instrument: i}, n)
	}
}

// outcome is the result of what Redis was asked.
func outcome(err *redisio.Error, otherwise string) string {
	switch {
	case err == nil:
		return otherwise
	case err.Transient:
		return reasonWord(lock.Unavailable)
	}
	return reasonWord(lock.Rejected)
}

// watch has what becomes of the calls to Redis measured.
func (m *metrics) watch() (w redisio.Watch) {
	if m == nil {
		return w
	}
	w.Called = func(script string, took time.Duration, err *redisio.Error) {
		m.time(sample{instrument: callTime, script: script, what: outcome(err, "done")}, took)
	}
	w.Renewed = func(result string, err *redisio.Error) {
		m.add(sample{instrument: renewals, what: outcome(err, result)}, 1)
	}
	w.Reconnected = func() { m.changed(reconnects, 1) }
	return w
}

// gauges are what the metrics were told of the holds and the waiters of one lock.
type gauges struct {
	kind           messages.Kind
	holds, waiters int
}

// gauge tells the metrics how many hold the lock and how many wait for it. It compares, since
// holds and waiters come and go in many ways. Whoever uses a plain lock of that name as a
// fenced one, too, is counted by the kind that was there first.
func (s *lockState) gauge() {
	m := s.rt.metrics
	if m == nil {
		return
	}
	held, waiting, first := s.lock.Load()
	was := &s.gauges
	if was.holds == 0 && was.waiters == 0 && first != nil {
		was.kind = first.(replier).kind()
	}
	if held != was.holds {
		m.add(sample{instrument: holds, kind: was.kind}, int64(held-was.holds))
	}
	if waiting != was.waiters {
		m.add(sample{instrument: waiters, kind: was.kind}, int64(waiting-was.waiters))
	}
	was.holds, was.waiters = held, waiting
}
