package lockkeeper

import (
	"context"
	"errors"
	"fmt"
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
	// outer is the innermost hold, of whichever lock, that parent belongs to.
	outer  *Hold
	onRisk func(left time.Duration)

	id     uint64
	count  int
	owner  core.Owner
	tokens []int64
	// until is how long the lease is good for; the lock actor keeps it up to date while
	// the hold lasts. bound is the hold's own end, that of its fixed lease or its max hold,
	// which is not the lease's: others may share it. 0 if there is none. The root's counts,
	// and only a re-entry with a longer lease moves it.
	until *atomic.Int64
	bound atomic.Int64

	released atomic.Bool
	// root is the hold that this one re-entered; itself if it is the first.
	root *Hold
	mu   sync.Mutex // the root's guards what follows, for its whole call tree
	// ended is why the hold is over, nil while it lasts; cause is why its context is, or
	// will be when it is made.
	ended, cause error
	ctx          context.Context
	cancel       context.CancelCauseFunc
	callTree     // the root's
}

// Context is for the work under the lock: a child of the context that was given to
// Acquire. It is cancelled when the lock is lost, with an *Error as its cause
// (context.Cause) that says why and wraps ErrLost. It is also cancelled after a release:
// when this hold, and all holds that were acquired with this context or beneath it, are
// released.
func (h *Hold) Context() context.Context {
	h.root.mu.Lock()
	defer h.root.mu.Unlock()
	if h.ctx == nil {
		h.ctx, h.cancel = context.WithCancelCause(context.WithValue(h.parent, treeKey{h.lock.runtime}, h))
		if h.cause != nil {
			h.cancel(h.cause)
		}
	}
	return h.ctx
}

func (h *Hold) active() bool { return h.Err() == nil && !h.released.Load() }

// Err is nil while the hold lasts; then it says why it is over: ErrLost, or ErrNotHeld
// after its release.
func (h *Hold) Err() error {
	h.root.mu.Lock()
	defer h.root.mu.Unlock()
	return h.ended
}

// LeaseLost implements actors.Holder; it is for the lock actor.
func (h *Hold) LeaseLost(reason core.Reason, detail string) {
	h.lose(lost(h.lock.Name(), reason, detail))
}

// LeaseAtRisk implements actors.Holder; it is for the lock actor.
func (h *Hold) LeaseAtRisk(until core.Instant, _ string) {
	left := max(until-h.lock.runtime.Now(), 0)
	for _, hold := range h.tree() {
		if hold.onRisk != nil && hold.active() {
			h.lock.runtime.CallHost("the function of WithAtRisk", func() { hold.onRisk(left) })
		}
	}
}

// Valid reports whether the lock is certainly still held at this moment. It only looks at
// the clock, so it may be called as often as needed. The lease may end right after the
// call; see Ensure.
func (h *Hold) Valid() bool {
	return h.active() && h.lock.runtime.Now() < h.goodUntil()
}

// goodUntil is how long the hold lasts if nothing is renewed.
func (h *Hold) goodUntil() core.Instant {
	until := core.Instant(h.until.Load())
	if bound := core.Instant(h.root.bound.Load()); bound != 0 {
		return min(bound, until)
	}
	return until
}

// Token is the fencing token of the hold of a fenced lock: it is higher than that of
// every hold before, so that whatever the lock protects can refuse those who have lost
// it without knowing. A re-entry has the token of the hold that it re-enters. Other
// kinds have none: it is 0.
func (h *Hold) Token() int64 {
	if h.lock.kind != messages.Kind_KIND_FENCED || len(h.tokens) == 0 {
		return 0
	}
	return h.tokens[0]
}

// MemberTokens are the fencing tokens of a MultiLock's members, in the order in which
// they were given; 0 for a member that has none.
func (h *Hold) MemberTokens() []int64 {
	if h.lock.members == nil {
		return nil
	}
	return h.lock.members.Tokens(h.tokens)
}

// Count is how often this call tree held the lock when this hold was granted: 1, or more
// for a re-entry.
func (h *Hold) Count() int { return h.count }

// Ensure returns nil when the lock is certain to stay held for at least d from now,
// renewing it if need be. It fails with ErrLost or ErrNotHeld when the hold is
// over, ErrUnavailable when the renewal failed, and ErrInvalid when d is too
// long: longer than what is left of a fixed lease or a max hold, or than the watchdog's TTL.
// That others share the lock for longer makes no difference. It returns
// after Config.CallTimeout and 250 ms at the latest, also if ctx never ends.
func (h *Hold) Ensure(ctx context.Context, d time.Duration) error {
	const op = "ensure"
	if d < 0 {
		return invalid(op, h.lock.Name(), fmt.Errorf("the time to ensure is %v, and must not be negative", d))
	}
	if err := h.Err(); err != nil {
		return err
	}
	if h.goodUntil()-h.lock.runtime.Now() >= d && h.Valid() {
		return nil
	}
	call := h.lock.about(actors.OpEnsure)
	call.HoldID, call.Within = h.id, d
	_, err := h.lock.submit(ctx, op, call)
	return err
}

// Release gives the lock back. It returns nil when that is true: after Redis has
// confirmed it, or after the lock was passed on to the next waiter in this process.
//
// The release is carried out even if ctx ends, which only bounds the wait for
// its confirmation; with a ctx that never ends, Release returns when the lease is over, and
// the call to Redis that is under way then, at the latest. ErrLost says that the lock was lost before, ErrNotHeld that it
// was released before. After ErrUnavailable the release is still being tried; the
// lock is free at the latest when its TTL is over. ErrCrashed says that the lock actor was
// given up after many crashes, and the hold lost with it; only if Err returns nil after
// that is the lock still held, and Release may be called again.
//
// While others of its call tree are held, a release only sets a count in Redis. If
// Redis does not take that within Config.CallTimeout, or refuses it for good (ErrRejected),
// the hold is released all the same: the release of the last does not need it.
func (h *Hold) Release(ctx context.Context) error {
	const op = "release"
	if !h.released.CompareAndSwap(false, true) {
		return &Error{Op: op, Lock: h.lock.Name(), Reason: messages.Reason_REASON_NOT_HELD, Detail: "this hold was released before", Err: ErrNotHeld}
	}
	if why := h.Err(); why != nil {
		return why
	}
	call := h.lock.about(actors.OpRelease)
	call.HoldID = h.id
	_, err := h.lock.submit(ctx, op, call)
	if errors.Is(err, ErrCrashed) && h.Err() == nil {
		h.released.Store(false)
		return err
	}
	if errors.Is(err, ErrLost) { // it was lost before, and nobody had noticed
		h.end(err)
		return err
	}
	h.end(&Error{Op: "hold", Lock: h.lock.Name(), Reason: messages.Reason_REASON_NOT_HELD, Detail: "the lock was released", Err: ErrNotHeld})
	return err
}
