package lockkeeper

import (
	"context"
	"errors"
)

// WithEnded makes the System call f, in a new goroutine, when the candidacy has ended without being asked to, so that this
// process does not lead again: err is nil if the work is done or the child of a leader has stopped, and otherwise what
// Elect would return. A panic in f is logged. The default is that only a metric and, of Lead and LeaderProps, a log line
// report it.
func WithEnded(f func(err error)) LeadOption {
	return leadOption(func(r *acquireOptions) {
		if f == nil {
			r.invalid = errors.New("the function of WithEnded is nil")
		}
		r.ended = f
	})
}

// candidacy is an Elect, a Lead, or a leader of LeaderProps, from its beginning to its end, as operators see it.
type candidacy struct {
	lock *Lock
	// ctx ends when the candidacy is to end.
	ctx   context.Context
	ended func(err error) // of WithEnded; nil if there is none
}

// newCandidacy begins a candidacy. It returns nil if the lock or the context cannot be used.
func (l *Lock) newCandidacy(ctx context.Context, r *acquireOptions) *candidacy {
	if l.checkCall(ctx) != nil {
		return nil
	}
	l.runtime.Observer().Candidacies(l.kind, 1)
	return &candidacy{l, ctx, r.ended}
}

// end ends the candidacy with the outcome of its last try or term.
func (c *candidacy) end(o *outcome) {
	if c == nil {
		return
	}
	observer := c.lock.runtime.Observer()
	observer.Candidacies(c.lock.kind, -1)
	observer.CandidacyEnded(c.lock.kind, o.result(c.ctx))
	if c.ended != nil && c.ctx.Err() == nil {
		err := o.err()
		c.lock.runtime.CallHost("the function of WithEnded", func() { c.ended(err) })
	}
}

// result returns how the candidacy has ended, as docs/operate.md has it.
func (o *outcome) result(candidacy context.Context) string {
	var refused *Error
	switch {
	case context.Cause(candidacy) == errRestart, o.work == errUnreturned:
		return "crashed"
	case candidacy.Err() != nil:
		return "resigned"
	case o.work == nil:
		return "done"
	case o.led.IsZero() && errors.As(o.work, &refused):
		return refused.Reason.LogValue().String()
	}
	return "failed"
}
