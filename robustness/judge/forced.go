package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// forced checks that a forced release, however late it arrives, frees the holder that was seen before, or none: no hold
// that was asked for after that is lost by it.
func (j *judge) forced() {
	const check = "a forced release frees what it has seen"
	for _, l := range j.locks {
		for _, s := range l.shares {
			if !s.Granted || !lostLease(s.Request) && s.ReleaseErr != "not held" {
				continue
			}
			at := cmp.Or(s.Invalid, s.Told, s.Released)
			if j.hinderedHold(s, at) {
				continue
			}
			before, after := time.Duration(0), false
			for _, f := range j.faults {
				if !f.Forces || f.Lock != l.name || f.From >= at {
					continue
				}
				if f.From > s.Asked {
					after = true // it may have been seen
				} else if at < f.To+j.limits.Lease {
					before = f.From
				}
			}
			if before != 0 && !after {
				j.violated(check, l.name, at, "%v was asked at %v, after the look for the forced release at %v, and was lost by it", s, s.Asked, before)
			}
		}
	}
}

// hinderedHold reports whether something else may have ended a hold until then.
func (j *judge) hinderedHold(s share, at time.Duration) bool {
	held := history.Span{From: s.Asked, To: at}
	return s.proc.Stalled(held) > j.limits.Lease/3 || slices.ContainsFunc(j.faults, func(f history.Fault) bool {
		return (f.Hinders || f.Fells || f.Robs && !f.Forces) && f.Concerns(s.Proc, s.part.Lock) && f.From < held.To && f.To > held.From
	})
}
