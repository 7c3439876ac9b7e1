package judge

import "github.com/lockkeeper-go/lockkeeper/robustness/history"

// job is the kind of locks that are held for a minimum time.
const job = "job"

// keepsMinimum checks that no request is granted within the minimum time of another one, after its hold was released.
// The time began at the grant, which was after the request.
func (j *judge) keepsMinimum(l *lock) {
	broken := j.brokenLeases(l.name)
	for i, a := range l.requests {
		if !a.Granted || a.Released == 0 || a.ReleaseErr != "" {
			continue
		}
		least := history.Span{From: a.Asked, To: a.Asked + a.AtLeast}
		if within(broken, least.From, least.To) || j.clockJumped(least) {
			continue
		}
		for _, b := range l.requests[i+1:] {
			if b.Asked >= least.To {
				break
			}
			if b.Granted && b.Answered > a.Released && b.Answered < least.To {
				j.violated("a hold lasts for its minimum time", l.name, b.Answered,
					"%v was granted the lock for at least %v from %v on, released it, and %v was granted it at %v", a, a.AtLeast, a.Asked, b, b.Answered)
			}
		}
	}
}
