package lockkeeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Hold is a granted lock: the right to do what the lock protects, until it is
// released or lost. Its methods may be called from any goroutine.
type Hold struct {
	lock   *Lock
	parent context.Context
	onRisk func(left time.Duration)

	id    uint64
	count int
	owner core.Owner
	// until is kept up to date by the lock actor while the hold lasts.
	until *atomic.Int64

	released atomic.Bool
	mu       sync.Mutex // guards what follows
	ended    error      // why the hold is over; nil while it lasts
	ctx      context.Context
	cancel   context.CancelCauseFunc
	// root is the hold that this one re-entered, nil if it is the first. The lock actor
	// tells the first of a loss, also after its own release, and it tells the others.
	root  *Hold
	inner map[*Hold]struct{}
	lost  error
}

// holdKey finds, in a context, the hold of a lock that the context belongs to.
type holdKey struct {
	system *System
	name   string
}

func (h *Hold) granted(out actors.Outcome) {
	h.id, h.count, h.owner, h.until = out.HoldID, out.Count, out.Owner, out.Until
	if root, ok := out.Holder.(*Hold); ok && root != h {
		h.mu.Lock()
		h.root = root
		h.mu.Unlock()
		root.join(h)
	}
}

// join has a re-entry told of a loss, which may have come already.
func (h *Hold) join(inner *Hold) {
	h.mu.Lock()
	lost := h.lost
	if h.inner == nil {
		h.inner = map[*Hold]struct{}{}
	}
	h.inner[inner] = struct{}{}
	h.mu.Unlock()
	if lost != nil {
		inner.end(lost)
	}
}

func (h *Hold) leave(inner *Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.inner, inner)
}

// Context is for the work under the lock: a child of the context that was given to
// Acquire. It is cancelled when the lock is lost, with an *Error as its cause
// (context.Cause) that says why and is ErrLost, and when the lock is released.
func (h *Hold) Context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		ctx := context.WithValue(h.parent, holdKey{h.lock.system, h.lock.name}, h)
		h.ctx, h.cancel = context.WithCancelCause(ctx)
		if h.ended != nil {
			h.cancel(h.ended)
		}
	}
	return h.ctx
}

// end records why the hold is over, once.
func (h *Hold) end(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return
	}
	h.ended = why
	if h.cancel != nil {
		h.cancel(why)
	}
	if h.root != nil {
		h.root.leave(h)
	}
}

func (h *Hold) active() bool { return h.Err() == nil && !h.released.Load() }

// Err is nil while the hold lasts; then it is the cause of its end, as in Context.
func (h *Hold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// LeaseLost implements actors.Holder; it is for the lock actor.
func (h *Hold) LeaseLost(reason core.Reason, detail string) {
	why := lost(h.lock.name, reason, detail)
	h.mu.Lock()
	h.lost = why
	h.mu.Unlock()
	for _, hold := range h.all() {
		hold.end(why)
	}
}

// all are the first hold and its re-entries.
func (h *Hold) all() []*Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(slices.Collect(maps.Keys(h.inner)), h)
}

// LeaseAtRisk implements actors.Holder; it is for the lock actor.
func (h *Hold) LeaseAtRisk(until core.Instant, _ string) {
	left := max(until-h.lock.system.runtime.Now(), 0)
	for _, hold := range h.all() {
		if hold.onRisk != nil && hold.active() {
			go hold.onRisk(left)
		}
	}
}

// Valid says whether the lock is certainly still held at this moment. It looks at
// the clock and asks nobody, so it may be called as often as one likes; but the next
// moment it may be over. See Ensure.
func (h *Hold) Valid() bool {
	return h.active() && h.lock.system.runtime.Now() < core.Instant(h.until.Load())
}

// Token is the fencing token of the hold. The plain lock has none: it is 0.
func (h *Hold) Token() int64 { return 0 }

// Count is how often the lock was held by this call tree when this hold was granted: 1, or more after a re-entry.
func (h *Hold) Count() int { return h.count }

// Ensure returns nil when the lock is certain to stay held for at least d from now,
// renewing it if need be. It fails with ErrLost or ErrNotHeld when the hold is
// over, ErrUnavailable when the renewal failed, and ErrInvalid when so much cannot be
// had: from a fixed lease more than is left of it, from the watchdog more than its TTL.
func (h *Hold) Ensure(ctx context.Context, d time.Duration) error {
	const op = "ensure"
	if d < 0 {
		return invalid(op, h.lock.name, fmt.Errorf("the time to ensure is %v, and must not be negative", d))
	}
	if err := h.Err(); err != nil {
		return err
	}
	if core.Instant(h.until.Load())-h.lock.system.runtime.Now() >= d && h.Valid() {
		return nil
	}
	_, err := h.lock.ask(ctx, op, &actors.Call{Op: actors.OpEnsure, HoldID: h.id, Within: d})
	return err
}

// Release gives the lock back. It returns nil when that is true: after Redis has
// confirmed it, or after the lock was passed on to the next waiter in this process.
//
// The release goes its way whatever becomes of ctx, which only bounds the wait for
// its confirmation. ErrLost says that the lock was lost before, ErrNotHeld that it
// was released before. After ErrUnavailable the release is still being tried; the
// lock is free at the latest when its TTL is over. After ErrCrashed the lock is
// still held, and Release may be called again.
func (h *Hold) Release(ctx context.Context) error {
	const op = "release"
	if !h.released.CompareAndSwap(false, true) {
		return &Error{Op: op, Lock: h.lock.name, Reason: messages.Reason_REASON_NOT_HELD, Detail: "this hold was released before", Err: ErrNotHeld}
	}
	if why := h.Err(); why != nil {
		return why
	}
	_, err := h.lock.ask(ctx, op, &actors.Call{Op: actors.OpRelease, HoldID: h.id})
	if errors.Is(err, ErrCrashed) && h.Err() == nil {
		h.released.Store(false)
		return err
	}
	h.end(&Error{Op: "hold", Lock: h.lock.name, Reason: messages.Reason_REASON_NOT_HELD, Detail: "the lock was released", Err: ErrNotHeld})
	return err
}
