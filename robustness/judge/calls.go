package judge

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// calls checks that every call returns within its bound, whatever hinders.
func (j *judge) calls() {
	check := func(p *history.Process, name string, r *history.Request, s history.Span, bound time.Duration) {
		took := s.To - s.From - p.Stalled(s)
		if bound == 0 || took <= bound+j.limits.Slack {
			return
		}
		lock := ""
		if r != nil {
			lock = r.Parts[0].Lock
		}
		j.violated("every call is bounded", lock, s.To, "%s of %v took %v, without the time for which its process did not run, and may take %v", name, r, took, bound)
	}
	for _, p := range j.processes {
		for _, r := range p.Requests {
			end := r.Answered
			if end == 0 && p.Killed == 0 {
				end = j.span.To
			}
			if end != 0 {
				check(p, "acquire", r, history.Span{From: r.Asked, To: end}, r.Bound)
			}
		}
		for _, c := range p.Calls {
			check(p, c.Name, c.Request, c.Span, c.Bound)
		}
	}
}
