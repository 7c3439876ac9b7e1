package actors

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

const (
	// outageTold is how often an outage is logged while it lasts.
	outageLogInterval = time.Minute
	// outageCalm is for how long no call must have failed before the outage is over: while some
	// of several servers are away, other calls succeed.
	outageQuietPeriod = 3 * time.Second
)

// callEnd is how a call to Redis has ended.
type callEnd uint8

const (
	served callEnd = iota
	// failed: it may succeed later. rejected: an operator has to do something first.
	failed
	rejected
	callEnds
)

// outage is a time in which calls to Redis fail, or are rejected. The zero value is none.
type outage struct {
	// began is when the first call failed, failed when the last one did, and back when the first
	// call after that succeeded, 0 before.
	began, failed, back lock.Instant
	// told is when it was logged last that calls end so; 0 before.
	told  [callEnds]lock.Instant
	calls int
}

// news is what is to be logged of an outage.
type news uint8

const (
	noChange news = iota
	outageBegins
	outageLasts
	outageEnds
)

// after takes note of the end of a call. Only calls that are served end an outage.
func (o outage) after(now lock.Instant, how callEnd) (outage, news) {
	if how != served {
		if o.calls == 0 {
			o.began = now
		}
		o.failed, o.back = now, 0
		o.calls++
		told := &o.told[how]
		switch {
		case *told == 0:
			*told = now
			return o, outageBegins
		case now < *told+outageLogInterval:
			return o, noChange
		}
		*told = now
		return o, outageLasts
	}
	if o.calls == 0 {
		return o, noChange
	}
	if o.back == 0 {
		o.back = now
	}
	if now < o.failed+outageQuietPeriod {
		return o, noChange
	}
	return o, outageEnds
}

// outages logs the outages of a system's Redis.
type outages struct {
	// on is set during one, so that nothing else is asked outside.
	on atomic.Bool
	mu sync.Mutex // guards the outage
	outage
}

// reached takes note of a call to Redis; err is nil if Redis has served it.
func (r *Runtime) reached(script string, err *redisio.Error) {
	o := &r.outages
	how, does := served, ""
	switch {
	case err == nil:
		if !o.on.Load() {
			return
		}
	case err.Transient:
		how, does = failed, "does not serve"
	default:
		how, does = rejected, "rejects calls"
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	next, what := o.after(r.Now(), how)
	o.outage = next
	switch what {
	case outageBegins:
		o.on.Store(true)
		r.logLoad(slog.LevelWarn, "Redis "+does, "script", script, "error", err)
	case outageLasts:
		r.logLoad(slog.LevelWarn, "Redis still "+does, "for", rounded(next.failed-next.began), "failed", next.calls, "script", script, "error", err)
	case outageEnds:
		r.logLoad(slog.LevelInfo, "Redis serves again", "after", rounded(next.back-next.began), "failed", next.calls)
		o.outage = outage{}
		o.on.Store(false)
	}
}

// logLoad logs a line, with how many requests wait and how many locks are held.
func (r *Runtime) logLoad(level slog.Level, message string, args ...any) {
	r.host.Report(level, message, func() []any {
		ctx, cancel := context.WithTimeout(context.Background(), host.CloseGrace/2)
		defer cancel()
		states, complete := r.Locks(ctx)
		if !complete {
			return args
		}
		var waiting int64
		held := 0
		for _, each := range states {
			waiting += each.Waiters
			if each.HeldHere {
				held++
			}
		}
		return append(args, "waiting", waiting, "held", held)
	})
}

// rounded is a time as people want to read it.
func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
