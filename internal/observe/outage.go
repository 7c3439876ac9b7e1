package observe

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

const (
	// outageLogInterval is the time between two log lines about an outage that lasts.
	outageLogInterval = time.Minute
	// quietPeriod is the time without a failed call after which an outage is over: a single success may be luck.
	quietPeriod = 3 * time.Second
	// clusterQuietPeriod is the same for a cluster: while one of its servers is away, calls to the others succeed. It is
	// longer than the time between two tries of a request that waits.
	clusterQuietPeriod = 15 * time.Second
)

// CallEnd is the end of a call to Redis.
type CallEnd uint8

const (
	// Served: Redis has carried out the call.
	Served CallEnd = iota
	// Failed: the call may succeed later.
	Failed
	// Rejected: an operator has to do something first.
	Rejected
	callEnds
)

// word returns the word for the end of a call; served is the word for a call that was served.
func (e CallEnd) word(served word) word {
	switch e {
	case Failed:
		return word(machine.Unavailable)
	case Rejected:
		return word(machine.Rejected)
	}
	return served
}

// outage is a time in which calls to Redis fail, or are rejected. The zero value means that there is no outage.
type outage struct {
	// began is the time of the first call that failed.
	began machine.Instant
	// failed is the time of the last call that failed.
	failed machine.Instant
	// back is the time of the first successful call after failed; 0 if there is none yet.
	back machine.Instant
	// logged is the time of the last log line about calls with that end; 0 before the first line.
	logged [callEnds]machine.Instant
	calls  int
}

// outageChange is a change of an outage that has to be logged.
type outageChange uint8

const (
	noChange outageChange = iota
	outageBegins
	outageLasts
	outageEnds
)

// after records the end of a call. Only calls that are served end an outage, when no call has failed for the time
// quiet.
func (o outage) after(now machine.Instant, how CallEnd, quiet time.Duration) (outage, outageChange) {
	if how != Served {
		if o.calls == 0 {
			o.began = now
		}
		o.failed, o.back = now, 0
		o.calls++
		logged := &o.logged[how]
		switch {
		case *logged == 0:
			*logged = now
			return o, outageBegins
		case now < *logged+outageLogInterval:
			return o, noChange
		}
		*logged = now
		return o, outageLasts
	}
	if o.calls == 0 {
		return o, noChange
	}
	if o.back == 0 {
		o.back = now
	}
	if now < o.failed+quiet {
		return o, noChange
	}
	return o, outageEnds
}

// outages are the outages of a System's Redis.
type outages struct {
	// on is set during an outage. While it is not, a call that was served takes no mutex.
	on atomic.Bool
	mu sync.Mutex // guards the outage and the rejection
	outage
	// rejection is the error of the last call that was rejected; nil if a call was served since.
	rejection error
}

// Reached records the end of a call to Redis, and logs an outage. err is nil if Redis has served the call.
func (o *Observer) Reached(script string, end CallEnd, err error) {
	out := &o.outages
	if end == Served && !out.on.Load() {
		return
	}
	does := [callEnds]string{Failed: "is unavailable", Rejected: "rejects calls"}[end]
	still := [callEnds]string{Failed: "is still unavailable", Rejected: "still rejects calls"}[end]
	out.mu.Lock()
	defer out.mu.Unlock()
	if end != Failed {
		out.rejection = err
	}
	quiet := quietPeriod
	if o.cfg.Cluster {
		quiet = clusterQuietPeriod
	}
	next, what := out.after(o.cfg.Now(), end, quiet)
	out.outage = next
	switch what {
	case outageBegins:
		out.on.Store(true)
		o.logLoad(slog.LevelWarn, "Redis "+does, "script", script, "error", err)
	case outageLasts:
		o.logLoad(slog.LevelWarn, "Redis "+still, "for", rounded(next.failed-next.began), "failed", next.calls, "script", script, "error", err)
	case outageEnds:
		o.logLoad(slog.LevelInfo, "Redis is available again", "after", rounded(next.back-next.began), "failed", next.calls)
		out.outage = outage{}
		out.on.Store(false)
	}
}

// Rejection returns the error of the last call that Redis has rejected; nil if Redis has served a call since.
func (o *Observer) Rejection() error {
	o.outages.mu.Lock()
	defer o.outages.mu.Unlock()
	return o.outages.rejection
}

// logLoad logs a line, with how many requests wait and how many locks are held.
func (o *Observer) logLoad(level slog.Level, message string, args ...any) {
	o.host.Report(level, message, func() []any {
		ctx, cancel := context.WithTimeout(context.Background(), host.CloseGrace/2)
		defer cancel()
		if waiting, held, ok := o.cfg.Load(ctx); ok {
			args = append(args, "waiting", waiting, "held", held)
		}
		return args
	})
}

// rounded returns a time for people to read.
func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
