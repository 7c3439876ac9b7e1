package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/model"
)

// The kinds of synchronizers.
const (
	expirable = "expirable" // permits of an expirable semaphore
	semaphore = "semaphore" // the permits of a killed process stay taken
	latch     = "latch"
)

// Permits is the state of a name in Redis after all clients came to rest: the numbers of free and
// taken permits; for a latch, Free is how many count-downs are missing.
type Permits struct{ Free, Taken int }

// during is an operation that may take effect at any time of a span.
func during(s history.Span, in model.Count) porcupine.Operation {
	return porcupine.Operation{Input: in, Call: int64(s.From), Return: int64(s.To)}
}

// since is an operation that takes effect at a time: no earlier effect could explain more.
func since(at time.Duration, in model.Count) porcupine.Operation {
	return during(history.Span{From: at, To: at + 1}, in)
}

// permits checks that never more expirable permits are valid than there are at that moment, and that
// Redis has all of them in the end, as many as were set. Holds around a broken lease are left out.
func (j *judge) permits(l *lock, found map[string]Permits) {
	if len(l.requests) == 0 {
		return
	}
	ops, broken := append(j.changes(l), j.settled(l, expirableTurns*j.limits.Turn)...), j.brokenLeases(l.name)
	for _, s := range j.erased(l.name) {
		ops = append(ops, during(s, model.Count{Op: model.Forget}))
	}
	for _, s := range l.requests {
		if !s.Granted || within(broken, s.Asked, max(s.Ended(), s.Answered, s.Released, s.Last)) {
			continue
		}
		n := s.part.Permits
		ops = append(ops, during(history.Span{From: s.Asked, To: s.Answered}, model.Count{Op: model.Take, N: n}))
		end := max(s.Last, s.Answered)
		if s.Released != 0 && s.ReleaseErr == "" {
			end = max(end, s.Releasing)
		}
		ops = append(ops, since(end, model.Count{Op: model.Give, N: n}))
	}
	got, there := found[l.name]
	if unknown := j.unknown(l); !there || got.Taken > unknown {
		j.violated("permits are neither created nor lost", l.name, j.span.To,
			"none is held, and a new master may lack %d releases, but %d are free and %d taken in Redis",
			unknown, got.Free, got.Taken)
	}
	ops = append(ops, since(rest+1, model.Count{Op: model.All, N: got.Free + got.Taken}))
	j.ordered(l, "expirable permits", model.Counting(l.requests[0].part.Total), ops)
}

// unknown is how many permits may be taken in Redis although they were released: a replica that took over
// less than a lease ago may lack the releases.
func (j *judge) unknown(l *lock) (n int) {
	var spans []history.Span
	for _, f := range j.faults {
		if f.Takeover && f.To+j.limits.Lease > j.span.To {
			spans = append(spans, history.Span{From: f.From - j.limits.Slack, To: f.To})
		}
	}
	for _, s := range l.requests {
		if end := max(s.Answered, s.Released); within(spans, end-1, end+1) {
			n += s.part.Permits
		}
	}
	return n
}

// semaphore checks that never more permits are taken than there are at that moment, and that all permits but the
// permits of killed processes are free in the end, unless Redis has lost data.
func (j *judge) semaphore(l *lock, found map[string]Permits) {
	if len(l.requests) == 0 || j.forgotten(l) {
		return
	}
	ops, gone, granted := append(j.changes(l), j.settled(l, j.limits.Turn)...), 0, false
	for _, s := range l.requests {
		n := s.part.Permits
		if s.proc.Killed != 0 && (s.Released == 0 || s.ReleaseErr != "") && (!s.Granted || s.Releasing != 0) {
			gone += n // perhaps
		}
		if !s.Granted {
			continue
		}
		granted = true
		ops = append(ops, during(history.Span{From: s.Asked, To: s.Answered}, model.Count{Op: model.Take, N: n}))
		if s.Releasing != 0 {
			ops = append(ops, since(s.Releasing, model.Count{Op: model.Give, N: n}))
		}
	}
	if got, there := found[l.name]; there || granted {
		ops = append(ops, since(rest+1, model.Count{Op: model.Free, N: got.Free, Most: got.Free + gone}))
	}
	j.ordered(l, semaphore, model.Counting(l.requests[0].part.Total), ops)
}

// latch checks that no wait ends before the latch was counted down, and none is refused after that, and
// that no count-down is missing in the end, unless Redis has lost data.
func (j *judge) latch(l *lock, found map[string]Permits) {
	if j.forgotten(l) {
		return
	}
	ops := j.changes(l)
	for _, s := range l.requests {
		if s.Granted || s.Err == "held" && !j.undone(l, s) {
			ops = append(ops, during(history.Span{From: s.Asked, To: s.Answered}, model.Count{Op: model.Pass, Refused: !s.Granted}))
		}
	}
	ops = append(ops, since(rest+1, model.Count{Op: model.Missing, N: found[l.name].Free}))
	j.ordered(l, latch, model.Counting(0), ops)
}

// undone reports whether a request may have been refused because of a change that no replica had yet: its outcome is
// unknown, and the replica that became the master lacks it.
func (j *judge) undone(l *lock, refused lockRequest) bool {
	return slices.ContainsFunc(l.changes, func(c lockRequest) bool {
		return !c.Granted && c.Asked < refused.Answered && slices.ContainsFunc(j.faults, func(f history.Fault) bool {
			return f.Takeover && f.From < refused.Answered && f.To > c.Asked
		})
	})
}

