package lockkeeper

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

// The back-off before the next attempt doubles from firstBackoff to maxBackoff, minus a random part of up to a half. A
// term longer than maxBackoff resets it.
const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 10 * time.Second
)

// Elect calls lead while it holds the lock, so that one of all processes that call Elect leads. It waits for the lock,
// calls lead as Do does, and returns the result of Do once lead has returned. If the lock was lost meanwhile, Elect
// discards the result of lead and waits for the lock again after a back-off of up to 10 s. It does the same if Acquire
// fails with ErrUnavailable, ErrNotReplicated, ErrQueueFull or ErrCrashed, or with ErrRejected when it has led before
// or was called longer than Config.CallTimeout ago: a password or a right may be changed while it waits. It returns any
// other error of Acquire. If ctx ends after Redis has rejected the last try, the error also wraps ErrRejected.
//
// The context of lead is a child of ctx, and is also cancelled when the lock is lost. lead must
// return when its context ends: after a loss another process may lead already, and after the end
// of ctx other processes wait until lead has returned and Elect has released the lock. To hand
// over before a process exits, cancel ctx and wait until Elect has returned. Lead does this in a
// goroutine, and LeaderProps with an actor.
func (l *Lock) Elect(ctx context.Context, lead func(ctx context.Context) error, options ...LeadOption) error {
	var o outcome
	r := candidacyOptions(options)
	c := l.newCandidacy(ctx, r)
	defer func() { c.end(&o) }() // even if lead panics
	l.elect(ctx, lead, r, c, &o)
	return o.err()
}

// candidacyOptions gathers the options of a candidacy.
func candidacyOptions(options []LeadOption) *acquireOptions {
	return gather(append(options[:len(options):len(options)], leadOption(func(r *acquireOptions) { r.leads = true })))
}

// elect implements Elect. It sets the outcome even if lead panics or ends the goroutine.
func (l *Lock) elect(ctx context.Context, lead func(ctx context.Context) error, r *acquireOptions, c *candidacy, o *outcome) {
	if lead == nil {
		o.work = invalidError("elect", l.Name(), errNoFunction)
		return
	}
	var rejection error // of the last try, unless Redis has accepted a request that waits since then
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		asked := time.Now()
		hold, err := l.acquire(ctx, "acquire", r)
		*o = outcome{work: err}
		if err == nil {
			c.led = true
			if hold.do(ctx, lead, o); !errors.Is(hold.Err(), ErrLost) && !hold.drained() {
				return
			}
			if !o.began.IsZero() && time.Since(o.began) > maxBackoff {
				backoff = firstBackoff
			}
		} else if !mayPass(err) && !c.mayBeAcceptedAgain(err) || ctx.Err() != nil { // the cause of ctx may wrap such an error
			if rejection != nil && ctx.Err() != nil && !l.isPastCall(asked) { // Redis may not have answered this try
				o.work = errors.Join(err, rejection)
			}
			return
		}
		before := rejection
		if rejection = nil; errors.Is(err, ErrRejected) {
			rejection = err
		}
		if rejection != nil && (before == nil || l.isPastCall(asked)) { // Redis accepted the candidacy meanwhile
			backoff = firstBackoff
			l.runtime.Log(slog.LevelError, "Redis rejects a candidate, and this process waits to lead again", "lock", l.Name(), "error", err)
		}
		select {
		case <-time.After(backoff - rand.N(backoff/2)):
		case <-ctx.Done(): // the next Acquire returns its cause
		}
	}
}

// isPastCall reports whether a call to Redis that began at that time has been answered or given up by now.
func (l *Lock) isPastCall(began time.Time) bool {
	return time.Since(began) > l.runtime.Rules().Config.CallTimeout
}

// Lead runs Elect in a goroutine, and returns a function that ends it. resign cancels the context of
// lead, and returns when lead has returned and the lock is released, or when the ctx of resign ends.
// Allow it more than 5 s, the time for which Do waits for Redis to confirm the release.
//
// If lead fails before that, by an error or [runtime.Goexit], Lead logs the error, and this process waits for the lock
// again after a back-off of up to 10 s. If lead returns nil, or Elect would return an error of Acquire, Lead logs the
// reason, and this process does not lead again. So Lead ends if Redis rejects its first request, since the rights or
// the name may be wrong, and waits again, with a line in the log, if Redis rejects a later request. A panic of lead
// ends the program, as in any goroutine.
//
// resign returns nil if the lock is free or was never acquired, and lead has returned nil, the error or the cause of
// its context, or an error that wraps only that cause. Otherwise it returns the error of Elect, which also wraps
// ErrNotReleased if the release is not confirmed. An error that wraps context.Canceled is returned, since it may come
// from another context. If lead has failed and has not led since, resign returns its error.
func (l *Lock) Lead(lead func(ctx context.Context) error, options ...LeadOption) (resign func(ctx context.Context) error) {
	candidacy, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	r := candidacyOptions(options)
	c := l.newCandidacy(candidacy, r)
	go func() {
		var o outcome
		err := l.campaign(candidacy, lead, r, c, &o)
		c.end(&o)
		ended <- err
	}()
	return func(ctx context.Context) error {
		if ctx == nil {
			return invalidError("resign", l.Name(), errNoContext) // the process continues to lead
		}
		cancel(errResigned)
		select {
		case err := <-ended:
			ended <- err // for a second call of resign
			return err
		case <-ctx.Done():
			const detail = "the function that leads has not returned, or the release is not confirmed"
			return &Error{Op: "resign", Lock: l.Name(), Detail: detail, Err: context.Cause(ctx)}
		}
	}
}

