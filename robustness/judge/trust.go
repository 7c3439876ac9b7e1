package judge

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// trust checks that nobody trusts a lock while somebody else does, unless both read.
func (j *judge) trust(l *lock) {
	const check = "at most one is trusted"
	robbed := j.robbed(l.name)
	var trusted []share
	for _, s := range l.shares {
		if s.First != 0 && s.Last > s.First {
			trusted = append(trusted, s)
		}
	}
	slices.SortFunc(trusted, func(a, b share) int { return int(a.First - b.First) })
	var open []share
	for _, b := range trusted {
		open = slices.DeleteFunc(open, func(a share) bool { return a.Last <= b.First })
		for _, a := range open {
			if a.Owner() == b.Owner() || a.part.Shared && b.part.Shared {
				continue
			}
			from, to := b.First, min(a.Last, b.Last)
			if excused := slices.ContainsFunc(robbed, func(s history.Span) bool { return s.From <= from && to <= s.To }); excused {
				j.v.Robbed += to - from
				continue
			}
			j.violated(check, l.name, from, "%v trusts its hold until %v, and %v trusts its own from %v on: for %v both do",
				a, a.Last, b, b.First, to-from)
		}
		open = append(open, b)
	}
}

// tokens checks that fencing tokens grow with every trusted hold, and that a re-entry
// has the token of its hold.
func (j *judge) tokens(l *lock) {
	const check = "tokens grow"
	if l.kind != "fenced" && l.kind != mixed {
		return
	}
	wiped := j.wiped(l.name)
	var holds []share
	first := map[string]share{}
	for _, s := range l.shares {
		if !s.Granted || s.part.Kind != "fenced" {
			continue
		}
		if outer, known := first[s.Owner()]; known && outer.token != s.token {
			j.violated(check, l.name, s.Answered, "%v has re-entered with token %d a hold with token %d", s, s.token, outer.token)
		}
		if s.Outer() {
			first[s.Owner()] = s
			if s.First != 0 {
				holds = append(holds, s)
			}
		}
	}
	byEnd := slices.Clone(holds)
	slices.SortFunc(holds, func(a, b share) int { return int(a.First - b.First) })
	slices.SortFunc(byEnd, func(a, b share) int { return int(a.Last - b.Last) })
	var highest share
	at, n := time.Duration(0), 0
	for _, s := range holds {
		for ; n < len(byEnd) && byEnd[n].Last < s.First; n++ {
			if byEnd[n].token > highest.token {
				highest = byEnd[n]
			}
		}
		if within(wiped, at, s.First) {
			// Nothing can be said about tokens from before and after.
			highest = share{}
		}
		at = s.First
		if highest.Request != nil && !within(wiped, highest.Asked, s.First) && s.token <= highest.token {
			j.violated(check, l.name, s.First, "%v has token %d, but %v had %d and was over before", s, s.token, highest, highest.token)
		}
	}
}

// losses checks that holders hear of a loss when their trust ends.
func (j *judge) losses() {
	const check = "losses are told"
	for _, p := range j.processes {
		for _, r := range p.Requests {
			if !r.Granted || r.Invalid == 0 {
				continue
			}
			lock := r.Parts[0].Lock
			if r.Told == 0 {
				// Who is killed hears nothing any more.
				if end := r.Ended(); end == 0 || end-r.Invalid-p.Stalled(history.Span{From: r.Invalid, To: end}) > j.limits.Slack {
					j.violated(check, lock, r.Invalid, "%v does not trust its hold any more, and was never told why", r)
				}
				continue
			}
			late := r.Told - r.Invalid - p.Stalled(history.Span{From: r.Invalid, To: r.Told})
			j.v.LatestLoss = max(j.v.LatestLoss, late)
			if late > j.limits.Slack {
				j.violated(check, lock, r.Told, "%v was told that it has lost the lock %v after the end of its trust", r, late)
			}
		}
	}
}

// fromTheStart is how soon after its grant a hold is over that was never good. One that is over later was good until
// then, also if its holder did not look: it may have re-entered the lock first, and waited for Redis.
const fromTheStart = 10 * time.Millisecond

// closed is the loss of a hold whose own System was closed, which may be in the moment of its grant.
const closed = "closed"

// promises checks what was said about single holds.
func (j *judge) promises() {
	for _, p := range j.processes {
		for _, r := range p.Requests {
			if !r.Granted {
				continue
			}
			lock := r.Parts[0].Lock
			if r.Outer() && r.Invalid != 0 && r.First == 0 && r.Invalid-r.Answered < fromTheStart && r.Why != closed && j.hindered(history.Span{From: r.Asked, To: r.Invalid + 1}, p.Proc, lock) == 0 {
				j.violated("what is granted is good", lock, r.Answered, "%v was granted a hold that was never to be trusted", r)
			}
			if r.Invalid != 0 && r.Releasing != 0 && r.Invalid < r.Releasing && r.Released != 0 && r.ReleaseErr == "" {
				j.violated("what is over is not released as if it were good", lock, r.Released, "%v was not to be trusted any more, but its release was confirmed", r)
			}
			if r.ReleaseErr == "not held" && r.Told == 0 && !within(j.robbedAny(r), r.Asked, r.Released) {
				j.violated("a hold ends by its release or is lost", lock, r.Released, "%v released its hold, which was over although nobody had released it and no loss was told", r)
			}
		}
		for _, e := range p.Ensured {
			r := e.Request
			if r.Invalid != 0 && r.Invalid < e.To && !within(j.robbedAny(r), e.From, e.To) && !j.felled(r, e.Span) && !j.jumped(e.Span) {
				j.violated("what is ensured is kept", r.Parts[0].Lock, r.Invalid, "%v was to be good until %v, but was not any more at %v", r, e.To, r.Invalid)
			}
		}
		for _, c := range p.Counts {
			r := c.Request
			if c.Got != c.Want && !within(j.robbedAny(r), r.Asked, c.At) {
				j.violated("Redis counts the holds", r.Parts[0].Lock, c.At, "%v holds the lock %d times, but Redis says %d", r, c.Want, c.Got)
			}
		}
	}
}

// felled reports whether the request's lock actor may have been given up.
func (j *judge) felled(r *history.Request, s history.Span) bool {
	return slices.ContainsFunc(j.faults, func(f history.Fault) bool {
		return f.Fells && f.Concerns(r.Proc, "") && f.Span().Overlap(s) > 0
	})
}

// jumped reports whether more time has passed in a span than the histories know of.
func (j *judge) jumped(s history.Span) bool {
	return slices.ContainsFunc(j.faults, func(f history.Fault) bool { return f.Jumps && f.From < s.To && f.To > s.From })
}

// robbedAny are the robberies of any of a request's locks.
func (j *judge) robbedAny(r *history.Request) (spans []history.Span) {
	for _, part := range r.Parts {
		spans = append(spans, j.robbed(part.Lock)...)
	}
	return spans
}
