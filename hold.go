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

// holdKey finds, in a context, the holds of a System that the context belongs to.
type holdKey struct{ runtime *actors.Runtime }

// held is one of those holds; outer are those around it.
type held struct {
	*Hold
	outer *held
}

// around is the hold of this lock that a context belongs to; nil if there is none.
func (l *Lock) around(ctx context.Context) *Hold {
	each, _ := ctx.Value(holdKey{l.runtime}).(*held)
	for ; each != nil; each = each.outer {
		if each.lock.same(l) {
			return each.Hold
		}
	}
	return nil
}

func (h *Hold) granted(out actors.Outcome) {
	h.id, h.count, h.owner, h.until, h.tokens = out.HoldID, out.Count, out.Owner, out.Until, out.Tokens
	bind(out)
	if root, ok := out.Holder.(*Hold); ok && root != h {
		h.mu.Lock()
		h.root = root
		h.mu.Unlock()
		root.join(h)
	}
}

// bind takes note of the end of the hold that an Acquire got, or re-entered.
func bind(out actors.Outcome) {
	root, ok := out.Holder.(*Hold)
	for ok {
		is := root.bound.Load()
		if int64(out.Bound) <= is || root.bound.CompareAndSwap(is, int64(out.Bound)) {
			return
		}
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
	h.cancelIfOver()
}

// cancelIfOver ends the context, unless this hold was released and a re-entry, whose
// context may be a child of this one, goes on: a writer that has become a reader.
func (h *Hold) cancelIfOver() {
	if h.ended != nil && h.cancel != nil && (len(h.inner) == 0 || errors.Is(h.ended, ErrLost)) {
		h.cancel(h.ended)
	}
}

// Context is for the work under the lock: a child of the context that was given to
// Acquire. It is cancelled when the lock is lost, with an *Error as its cause
// (context.Cause) that says why and is ErrLost, and when the hold is released, with
// those that have re-entered it.
func (h *Hold) Context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		key := holdKey{h.lock.runtime}
		outer, _ := h.parent.Value(key).(*held)
		h.ctx, h.cancel = context.WithCancelCause(context.WithValue(h.parent, key, &held{h, outer}))
		h.cancelIfOver()
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
	h.cancelIfOver()
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
	why := lost(h.lock.Name(), reason, detail)
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
	left := max(until-h.lock.runtime.Now(), 0)
	for _, hold := range h.all() {
		if hold.onRisk != nil && hold.active() {
			h.lock.runtime.CallHost("the function of WithAtRisk", func() { hold.onRisk(left) })
		}
	}
}

// Valid says whether the lock is certainly still held at this moment. It looks at
// the clock and asks nobody, so it may be called as often as one likes; but the next
// moment it may be over. See Ensure.
func (h *Hold) Valid() bool {
	return h.active() && h.lock.runtime.Now() < h.goodUntil()
}

// goodUntil is how long the hold lasts if nothing is renewed.
func (h *Hold) goodUntil() core.Instant {
	root := h
	if h.root != nil {
		root = h.root
	}
	until := core.Instant(h.until.Load())
	if bound := core.Instant(root.bound.Load()); bound != 0 {
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

// Count is how often the lock was held by this call tree when this hold was granted: 1, or more after a re-entry.
func (h *Hold) Count() int { return h.count }

// Ensure returns nil when the lock is certain to stay held for at least d from now,
// renewing it if need be. It fails with ErrLost or ErrNotHeld when the hold is
// over, ErrUnavailable when the renewal failed, and ErrInvalid when so much cannot be
// had: from a fixed lease or a max hold more than is left of it, from the watchdog more
// than its TTL. Others who share the lock for longer change nothing of that.
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
	_, err := h.lock.ask(ctx, op, call)
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
		return &Error{Op: op, Lock: h.lock.Name(), Reason: messages.Reason_REASON_NOT_HELD, Detail: "this hold was released before", Err: ErrNotHeld}
	}
	if why := h.Err(); why != nil {
		return why
	}
	call := h.lock.about(actors.OpRelease)
	call.HoldID = h.id
	_, err := h.lock.ask(ctx, op, call)
	if errors.Is(err, ErrCrashed) && h.Err() == nil {
		h.released.Store(false)
		return err
	}
	h.end(&Error{Op: "hold", Lock: h.lock.Name(), Reason: messages.Reason_REASON_NOT_HELD, Detail: "the lock was released", Err: ErrNotHeld})
	return err
}
