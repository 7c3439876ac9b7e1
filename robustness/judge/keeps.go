package judge

import (
	"cmp"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// keepsLeases checks that no lease is lost while Redis answers and the process runs.
func (j *judge) keepsLeases(l *lock) {
	if j.limits.GrantWithin == 0 {
		return
	}
	for _, s := range l.requests {
		if !s.Granted || !lostLease(s.Request) || s.LossReason == closed {
			continue
		}
		held := history.Span{From: s.Asked, To: cmp.Or(s.Invalid, s.Notified, s.Released) + 1}
		if end := extendedTo(s.Request); end.To < never && held.To > end.From {
			continue
		}
		if within(j.excuses(s.Proc, l.name), held.From, held.To) || s.proc.Stalled(held) > j.limits.Lease/3 {
			continue
		}
		j.violated("no lease is lost while Redis answers", l.name, held.To,
			"%v has lost its lease (%s), and nothing hindered it", s, cmp.Or(s.LossReason, s.ReleaseErr))
	}
}