// campaign runs Elect until its context ends, lead returns nil, or an Acquire fails for good. It sets the outcome of
// the last Elect.
func (l *Lock) campaign(ctx context.Context, lead func(ctx context.Context) error, r *acquireOptions, c *candidacy, o *outcome) error {
	var last outcome
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		*o = outcome{}
		ended := make(chan struct{})
		go func() { // lead may end the goroutine
			defer close(ended)
			l.elect(ctx, lead, r, c, o)
		}()
		<-ended
		switch {
		case ctx.Err() != nil && !isEndOf(ctx, o.work):
			return o.err()
		case ctx.Err() != nil && o.began.IsZero():
			return last.err()
		case ctx.Err() != nil:
			return o.release
		case o.began.IsZero() || o.work == nil:
			l.logEnded(o.err())
			return o.err()
		case time.Since(o.began) > maxBackoff:
			backoff = firstBackoff
		}
		last = *o
		pause := backoff - rand.N(backoff/2)
		l.runtime.Log(slog.LevelError, "a leader has failed, and this process waits to lead again",
			"lock", l.Name(), "error", o.err(), "pause", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done(): // the next Elect returns its cause
		}
	}
}

// isEndOf reports whether err is the error or the cause of ctx, which has ended, or wraps only the cause.
func isEndOf(ctx context.Context, err error) bool {
	if err == ctx.Err() {
		return true
	}
	for cause := context.Cause(ctx); err != nil; err = errors.Unwrap(err) {
		if err == cause {
			return true
		}
	}
	return false
}

var errResigned = errors.New("the leader has resigned")

// logEnded logs that a leader has ended by itself.
func (l *Lock) logEnded(err error) {
	if l.checkUsable() != nil {
		return // there is no logger
	}
	level, args := slog.LevelInfo, []any{"lock", l.Name()}
	if err != nil {
		args = append(args, "error", err)
		if !errors.Is(err, ErrClosed) {
			level = slog.LevelError
		}
	}
	l.runtime.Log(level, "a leader has ended, and this process does not lead again", args...)
}

// mayPass reports whether an Acquire that failed with this error may succeed later.
func mayPass(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNotReplicated) || errors.Is(err, ErrQueueFull) || errors.Is(err, ErrCrashed)
}

// WithEnded makes the System call f, in a new goroutine, when the candidacy has ended without being asked to, so that
// this process does not lead again. err is nil if the work is done or the child of a leader has stopped; otherwise it
// is the error that Elect would return. A panic in f is logged. By default only a metric reports the end and, for Lead
// and LeaderProps, a log line.
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
	began time.Time
	led   bool // at least once
}

// newCandidacy begins a candidacy. It returns nil if the lock or the context cannot be used.
func (l *Lock) newCandidacy(ctx context.Context, r *acquireOptions) *candidacy {
	if l.checkCall(ctx) != nil {
		return nil
	}
	l.runtime.Observer().Candidacies(l.kind, 1)
	return &candidacy{lock: l, ctx: ctx, ended: r.ended, began: time.Now()}
}

// mayBeAcceptedAgain reports whether an Acquire was rejected and Redis had accepted the candidacy before, so that Redis
// may accept it again. Redis answers the first Acquire within the time of a call, so a candidacy that waits longer was
// accepted.
func (c *candidacy) mayBeAcceptedAgain(err error) bool {
	return errors.Is(err, ErrRejected) && (c.led || c.lock.isPastCall(c.began))
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

// result returns how the candidacy has ended, in the words of docs/operate.md.
func (o *outcome) result(candidacy context.Context) string {
	var refused *Error
	switch {
	case context.Cause(candidacy) == errRestart, o.work == errUnreturned:
		return "crashed"
	case candidacy.Err() != nil:
		return "resigned"
	case o.work == nil:
		return "done"
	case o.began.IsZero() && errors.As(o.work, &refused):
		return refused.Reason.LogValue().String()
	}
	return "failed"
}
