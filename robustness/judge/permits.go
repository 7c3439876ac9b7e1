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
	leased    = "leased"    // permits that expire
	semaphore = "semaphore" // whose permits nobody gives back for a process that was killed
	latch     = "latch"
)

// Permits are what Redis has of a name when all clients have come to rest: the permits that are free
// and taken, or how many count-downs are missing.
type Permits struct{ Free, Taken int }

// over is an operation that may have had its effect at any time of a span.
func over(s history.Span, in model.Count) porcupine.Operation {
	return porcupine.Operation{Input: in, Call: int64(s.From), Return: int64(s.To)}
}

// since is one that has its effect then: an earlier effect could explain nothing that this does not.
func since(at time.Duration, in model.Count) porcupine.Operation {
	return over(history.Span{From: at, To: at + 1}, in)
}

// permits checks that never more permits that expire are trusted than there are at that moment, and
// that Redis has all of them in the end, as many as were set. What was held around a robbery is left out.
func (j *judge) permits(l *lock, found map[string]Permits) {
	if len(l.shares) == 0 {
		return
	}
	ops, robbed := append(j.changes(l), j.settled(l, leasedTurns*j.limits.Turn)...), j.robbed(l.name)
	for _, s := range j.wiped(l.name) {
		ops = append(ops, over(s, model.Count{Op: model.Forget}))
	}
	for _, s := range l.shares {
		if !s.Granted || within(robbed, s.Asked, max(s.Ended(), s.Answered, s.Released, s.Last)) {
			continue
		}
		n := s.part.Takes
		ops = append(ops, over(history.Span{From: s.Asked, To: s.Answered}, model.Count{Op: model.Take, N: n}))
		end := max(s.Last, s.Answered)
		if s.Released != 0 && s.ReleaseErr == "" {
			end = max(end, s.Releasing)
		}
		ops = append(ops, since(end, model.Count{Op: model.Give, N: n}))
	}
	got, there := found[l.name]
	if unknown := j.unknown(l); !there || got.Taken > unknown {
		j.violated("permits are neither made nor lost", l.name, j.span.To, "nobody holds any, and a new master may not know of %d releases, but %d are free and %d taken in Redis", unknown, got.Free, got.Taken)
	}
	ops = append(ops, since(rest+1, model.Count{Op: model.All, N: got.Free + got.Taken}))
	j.ordered(l, "permits that expire", model.Counting(l.shares[0].part.Of), ops)
}

// unknown is how many permits may be taken in Redis though they were given back: a replica that took over
// less than a lease ago has not heard of it.
func (j *judge) unknown(l *lock) (n int) {
	var spans []history.Span
	for _, f := range j.faults {
		if f.Succeeds && f.To+j.limits.Lease > j.span.To {
			spans = append(spans, history.Span{From: f.From - j.limits.Slack, To: f.To})
		}
	}
	for _, s := range l.shares {
		if end := max(s.Answered, s.Released); within(spans, end-1, end+1) {
			n += s.part.Takes
		}
	}
	return n
}

// semaphore checks that never more permits are taken than there are at that moment, and that all
// but those of processes that were killed are free in the end, unless Redis has forgotten some.
func (j *judge) semaphore(l *lock, found map[string]Permits) {
	if len(l.shares) == 0 || j.forgotten(l) {
		return
	}
	ops, gone, granted := append(j.changes(l), j.settled(l, j.limits.Turn)...), 0, false
	for _, s := range l.shares {
		n := s.part.Takes
		if s.proc.Killed != 0 && (s.Released == 0 || s.ReleaseErr != "") && (!s.Granted || s.Releasing != 0) {
			gone += n // perhaps
		}
		if !s.Granted {
			continue
		}
		granted = true
		ops = append(ops, over(history.Span{From: s.Asked, To: s.Answered}, model.Count{Op: model.Take, N: n}))
		if s.Releasing != 0 {
			ops = append(ops, since(s.Releasing, model.Count{Op: model.Give, N: n}))
		}
	}
	if got, there := found[l.name]; there || granted {
		ops = append(ops, since(rest+1, model.Count{Op: model.Free, N: got.Free, Most: got.Free + gone}))
	}
	j.ordered(l, semaphore, model.Counting(l.shares[0].part.Of), ops)
}

// latch checks that nobody passes a latch before it was counted down, nor finds it closed after, and
// that no count-down is missing in the end, unless Redis has forgotten some.
func (j *judge) latch(l *lock, found map[string]Permits) {
	if j.forgotten(l) {
		return
	}
	ops := j.changes(l)
	for _, s := range l.shares {
		if s.Granted || s.Err == "held" && !j.undone(l, s) {
			ops = append(ops, over(history.Span{From: s.Asked, To: s.Answered}, model.Count{Op: model.Pass, Refused: !s.Granted}))
		}
	}
	ops = append(ops, since(rest+1, model.Count{Op: model.Missing, N: found[l.name].Free}))
	j.ordered(l, latch, model.Counting(0), ops)
}

