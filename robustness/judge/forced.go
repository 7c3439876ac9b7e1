package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// forced checks that a forced release, however late it arrives, ends only the hold that was inspected before it: no
// hold that was requested after the inspection is lost by it.
func (j *judge) forced() {
	const check = "a forced release ends only the inspected hold"
	for _, l := range j.locks {
		for _, s := range l.requests {
			if !s.Granted || !lostLease(s.Request) && s.ReleaseErr != "not held" {
				continue
			}
			at := cmp.Or(s.Invalid, s.Notified, s.Released)
			if end := extendedTo(s.Request); j.hinderedHold(s, at) || end.To < never && at+1 > end.From {
				continue // hindered, or over by its own extension
			}
			before, after := time.Duration(0), false
			for _, f := range j.faults {
				if !f.Forces || f.Lock != l.name || f.From >= at {
					continue
				}
				if f.From > s.Asked {
					after = true // it may have been inspected
				} else if at < f.To+j.limits.Lease {
					before = f.From
				}
			}
			if before != 0 && !after {
				j.violated(check, l.name, at,
					"%v was made at %v, after the inspection for the forced release at %v, and lost its hold by it", s, s.Asked, before)
			}
		}
	}
}

// hinderedHold reports whether another fault may have ended a hold until then.
func (j *judge) hinderedHold(s lockRequest, at time.Duration) bool {
	held := history.Span{From: s.Asked, To: at}
	return s.proc.Stalled(held) > j.limits.Lease/3 || slices.ContainsFunc(j.faults, func(f history.Fault) bool {
		return (f.Hinders || f.CrashesActors || f.BreaksLeases && !f.Forces) &&
			f.Affects(s.Proc, s.part.Lock) && f.From < held.To && f.To > held.From
	})
}
