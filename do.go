package lockkeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// releaseTimeout bounds how long Do waits until its release is confirmed.
const releaseTimeout = 5 * time.Second

var errUnconfirmed = fmt.Errorf("%w: it has not answered within %v, and the release is still being tried", ErrUnavailable, releaseTimeout)

// Do acquires the lock, runs f, and releases the lock, even if ctx has ended or f panics. The
// context of f is a child of ctx, and is also cancelled when the lock is lost; f must return
// then. HoldFrom returns the hold for that context, for example for its fencing token. The
// context re-enters the lock, like Hold.Context, also in goroutines that f starts.
//
// If the lock was not acquired, f is not called, and Do returns the error of Acquire.
// Otherwise it returns the error of f. It also wraps ErrLost if the lock was lost before f returned,
// whatever f returned: another owner may have held the lock meanwhile. If Redis does not confirm the
// release within 5 s, a line is logged, and if f has returned nil the error wraps ErrNotReleased, and
// why: the work was done under the lock, which is free at the latest when its TTL ends.
//
// With WithWait(0), Do does not wait: it returns ErrHeld if another owner holds the lock.
func (l *Lock) Do(ctx context.Context, f func(ctx context.Context) error, options ...Option) error {
	hold, err := l.Acquire(ctx, options...)
	if err != nil {
		return err
	}
	return hold.do(ctx, f)
}

// do runs f under the hold, and releases it.
func (h *Hold) do(ctx context.Context, f func(ctx context.Context) error) (err error) {
	defer func() {
		failed := h.releaseAnyway(ctx)
		unconfirmed := errors.Is(failed, ErrNotReleased)
		if unconfirmed {
			h.lock.runtime.Log(slog.LevelWarn, "a release is not confirmed", "lock", h.lock.Name(), "error", failed)
		}
		switch {
		case err == nil:
			err = failed
		case failed != nil && !unconfirmed && !errors.Is(err, failed): // f may have returned the loss itself
			err = errors.Join(err, failed)
		}
	}()
	return f(h.contextIn(ctx))
}

// releaseAnyway releases the hold even if ctx has ended, and again if the lock actor crashed
// over the release.
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
