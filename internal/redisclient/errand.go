package redisclient

import "context"

// maxErrands bounds how many callers run calls themselves: with more callers, the batches of the workers are cheaper.
const maxErrands = 16

// Errand is a call for a goroutine that would only wait for the reply. It ends with Run, HandBack or Drop.
type Errand struct {
	redis *Redis
	call  Call
}

// Errand turns a call into an Errand; nil if many Errands are under way.
func (r *Redis) Errand(c Call) *Errand {
	if r.errands.Add(1) > maxErrands {
		r.errands.Add(-1)
		return nil
	}
	return &Errand{r, c}
}

// Run runs the call on the caller's goroutine; see RunHere.
func (e *Errand) Run(within context.Context) {
	e.redis.RunHere(within, &e.call)
	e.Drop()
}

// HandBack has the workers run the call.
func (e *Errand) HandBack() {
	e.Drop()
	e.redis.Run(e.call)
}

// Drop ends an Errand whose call is run in another way.
func (e *Errand) Drop() { e.redis.errands.Add(-1) }
