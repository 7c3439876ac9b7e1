package lockkeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// releaseTimeout bounds the wait of Do until its release is confirmed.
const releaseTimeout = 5 * time.Second

var errUnconfirmed = fmt.Errorf("%w: it has not answered within %v, and the release is still being tried", ErrUnavailable, releaseTimeout)

// Do acquires the lock, runs f, and releases the lock, even if ctx has ended or f panics. The context of f is a child
// of ctx, and is also cancelled when the lock is lost; f must return then. HoldFrom returns the hold of that context,
// for example for its fencing token. An Acquire with that context re-enters the lock, as with Hold.Context, also in
// goroutines that f starts.
//
// If the lock was not acquired, f is not called, and Do returns the error of Acquire. Otherwise it returns the error of
// f. The error also wraps ErrLost if the lock was lost before f returned, since another owner may have held the lock
// meanwhile. If Redis does not confirm the release within 5 s, Do logs a warning, and the error also wraps
// ErrNotReleased and the reason; the lock is free when its TTL ends at the latest. Do returns these errors even if f
// returned nil.
//
// If f panics or calls [runtime.Goexit], Do releases the lock, and the panic or exit continues.
func (l *Lock) Do(ctx context.Context, f func(ctx context.Context) error, options ...WorkOption) error {
	var o outcome
	l.do(ctx, f, options, &o)
	return o.err()
}

// outcome is the end of work under a lock: the error of the work, or of the Acquire before it,
// and the error of the release.
type outcome struct {
	work, release error
	// began is the time at which the work began, zero if it did not.
	began time.Time
}

func (o outcome) err() error {
	switch {
	case o.work == nil:
		return o.release
	case o.release == nil || errors.Is(o.work, o.release): // the work may have returned the loss itself
		return o.work
	}
	return errors.Join(o.work, o.release)
}

// errUnreturned is the outcome of work that does not return.
var errUnreturned = errors.New("the work has not returned: it has panicked, or ended its goroutine (runtime.Goexit)")

// do implements Do. It sets the outcome even if f panics or ends the goroutine.
func (l *Lock) do(ctx context.Context, f func(ctx context.Context) error, options []WorkOption, o *outcome) {
	if f == nil {
		o.work = invalidError("do", l.Name(), errNoFunction)
		return
	}
	hold, err := l.acquire(ctx, "acquire", gather(options))
	if err != nil {
		o.work = err
		return
	}
	hold.do(ctx, f, o)
}

// do runs f under the hold, releases it, and sets the outcome.
func (h *Hold) do(ctx context.Context, f func(ctx context.Context) error, o *outcome) {
	o.work = errUnreturned
	defer func() {
		o.release = h.releaseAnyway(ctx)
		if errors.Is(o.release, ErrNotReleased) {
			h.lock.runtime.Log(slog.LevelWarn, "a release is not confirmed", "lock", h.lock.Name(), "error", o.release)
		}
	}()
	within := h.contextIn(ctx)
	stop, err := h.watchDrain(within)
	if err != nil {
		o.work = err
		return
	}
	defer stop()
	o.began = time.Now()
	o.work = f(within)
}

// releaseAnyway releases the hold even if ctx has ended. It repeats the release if the lock actor
// crashes.
func (h *Hold) releaseAnyway(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), releaseTimeout, errUnconfirmed)
	defer cancel()
	for {
		err := h.Release(ctx)
		switch {
		case !errors.Is(err, ErrCrashed) || h.Err() != nil:
			return err
		case ctx.Err() != nil:
			return notReleased(err)
		}
	}
}
