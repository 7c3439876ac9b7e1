package judge

import (
	"cmp"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// keeps checks that no lease is lost while Redis serves and the process runs.
func (j *judge) keeps(l *lock) {
	if j.limits.Awake == 0 {
		return
	}
	for _, s := range l.shares {
		if !s.Granted || !lostLease(s.Request) || s.Why == closed {
			continue
		}
		held := history.Span{From: s.Asked, To: cmp.Or(s.Invalid, s.Told, s.Released) + 1}
		if within(j.excuses(s.Proc, l.name), held.From, held.To) || s.proc.Stalled(held) > j.limits.Lease/3 {
			continue
		}
		j.violated("no lease is lost while Redis serves", l.name, held.To, "%v has lost its lease (%s), and nothing hindered it", s, cmp.Or(s.Why, s.ReleaseErr))
	}
}
