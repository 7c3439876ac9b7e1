// Package observe measures, traces and logs the locks of a System, as docs/operate.md describes it.
//
// The actors decide, and notify requesters and holders first; then they hand snapshots of their state to an Observer.
// The package knows nothing of actors, requests or Redis. The host's meter, tracer and log handler run through package
// internal/host, where they delay no lock.
package observe

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Config contains the functions and settings of a System that its Observer needs.
type Config struct {
	Host *host.Host
	// Meter may be nil; then nothing is measured.
	Meter metric.Meter
	// Tracer may be nil; then nothing is traced.
	Tracer trace.Tracer
	// LongWait is the time after which a wait is logged; 0: never.
	LongWait time.Duration
	// LongHold is the time after which a hold is logged; 0: never.
	LongHold time.Duration
	// Cluster says that Redis is a cluster.
	Cluster bool
	// Now returns the time on the System's clock.
	Now func() machine.Instant
	// Load counts the requests that wait and the locks that are held; ok is false if ctx ends first. It may block.
	Load func(ctx context.Context) (waiting int64, held int, ok bool)
}

// Observer measures, traces and logs for one System. Its methods are safe for concurrent use, and do not block.
type Observer struct {
	cfg     Config
	host    *host.Host
	metrics *metrics

	outages  outages
	refusals refusedChannels
	unset    noPermits
	// closedHolds is the number of holds that Close has ended.
	closedHolds atomic.Int64
}

// New returns an Observer that uses the host's meter, tracer and log handler.
func New(cfg Config) *Observer {
	return &Observer{cfg: cfg, host: cfg.Host, metrics: newMetrics(cfg.Meter, cfg.Host)}
}

// Traces reports whether spans are made.
func (o *Observer) Traces() bool { return o.cfg.Tracer != nil }

// Measures reports whether there are metrics.
func (o *Observer) Measures() bool { return o.metrics != nil }

// Refused counts a request that no lock actor has handled.
func (o *Observer) Refused(kind messages.Kind, reason machine.Reason) {
	o.metrics.add(measurement{sample{refusals, word(reason), subjectOf(kind)}, 1})
}

// Standbys counts requests that begin to wait to lead, or cease to.
func (o *Observer) Standbys(kind messages.Kind, n int64) {
	o.metrics.add(measurement{sample{instrument: standbys, of: subjectOf(kind)}, n})
}

// Candidacies counts candidacies that begin, or end.
func (o *Observer) Candidacies(kind messages.Kind, n int64) {
	o.metrics.add(measurement{sample{instrument: candidacies, of: subjectOf(kind)}, n})
}

// CandidacyEnded counts a candidacy that has ended, with a result of docs/operate.md.
func (o *Observer) CandidacyEnded(kind messages.Kind, result string) {
	for w := range words {
		if w.String() == result {
			o.metrics.add(measurement{sample{candidaciesEnded, w, subjectOf(kind)}, 1})
		}
	}
}

// Instances counts instances of singletons that begin, or end.
func (o *Observer) Instances(n int64) { o.metrics.changed(instances, n) }

// MessageRefused counts a message that a proxy of a singleton has refused.
func (o *Observer) MessageRefused() { o.metrics.changed(refusedMessages, 1) }

// LockActors counts lock actors, and shells for further lock actors, that begin or end.
func (o *Observer) LockActors(n int64) { o.metrics.changed(lockActors, n) }

// Subscriptions counts channels on which the System begins or ceases to listen.
func (o *Observer) Subscriptions(n int64) { o.metrics.changed(subscriptions, n) }
