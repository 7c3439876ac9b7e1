package actors

import (
	"fmt"
	"log/slog"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// long says when to log that something lasts long: when it has lasted for the limit, and again
// whenever it has lasted for twice as long as the last time. What comes after it is not logged
// before that either, so that a long queue does not fill the log.
type long struct{ next lock.Instant }

func (l long) due(since lock.Instant, limit time.Duration) lock.Instant {
	return max(since+limit, l.next)
}

func (l long) told(now, since lock.Instant) long { return long{next: now + (now - since)} }

// longs are those of one lock: of its first waiter and of its first holder.
type longs struct{ wait, hold long }

// waits returns the request whose wait is logged when it lasts long, and holds returns that whose hold is. Both
// return nil if there is none.
func (s *lockState) waits() *Call {
	if call, ok := s.lock.Next().(*Call); ok && s.rt.cfg.LongWait > 0 && !call.Leads && call.Count == nil {
		return call
	}
	return nil
}

func (s *lockState) holds() *Call {
	if holds, _, first := s.lock.Load(); holds > 0 && s.rt.cfg.LongHold > 0 && !first.(*Call).Leads {
		return first.(*Call)
	}
	return nil
}

// remindAt is when something about the lock will have lasted long, if it goes on.
func (s *lockState) remindAt() (at lock.Instant, wanted bool) {
	sooner := func(due lock.Instant) {
		if !wanted || due < at {
			at, wanted = due, true
		}
	}
	if by := s.waits(); by != nil {
		sooner(s.longs.wait.due(by.from, s.rt.cfg.LongWait))
	}
	if by := s.holds(); by != nil {
		sooner(s.longs.hold.due(by.from, s.rt.cfg.LongHold))
	}
	return at, wanted
}

// remind logs what has lasted long.
func (s *lockState) remind() {
	now := s.rt.Now()
	if at, wanted := s.remindAt(); !wanted || now < at {
		return
	}
	if by := s.waits(); by != nil && now >= s.longs.wait.due(by.from, s.rt.cfg.LongWait) {
		s.longs.wait = s.longs.wait.told(now, by.from)
		if !s.asksWhoHolds() {
			s.inspect(tick{}, &Call{Op: OpInspect, by: longWait{s: s}})
		}
	}
	if by := s.holds(); by != nil && now >= s.longs.hold.due(by.from, s.rt.cfg.LongHold) {
		s.longs.hold = s.longs.hold.told(now, by.from)
		args := s.describe(by, s.lock.Term(), now)
		s.rt.host.Report(slog.LevelWarn, "a lock is held for long", func() []any {
			if by.Holder != nil {
				if stack := by.Holder.Stack(); stack != nil {
					args = append(args, "stack", frames(stack))
				}
			}
			return args
		})
	}
	s.setAlarm()
}

// describe are the attributes of a line about a hold.
func (s *lockState) describe(by *Call, term uint64, now lock.Instant) []any {
	args := []any{"lock", s.label, "kind", by.kind(), "owner", fmt.Sprintf("%s:%d", s.client, term), "term", term, "age", rounded(now - by.from)}
	if w := ownerOf(by); w != nil {
		args = append(args, "holder", w.pid.String())
	}
	return args
}

// longWait is the requester of an Inspect that asks who holds the lock for which requests wait, to log it.
type longWait struct {
	goroutine
	s *lockState
}

// asksWhoHolds reports whether an Inspect for such a line is under way. A second one would log the same.
func (s *lockState) asksWhoHolds() bool {
	for call := range s.inspections {
		if _, asks := call.by.(longWait); asks {
			return true
		}
	}
	return false
}

// answered logs that it is not known who holds it.
func (w longWait) answered(_ sender, _ *Call, a *lock.Answer) (taken bool) {
	w.log("reason", messages.Reason(a.Reason), "error", a.Detail)
	return true
}

func (w longWait) inspected(_ sender, _ *Call, status *messages.Status) {
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
	if p := status.Process; p.GetSince() != nil { // it has a record
		args = append(args, "application", p.Application, "host", p.Host, "pid", p.Pid, "overdue", p.Overdue)
	}
	w.log(args...)
}

func (w longWait) log(args ...any) {
	s := w.s
	if by := s.waits(); by != nil { // it has not got the lock meanwhile
		s.rt.host.Warn("a request waits for long", append([]any{"lock", s.label, "kind", by.kind(),
			"waiting", rounded(s.rt.Now() - by.from), "waiters", s.lock.Snapshot().Waiters}, args...)...)
	}
}

// frames is a stack on one line, the innermost function first, without our own.
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
