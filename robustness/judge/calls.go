package judge

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// calls checks that every call returns within its bound, even during faults.
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
		j.violated("every call is bounded", lock, s.To,
			"%s of %v took %v, without the time for which its process did not run, and may take %v", name, r, took, bound)
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
			j.releasedInTime(p, r)
		}
		for _, c := range p.Calls {
			check(p, c.Name, c.Request, c.Span, c.Bound)
		}
	}
}

// releasedInTime checks that a release is confirmed soon, unless a fault hinders it.
func (j *judge) releasedInTime(p *history.Process, r *history.Request) {
	if r.Releasing == 0 || r.Released == 0 || r.ReleaseErr != "" {
		return
	}
	s, lock := history.Span{From: r.Releasing, To: r.Released}, r.Parts[0].Lock
	for _, part := range r.Parts {
		if j.hindered(s, p.Proc, part.Lock) > 0 {
			return
		}
	}
	if took := s.To - s.From; took > j.limits.Idle {
		j.violated("a release is confirmed in time", lock, s.To, "the release of %v took %v, and nothing hindered it", r, took)
	}
}