// changes are the operations that change a number of permits, or a latch.
func (j *judge) changes(l *lock) (ops []porcupine.Operation) {
	for i, s := range l.changes {
		in := model.Count{N: s.part.Permits, ID: s.part.CountDownID, Refused: s.Err == history.AlreadyClosed}
		in.Op = map[string]model.CountOp{
			history.Add: model.Add, history.Resize: model.Resize, history.Close: model.Close, history.Down: model.Down,
		}[s.part.Action]
		// A count-down whose reply was lost goes on; with another error it has ended.
		goesOn := s.part.Action == history.Down && (s.Err == "unavailable" || s.Err == "cancelled")
		when := history.Span{From: s.Asked, To: s.Answered}
		switch {
		case s.Granted || in.Refused:
		case s.part.Action == history.Down && s.Answered != 0 && !goesOn:
			continue
		default:
			// A process sends its commands in order: when it has the reply to a later one, this one has
			// taken effect, or never will.
			in.Unknown = !goesOn || s.proc.Killed != 0
			if when.To = rest; in.Unknown {
				when.To = never
			}
			for _, later := range l.changes[i+1:] {
				if later.proc == s.proc && later.Granted && s.Answered != 0 && later.Asked > s.Answered {
					when.To = min(when.To, later.Answered)
				}
			}
		}
		ops = append(ops, during(when, in))
	}
	return ops
}

// expirableTurns is how many surplus permits there may be, of which one is removed at the end of each
// turn.
const expirableTurns = 4

// settled are the moments from which no process hands off surplus permits: each is a change plus after, if there was no
// other change meanwhile.
func (j *judge) settled(l *lock, after time.Duration) (ops []porcupine.Operation) {
	for _, s := range l.changes {
		at := s.Answered + after + 1 // after the change
		if s.Granted && !slices.ContainsFunc(l.changes, func(o lockRequest) bool {
			return o.Request != s.Request && o.Asked < at && (o.Answered == 0 || o.Answered >= s.Answered)
		}) {
			ops = append(ops, since(at, model.Count{Op: model.Settle}))
		}
	}
	return ops
}

// forgotten reports whether Redis may have lost confirmed data of a name that is used only for a
// while.
func (j *judge) forgotten(l *lock) bool {
	asked := never
	for _, all := range [][]lockRequest{l.requests, l.changes} {
		if len(all) > 0 {
			asked = min(asked, all[0].Asked)
		}
	}
	return slices.ContainsFunc(j.erased(l.name), func(s history.Span) bool { return s.To > asked })
}

// opened checks that no request waits for long at a latch that is open, and will not be closed again: no client closes
// it, and no replica takes over, which may lack the last count-downs.
func (j *judge) opened(l *lock) {
	closed, open, until := time.Duration(0), never, j.span.To
	for _, s := range l.changes {
		if s.part.Action == history.Close {
			if closed = max(closed, s.Answered); !s.Granted && s.Err != history.AlreadyClosed {
				return // when it was closed is unknown
			}
		}
	}
	for _, s := range l.requests {
		if s.Granted && s.Asked >= closed {
			open = min(open, s.Answered)
		}
	}
	for _, f := range j.faults {
		if f.Takeover && f.To > open {
			until = min(until, f.From)
		}
	}
	for _, s := range l.requests {
		end := s.Answered
		if end == 0 {
			if end = s.proc.Killed; end == 0 {
				end = j.span.To
			}
		}
		wait := history.Span{From: max(open, s.Asked), To: min(end, until)}
		waited := wait.To - wait.From
		if waited <= 0 {
			continue
		}
		waited -= j.hindered(wait, s.Proc, l.name)
		j.v.LongestUnhindered = max(j.v.LongestUnhindered, waited)
		if waited > j.limits.Idle {
			j.violated("an open latch lets its waiters pass", l.name, end,
				"%v waits since %v for a latch that is open since %v at least", s, s.Asked, open)
		}
	}
}

// withoutPermits are the spans in which, by the changes of their number, there may be fewer permits than a request
// wants.
func (j *judge) withoutPermits(l *lock) (spans []history.Span) {
	var moments []time.Duration
	for _, s := range l.changes {
		moments = append(moments, s.Asked, cmp.Or(s.Answered, s.Asked))
	}
	slices.Sort(moments)
	wanted := 0
	for _, s := range l.requests {
		wanted = max(wanted, s.part.Permits)
	}
	for i, at := range moments {
		if l.least(at) < wanted {
			span := history.Span{From: at, To: j.span.To}
			if i+1 < len(moments) {
				span.To = moments[i+1]
			}
			spans = append(spans, span)
		}
	}
	return spans
}

// least is how many permits there are at a moment, if each change whose effect or order is uncertain has made them
// fewer.
func (l *lock) least(at time.Duration) int {
	n, last := l.requests[0].part.Total, lockRequest{Request: new(history.Request)} // the last that has certainly set the number
	for _, s := range l.changes {
		if s.part.Action == history.Resize && s.Granted && s.Answered <= at && s.Answered > last.Answered {
			n, last = s.part.Permits, s
		}
	}
	for _, s := range l.changes {
		before := s.Answered != 0 && s.Answered < last.Asked
		switch takes := s.part.Permits; {
		case s.Request == last.Request, before, s.Asked > at:
		case s.part.Action == history.Resize:
			n = min(n, takes)
		case takes < 0, s.Granted && s.Asked > last.Answered && s.Answered <= at:
			n += takes
		}
	}
	return n
}
