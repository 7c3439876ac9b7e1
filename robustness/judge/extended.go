package judge

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// extensions checks that a hold lasts until the end that its last extension has given it, and not for longer.
func (j *judge) extensions() {
	const check = "an extended hold ends when its lease does"
	for _, p := range j.processes {
		for _, r := range p.Requests {
			end, lock := extendedTo(r), r.Parts[0].Lock
			if r.Last > end.To {
				j.violated(check, lock, r.Last, "%v was extended until %v at the latest, but was valid at %v", r, end.To, r.Last)
			}
			if r.Invalid == 0 || r.Invalid >= end.From || r.LossReason == closed {
				continue
			}
			kept := history.Span{From: r.Extensions[len(r.Extensions)-1].From, To: end.From}
			if !within(j.brokenLeasesOfAny(r), kept.From, kept.To) && !j.actorCrashed(r, kept) && !j.clockJumped(kept) {
				j.violated(check, lock, r.Invalid, "%v was extended until %v at least, but was invalid at %v", r, end.From, r.Invalid)
			}
		}
	}
}

// extendedTo is when a hold ends by its extensions: not before From, and not after To. Each begins when the lock actor
// handles it. One that has failed may have brought the end forward, and has not put it off, unless a crash hides its
// outcome.
func extendedTo(r *history.Request) history.Span {
	end := history.Span{To: never}
	for _, e := range r.Extensions {
		left := e.Lease - e.Lease/100 - 2*time.Millisecond // see docs/guarantees.md
		switch {
		case e.Err == "crashed" || e.Err == "" && e.Lease == 0:
			end = history.Span{To: never}
		case e.Err == "":
			end = history.Span{From: e.From + left, To: e.To + left}
		default:
			end.From = 0
		}
	}
	return end
}

// extendedSince reports whether a hold may have got another lease since then.
func extendedSince(r *history.Request, at time.Duration) bool {
	return slices.ContainsFunc(r.Extensions, func(e history.Extension) bool { return e.To > at })
}
