package lockkeeper

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// The back-off before the next attempt doubles from firstBackOff to longestBackOff, less a
// random part of up to a half. It starts anew after a term longer than longestBackOff.
const (
	firstBackOff   = 100 * time.Millisecond
	longestBackOff = 10 * time.Second
)

// Elect calls lead while it holds the lock, so that one of all processes that call it leads.
// It waits for the lock, calls lead as Do does, and returns what Do returns once lead has
// returned. If the lock was lost meanwhile, it drops what lead returned, and waits for the
// lock again after a back-off of up to 10 s. It does the same if Acquire fails with
// ErrUnavailable, ErrNotReplicated, ErrQueueFull or ErrCrashed, and returns any other error of Acquire.
//
// The context of lead is a child of ctx, and is also cancelled when the lock is lost. lead
// must return when it ends: after a loss another process may lead already, and after the end
// of ctx the others wait until lead has returned. The lock is released at once then. To hand
// over before a process exits, cancel ctx and wait until Elect has returned. For a leader that is
// an actor, see LeaderProps.
func (l *Lock) Elect(ctx context.Context, lead func(ctx context.Context) error, options ...Option) error {
	options = append(options[:len(options):len(options)], func(r *request) { r.leads = true })
	for backOff := firstBackOff; ; backOff = min(2*backOff, longestBackOff) {
		hold, err := l.Acquire(ctx, options...)
		if err == nil {
			since := time.Now()
			if err = hold.do(ctx, lead); !errors.Is(hold.Err(), ErrLost) {
				return err
			}
			if time.Since(since) > longestBackOff {
				backOff = firstBackOff
			}
		} else if ctx.Err() != nil || !passing(err) { // its cause may wrap anything
			return err
		}
		select {
		case <-time.After(backOff - rand.N(backOff/2)):
		case <-ctx.Done(): // the next Acquire returns its cause
		}
	}
}

// passing reports whether an Acquire that failed with this error may succeed later.
func passing(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNotReplicated) || errors.Is(err, ErrQueueFull) || errors.Is(err, ErrCrashed)
}
