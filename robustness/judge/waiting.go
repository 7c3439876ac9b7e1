package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// idle checks that a lock with waiters does not stay free, unless its number near an edge may be refused to all.
func (j *judge) idle(l *lock) {
	if _, seeded := j.number(l); seeded {
		return
	}
	type turn struct {
		at               time.Duration
		waiting, holding int
	}
	var turns []turn
	add := func(from, to time.Duration, waiting, holding int) {
		turns = append(turns, turn{from, waiting, holding}, turn{max(from, to), -waiting, -holding})
	}
	or := func(at, otherwise time.Duration) time.Duration {
		if at != 0 {
			return at
		}
		return otherwise
	}
	for _, s := range l.requests {
		if !s.Outer() {
			continue
		}
		if len(s.Parts) == 1 { // a request for several locks may wait for any of them
			add(s.Asked, or(s.Answered, or(s.proc.Killed, j.span.To)), 1, 0)
		}
		if s.Granted {
			add(s.Answered, or(s.Ended(), j.span.To), 0, 1)
		}
	}
	for _, s := range l.requests {
		if !s.Outer() && s.Granted { // a reader that was a writer before
			add(s.Answered, or(s.Ended(), j.span.To), 0, 1)
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	waiting, holding, since := 0, 0, never
	for i, t := range turns {
		waiting += t.waiting
		holding += t.holding
		if i+1 < len(turns) && turns[i+1].at == t.at {
			continue
		}
		switch free := waiting > 0 && holding == 0; {
		case free && since == never:
			since = t.at
		case !free && since != never:
			j.idled(l, history.Span{From: since, To: min(t.at, j.span.To)})
			since = never
		}
	}
}

func (j *judge) idled(l *lock, s history.Span) {
	const check = "a free lock is granted to its waiters"
	idle := s.To - s.From
	if idle <= 0 {
		return
	}
	unhindered := idle - covered(s, slices.Concat(j.excuses(-1, l.name), j.stalls(-1), j.withoutPermits(l)))
	j.v.LongestIdle = max(j.v.LongestIdle, idle)
	j.v.LongestUnhindered = max(j.v.LongestUnhindered, unhindered)
	if unhindered > j.limits.Idle {
		j.violated(check, l.name, s.From+j.limits.Idle,
			"from %v to %v it was free although it had waiters, %v of that without an excuse", s.From, s.To, unhindered)
	}
}

// order checks that a fair lock is granted to the earliest request.
func (j *judge) order(l *lock) {
	const check = "first come, first served"
	if l.kind != "fair" {
		return
	}
	excuses, stalls := j.excuses(-1, l.name), j.stalls(-1)
	for n, a := range l.requests { // in the order of the requests
		answered := a.Answered
		if !a.Unlimited || answered == 0 || !a.Granted && a.Err != "cancelled" {
			continue // it may have left the queue at an unknown time
		}
		for _, b := range l.requests[n+1:] {
			if b.Asked > answered {
				break
			}
			if !b.Granted || b.Answered > answered || within(excuses, a.Asked, answered) {
				continue
			}
			earlier := b.Asked - a.Asked - covered(history.Span{From: a.Asked, To: b.Asked}, stalls)
			later := answered - b.Answered - covered(history.Span{From: b.Answered, To: answered}, stalls)
			if earlier > j.limits.Order && later > j.limits.Slack {
				j.violated(check, l.name, b.Answered,
					"%v, made at %v, was granted %v before %v, which was made %v earlier", b, b.Asked, answered-b.Answered, a, b.Asked-a.Asked)
			}
		}
	}
}