// undone reports whether a request may have been refused because of a change that no replica had yet: its outcome is
// unknown, and the replica that became the master does not know of it.
func (j *judge) undone(l *lock, refused share) bool {
	return slices.ContainsFunc(l.changes, func(c share) bool {
		return !c.Granted && c.Asked < refused.Answered && slices.ContainsFunc(j.faults, func(f history.Fault) bool {
			return f.Succeeds && f.From < refused.Answered && f.To > c.Asked
		})
	})
}

// changes are the operations of those who change a number of permits, or a latch.
func (j *judge) changes(l *lock) (ops []porcupine.Operation) {
	for i, s := range l.changes {
		in := model.Count{N: s.part.Takes, ID: s.part.By, Refused: s.Err == history.Occupied}
		in.Op = map[string]model.CountOp{history.Add: model.Add, history.Resize: model.Resize, history.Close: model.Close, history.Down: model.Down}[s.part.Does]
		// A count-down whose reply was lost goes on; with another error it has ended.
		goesOn := s.part.Does == history.Down && (s.Err == "unavailable" || s.Err == "cancelled")
		when := history.Span{From: s.Asked, To: s.Answered}
		switch {
		case s.Granted || in.Refused:
		case s.part.Does == history.Down && s.Answered != 0 && !goesOn:
			continue
		default:
			// A process sends one command after another: when it has the reply to a later one, this
			// one has had its effect, or has none.
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
		ops = append(ops, over(when, in))
	}
	return ops
}

// leasedTurns is how many permits that expire there may be too many, at the end of a turn each of which
// one goes.
const leasedTurns = 4

// settled are the moments at which nobody passes on to others of his process what was taken away: so
// long after that, if nothing else was taken away meanwhile.
func (j *judge) settled(l *lock, after time.Duration) (ops []porcupine.Operation) {
	for _, s := range l.changes {
		at := s.Answered + after + 1 // behind the change
		if s.Granted && !slices.ContainsFunc(l.changes, func(o share) bool {
			return o.Request != s.Request && o.Asked < at && (o.Answered == 0 || o.Answered >= s.Answered)
		}) {
			ops = append(ops, since(at, model.Count{Op: model.Settle}))
		}
	}
	return ops
}

// forgotten reports whether Redis may not know any more what it has confirmed of a name that is used
// for a while only.
func (j *judge) forgotten(l *lock) bool {
	asked := never
	for _, all := range [][]share{l.shares, l.changes} {
		if len(all) > 0 {
			asked = min(asked, all[0].Asked)
		}
	}
	return slices.ContainsFunc(j.wiped(l.name), func(s history.Span) bool { return s.To > asked })
}

// opened checks that nobody waits for long at a latch that is open, and will not be closed again.
func (j *judge) opened(l *lock) {
	closed, open := time.Duration(0), never
	for _, s := range l.changes {
		if s.part.Does == history.Close {
			if closed = max(closed, s.Answered); !s.Granted && s.Err != history.Occupied {
				return // nobody knows when it was closed
			}
		}
	}
	for _, s := range l.shares {
		if s.Granted && s.Asked >= closed {
			open = min(open, s.Answered)
		}
	}
	for _, s := range l.shares {
		end := s.Answered
		if end == 0 {
			if end = s.proc.Killed; end == 0 {
				end = j.span.To
			}
		}
		wait := history.Span{From: max(open, s.Asked), To: end}
		waited := wait.To - wait.From
		if waited <= 0 {
			continue
		}
		waited -= j.hindered(wait, s.Proc, l.name)
		j.v.LongestUnhindered = max(j.v.LongestUnhindered, waited)
		if waited > j.limits.Idle {
			j.violated("nobody waits for an open latch", l.name, end, "%v waits since %v for a latch that is open since %v at least", s, s.Asked, open)
		}
	}
}

// without are the spans in which there may be no permits at all, for all that is known of the changes of
// their number: nobody can be granted one then.
func (j *judge) without(l *lock) (spans []history.Span) {
	var moments []time.Duration
	for _, s := range l.changes {
		moments = append(moments, s.Asked, cmp.Or(s.Answered, s.Asked))
	}
	slices.Sort(moments)
	for i, at := range moments {
		if l.least(at) <= 0 {
			span := history.Span{From: at, To: j.span.To}
			if i+1 < len(moments) {
				span.To = moments[i+1]
			}
			spans = append(spans, span)
		}
	}
	return spans
}

// least is how many permits there are at a moment, if each change whose effect or whose place in the order is not
// certain has made them fewer.
func (l *lock) least(at time.Duration) int {
	n, last := l.shares[0].part.Of, share{Request: new(history.Request)} // the last that has certainly set the number
	for _, s := range l.changes {
		if s.part.Does == history.Resize && s.Granted && s.Answered <= at && s.Answered > last.Answered {
			n, last = s.part.Takes, s
		}
	}
	for _, s := range l.changes {
		before := s.Answered != 0 && s.Answered < last.Asked
		switch takes := s.part.Takes; {
		case s.Request == last.Request, before, s.Asked > at:
		case s.part.Does == history.Resize:
			n = min(n, takes)
		case takes < 0, s.Granted && s.Asked > last.Answered && s.Answered <= at:
			n += takes
		}
	}
	return n
}
