package judge

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// trust checks that no two holds of a lock are valid at the same time, unless both are shared.
func (j *judge) trust(l *lock) {
	const check = "at most one is trusted"
	broken := j.brokenLeases(l.name)
	var trusted []lockRequest
	for _, s := range l.requests {
		if s.First != 0 && s.Last > s.First {
			trusted = append(trusted, s)
		}
	}
	slices.SortFunc(trusted, func(a, b lockRequest) int { return int(a.First - b.First) })
	var open []lockRequest
	for _, b := range trusted {
		open = slices.DeleteFunc(open, func(a lockRequest) bool { return a.Last <= b.First })
		for _, a := range open {
			if a.Owner() == b.Owner() || a.part.Shared && b.part.Shared {
				continue
			}
			from, to := b.First, min(a.Last, b.Last)
			if excused := slices.ContainsFunc(broken, func(s history.Span) bool { return s.From <= from && to <= s.To }); excused {
				j.v.ExcusedOverlap += to - from
				continue
			}
			j.violated(check, l.name, from, "%v has a valid hold until %v, and %v from %v on: for %v both are valid",
				a, a.Last, b, b.First, to-from)
		}
		open = append(open, b)
	}
}

// tokens checks that fencing tokens grow with every valid hold, and that a re-entry has the token of its hold. A
// hold whose lease Redis has broken may begin after another one that has a higher token, since the process that still
// trusts the lease learns of its grant late, or hands the lock on; but no token is given twice.
func (j *judge) tokens(l *lock) {
	const check = "tokens grow"
	if l.kind != "fenced" && l.kind != mixed {
		return
	}
	erased, broken := j.erased(l.name), j.brokenLeases(l.name)
	var holds []lockRequest
	first := map[string]lockRequest{}
	for _, s := range l.requests {
		if !s.Granted || s.part.Kind != "fenced" {
			continue
		}
		if outer, known := first[s.Owner()]; known && outer.token != s.token {
			j.violated(check, l.name, s.Answered, "%v has token %d and re-entered a hold with token %d", s, s.token, outer.token)
		}
		if s.Outer() {
			first[s.Owner()] = s
			if s.First != 0 {
				holds = append(holds, s)
			}
		}
	}
	byEnd := slices.Clone(holds)
	slices.SortFunc(holds, func(a, b lockRequest) int { return int(a.First - b.First) })
	slices.SortFunc(byEnd, func(a, b lockRequest) int { return int(a.Last - b.Last) })
	var highest lockRequest
	at, n := time.Duration(0), 0
	for _, s := range holds {
		for ; n < len(byEnd) && byEnd[n].Last < s.First; n++ {
			if byEnd[n].token > highest.token {
				highest = byEnd[n]
			}
		}
		if within(erased, at, s.First) {
			// Tokens from before and after cannot be compared.
			highest = lockRequest{}
		}
		at = s.First
		if s.token < highest.token && within(broken, s.First, s.First) {
			continue
		}
		if highest.Request != nil && !within(erased, highest.Asked, s.First) && s.token <= highest.token {
			j.violated(check, l.name, s.First, "%v has token %d, but %v had %d and ended before", s, s.token, highest, highest.token)
		}
	}
}

// losses checks that holders are notified of a loss when their hold becomes invalid.
func (j *judge) losses() {
	const check = "holders are notified of losses"
	for _, p := range j.processes {
		for _, r := range p.Requests {
			if !r.Granted || r.Invalid == 0 {
				continue
			}
			lock := r.Parts[0].Lock
			if r.Notified == 0 {
				// A killed process receives no notification.
				if end := r.Ended(); end == 0 || end-r.Invalid-p.Stalled(history.Span{From: r.Invalid, To: end}) > j.limits.Slack {
					j.violated(check, lock, r.Invalid, "the hold of %v became invalid, and the holder was never notified", r)
				}
				continue
			}
			late := r.Notified - r.Invalid - p.Stalled(history.Span{From: r.Invalid, To: r.Notified})
			j.v.LatestLoss = max(j.v.LatestLoss, late)
			if late > j.limits.Slack {
				j.violated(check, lock, r.Notified, "the holder of %v was notified of the loss %v after its hold became invalid", r, late)
			}
		}
	}
}

// fromTheStart is how soon after its grant a hold must be invalid to count as never valid. A hold that ends later was
// valid before, even if its holder did not check: it may have re-entered the lock first, and waited for Redis.
const fromTheStart = 10 * time.Millisecond

// closed is the loss of a hold whose own System was closed, perhaps at the moment of its grant.
const closed = "closed"

// promises checks the promises about single holds.
func (j *judge) promises() {
	for _, p := range j.processes {
		for _, r := range p.Requests {
			if !r.Granted {
				continue
			}
			lock := r.Parts[0].Lock
			if r.Outer() && r.Invalid != 0 && r.First == 0 && r.Invalid-r.Answered < fromTheStart && r.LossReason != closed &&
				j.hindered(history.Span{From: r.Asked, To: r.Invalid + 1}, p.Proc, lock) == 0 {
				j.violated("a granted hold is valid", lock, r.Answered, "%v was granted a hold that was never valid", r)
			}
			if r.Invalid != 0 && r.Releasing != 0 && r.Invalid < r.Releasing && r.Released != 0 && r.ReleaseErr == "" {
				j.violated("the release of an invalid hold is not confirmed", lock, r.Released,
					"the hold of %v was invalid, but its release was confirmed", r)
			}
			if r.ReleaseErr == "not held" && r.Notified == 0 && !within(j.brokenLeasesOfAny(r), r.Asked, r.Released) {
				j.violated("a hold ends by a release or a loss", lock, r.Released,
					"%v released its hold, which had ended before without a release or a notified loss", r)
			}
		}
		for _, e := range p.Ensured {
			r := e.Request
			if r.Invalid != 0 && r.Invalid < e.To && !extendedSince(r, e.From) && !within(j.brokenLeasesOfAny(r), e.From, e.To) &&
				!j.actorCrashed(r, e.Span) && !j.clockJumped(e.Span) {
				j.violated("an ensured lease is kept", r.Parts[0].Lock, r.Invalid, "%v was ensured until %v, but was invalid at %v", r, e.To, r.Invalid)
			}
		}
		for _, c := range p.Counts {
			r := c.Request
			if c.Got != c.Want && !within(j.brokenLeasesOfAny(r), r.Asked, c.At) {
				j.violated("the hold count in Redis is right", r.Parts[0].Lock, c.At,
					"%v holds the lock %d times, but the count in Redis is %d", r, c.Want, c.Got)
			}
		}
	}
}

// actorCrashed reports whether the request's lock actor may have been given up.
func (j *judge) actorCrashed(r *history.Request, s history.Span) bool {
	return slices.ContainsFunc(j.faults, func(f history.Fault) bool {
		return f.CrashesActors && f.Affects(r.Proc, "") && f.Span().Overlap(s) > 0
	})
}

// clockJumped reports whether more time has passed in a span than the histories record.
func (j *judge) clockJumped(s history.Span) bool {
	return slices.ContainsFunc(j.faults, func(f history.Fault) bool { return f.ClockJumps && f.From < s.To && f.To > s.From })
}

// brokenLeasesOfAny are the brokenLeases of all of a request's locks.
func (j *judge) brokenLeasesOfAny(r *history.Request) (spans []history.Span) {
	for _, part := range r.Parts {
		spans = append(spans, j.brokenLeases(part.Lock)...)
	}
	return spans
}
