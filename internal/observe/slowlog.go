package observe

import (
	"fmt"
	"log/slog"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// long decides when to log a long wait or hold: when it has lasted for the limit, and again whenever its time has
// doubled since the last line. The next wait or hold is not logged before that time either, so that a long queue does
// not fill the log.
type long struct{ next machine.Instant }

func (l long) due(since machine.Instant, limit time.Duration) machine.Instant {
	return max(since+limit, l.next)
}

func (l long) logged(now, since machine.Instant) long { return long{next: now + (now - since)} }

// RemindAt returns when LongTimes must be called if the first request still waits, or the lock is still held. wait is
// the time at which that request began to wait, and hold the time of the grant; each is nil if there is no such time,
// or if it is not logged.
func (l *Lock) RemindAt(wait, hold *machine.Instant) (at machine.Instant, wanted bool) {
	if wait != nil {
		at, wanted = l.wait.due(*wait, l.o.cfg.LongWait), true
	}
	if hold != nil {
		if due := l.hold.due(*hold, l.o.cfg.LongHold); !wanted || due < at {
			at, wanted = due, true
		}
	}
	return at, wanted
}

// LongTimes reports whether a wait or a hold has lasted so long that a line is to be logged now; see RemindAt. The line
// counts as logged.
func (l *Lock) LongTimes(now machine.Instant, wait, hold *machine.Instant) (longWait, longHold bool) {
	if longWait = wait != nil && now >= l.wait.due(*wait, l.o.cfg.LongWait); longWait {
		l.wait = l.wait.logged(now, *wait)
	}
	if longHold = hold != nil && now >= l.hold.due(*hold, l.o.cfg.LongHold); longHold {
		l.hold = l.hold.logged(now, *hold)
	}
	return longWait, longHold
}

// LongHold logs that a lock has been held for a long time. stack returns where the holder took the lock; it may be nil,
// and return nil.
func (l *Lock) LongHold(h Hold, stack func() []uintptr) {
	args := l.args(h)
	l.o.host.Report(slog.LevelWarn, "a lock has been held for a long time", func() []any {
		if stack != nil {
			if pcs := stack(); pcs != nil {
				args = append(args, "stack", frames(pcs))
			}
		}
		return args
	})
}

// Wait is the wait of the first request that waits.
type Wait struct {
	Kind    messages.Kind
	For     time.Duration
	Waiters int
}

// LongWait logs that requests wait for long, and the holder of the lock, as far as that is known.
func (l *Lock) LongWait(w Wait, status *messages.Status) {
	args := []any{"locked", status.Locked, "held_here", status.HeldHere}
	if status.Locked {
		args = append(args, "owner", status.Holder)
	}
	if status.HeldHere {
		args = append(args, "held_for", rounded(status.HeldFor.AsDuration()))
	}
	if status.Ttl != nil {
		args = append(args, "ttl", status.Ttl.AsDuration())
	}
	if p := status.Process; p.GetSince() != nil { // the process has a record
		args = append(args, "application", p.Application, "host", p.Host, "pid", p.Pid, "overdue", p.Overdue)
	}
	l.logLongWait(w, args...)
}

// LongWaitUnexplained logs that requests wait for long, and why the holder of the lock is not known.
func (l *Lock) LongWaitUnexplained(w Wait, reason machine.Reason, detail string) {
	l.logLongWait(w, "reason", messages.Reason(reason), "error", detail)
}

func (l *Lock) logLongWait(w Wait, args ...any) {
	l.o.host.Warn("a request has been waiting for a long time",
		append([]any{"lock", l.label, "kind", w.Kind, "waiting", rounded(w.For), "waiters", w.Waiters}, args...)...)
}

// frames returns a stack on one line, the innermost function first, without the functions of Lockkeeper.
func frames(pcs []uintptr) string {
	var text strings.Builder
	for all := runtime.CallersFrames(pcs); ; {
		frame, more := all.Next()
		if name := path.Base(frame.Function); !strings.HasPrefix(name, "lockkeeper.(*") {
			fmt.Fprintf(&text, "%s (%s:%d) < ", name, path.Base(frame.File), frame.Line)
		}
		if !more {
			return strings.TrimSuffix(text.String(), " < ")
		}
	}
}
