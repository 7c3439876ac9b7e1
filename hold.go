package lockkeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Hold is a granted lock, until it is released or lost. Its methods may be called from any goroutine. A nil Hold is not
// valid, and its methods fail with ErrInvalid.
type Hold struct {
	lock   *Lock
	parent context.Context
	// outer is the innermost hold, of any lock and System, that parent belongs to.
	outer *Hold
	// rare is nil for most holds, so that they need no memory for it.
	rare *rareFields

	id     uint64
	count  int
	owner  machine.Owner
	tokens []int64
	// until is the end of the lease's validity. The lock actor updates it while the hold lasts.
	until *atomic.Int64
	// bound is the end of the hold's own fixed lease or max hold; 0 if it has neither. It differs from until if other
	// holds share the lease. The bound of the root applies to the call tree. The lock actor changes it when the hold
	// gets another lease.
	bound atomic.Int64

	released atomic.Bool
	// root is the hold that this one re-entered, or the hold itself.
	root *Hold
	// mu guards the fields below. The mutex of the root guards them for the whole call tree.
	mu sync.Mutex
	// ended is why the hold ended; nil while it lasts.
	ended error
	// cause is why the context of the hold is cancelled. It may be set before the context is created.
	cause    error
	ctx      context.Context
	cancel   context.CancelCauseFunc
	unfollow []func() bool
	callTree // used in the root only
}

// rareFields contains the fields that few holds need.
type rareFields struct {
	onRisk func(left time.Duration)
	permit *request.Permit // of an expirable semaphore
	// drain is the time given to WithDrain.
	drain time.Duration
	// drained: the drain has begun. The mutex of the root guards it.
	drained bool
	// endChanged receives when the end of a hold with a drain has changed.
	endChanged chan struct{}
	// stack is the stack of the goroutine that called Acquire, with Config.HoldStacks.
	stack []uintptr
}

// initRareFields sets the fields that few holds need.
func (h *Hold) initRareFields(onRisk func(left time.Duration), drain *time.Duration) {
	var stack []uintptr
	if h.lock.runtime.KeepsStacks() {
		stack = make([]uintptr, 32)
		stack = stack[:runtime.Callers(4, stack)]
	}
	var permit *request.Permit
	if request.TraitsOf(h.lock.kind).Permits {
		permit = &request.Permit{Count: h.lock.total}
	}
	if onRisk != nil || stack != nil || permit != nil || drain != nil {
		h.rare = &rareFields{onRisk: onRisk, permit: permit, stack: stack}
		if drain != nil {
			h.rare.drain, h.rare.endChanged = *drain, make(chan struct{}, 1)
		}
	}
}

// permit returns nil for a hold of a lock.
func (h *Hold) permit() *request.Permit {
	if h.rare == nil {
		return nil
	}
	return h.rare.permit
}

// checkUsable returns an error if there is no hold.
func (h *Hold) checkUsable() error {
	if h == nil || h.lock == nil {
		return errNoHold
	}
	return nil
}

// Context returns the context for the work under the lock. It has the values of the context
// given to Acquire, but not its deadline or cancellation, which end only the wait. For work
// that should end with the caller's context too, use Lock.Do.
//
// When the lock is lost, the context is cancelled; its cause (context.Cause) is an *Error that wraps ErrLost and gives
// the reason. The same happens when this hold was acquired with the Context of a hold of another lock, and that hold is
// lost. The context is also cancelled once this hold and all holds of the lock that were acquired with this context, or
// with a context derived from it, are released.
//
// An Acquire of the same lock with this context re-enters the lock. Goroutines that share the context therefore do not
// exclude each other. Give them the context from before the Acquire, or let them acquire with WithoutReentry.
func (h *Hold) Context() context.Context {
	if err := h.checkUsable(); err != nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(invalidError("hold", "", err))
		return ctx
	}
	return h.contextIn(context.WithoutCancel(h.parent))
}

// contextIn returns the Context. The first call creates it as a child of parent.
func (h *Hold) contextIn(parent context.Context) context.Context {
	h.root.mu.Lock()
	defer h.root.mu.Unlock()
	if h.ctx == nil {
		h.ctx, h.cancel = context.WithCancelCause(context.WithValue(parent, holdKey{}, h))
		if h == h.root {
			h.loss, h.cancelLoss = context.WithCancelCause(context.Background())
			if h.lost != nil {
				h.cancelLoss(h.lost)
			}
		}
		if h.cause != nil {
			h.cancel(h.explained(h.cause))
		} else {
			h.follow()
		}
	}
	return h.ctx
}

func (h *Hold) active() bool { return h.Err() == nil && !h.released.Load() }

// Err returns nil while the hold lasts. After that it returns an error that wraps ErrLost, or
// ErrNotHeld if the hold was released.
func (h *Hold) Err() error {
	if err := h.checkUsable(); err != nil {
		return invalidError("hold", "", err)
	}
	h.root.mu.Lock()
	defer h.root.mu.Unlock()
	return h.explained(h.ended)
}

// Valid reports whether the lock is certainly held at this moment. It only reads the clock, so
// it is cheap to call often. The lease may end right after the call; see Ensure.
func (h *Hold) Valid() bool {
	return h.left() > 0
}

// Left returns the time for which the lock certainly stays held unless its lease is renewed; 0 if the hold has ended.
func (h *Hold) Left() time.Duration {
	return max(h.left(), 0)
}

// left returns the time for which the hold is valid if its lease is not renewed; 0 or less if it has ended. The next
// term of the lock uses the same variable for its lease, after this hold has ended: so left reads the lease before it
// checks whether the hold has ended.
func (h *Hold) left() time.Duration {
	if h.checkUsable() != nil {
		return 0
	}
	until := h.goodUntil()
	left := until - h.lock.runtime.Now()
	if !h.active() {
		return 0
	}
	return left
}

// goodUntil returns when the hold ends if the lease is not renewed.
func (h *Hold) goodUntil() machine.Instant {
	until := machine.Instant(h.until.Load())
	if bound := machine.Instant(h.root.bound.Load()); bound != 0 {
		return min(bound, until)
	}
	return until
}

// Token returns the fencing token of a hold of a fenced lock, and 0 for other kinds. It is higher than the tokens of
// all earlier holds, so the protected resource can refuse a writer that has not noticed the loss of its lock. A
// re-entry has the token of the hold that it re-enters, if that hold has a token.
func (h *Hold) Token() int64 {
	if h.checkUsable() != nil || !request.TraitsOf(h.lock.kind).Fenced || len(h.tokens) == 0 {
		return 0
	}
	return h.tokens[0]
}

// MemberTokens returns the fencing tokens of a MultiLock's members, in the order given to
// MultiLock; 0 for a member without tokens. It returns nil for other kinds.
func (h *Hold) MemberTokens() []int64 {
	if h.checkUsable() != nil || h.lock.members == nil {
		return nil
	}
	return h.lock.members.Tokens(h.tokens)
}

// Count returns the hold count at the time of this grant: 1, or more for a re-entry.
func (h *Hold) Count() int {
	if h == nil {
		return 0
	}
	return h.count
}

// Ensure ensures that the lock stays held for at least d from now. It renews the lease if needed. Otherwise it does not
// call Redis, and so does not notice a deleted key. It fails with ErrLost or ErrNotHeld if the hold has ended, and with
// ErrUnavailable if the renewal failed. It fails with ErrInvalid if d is negative, if d is longer than the rest of a
// fixed lease or a max hold (even if other holds share the lease for longer), or if d is longer than the watchdog's TTL
// minus 1 % and 2 ms. It returns after at most Config.CallTimeout and 250 ms, even if ctx never ends.
func (h *Hold) Ensure(ctx context.Context, d time.Duration) error {
	const op = "ensure"
	if err := h.checkUsable(); err != nil {
		return invalidError(op, "", err)
	}
	if ctx == nil {
		return invalidError(op, h.lock.Name(), errNoContext)
	}
	if d < 0 {
		return invalidError(op, h.lock.Name(), fmt.Errorf("the time to ensure is %v, and must not be negative", d))
	}
	if err := h.Err(); err != nil {
		return err
	}
	if left := h.left(); left > 0 && left >= d {
		return nil
	}
	call := h.lock.newCall(request.OpEnsure)
	call.HoldID, call.Within = h.id, d
	_, err := h.lock.submit(ctx, op, call)
	return err
}

// Extend gives the hold a fixed lease of d from now on, in place of its fixed lease or of the watchdog: the hold is
// lost at the end of d, 1 % and 2 ms earlier by the clock of this process. d may be longer or shorter than what is
// left. It is at least 10 ms, and for a RedLock at most Config.Watchdog. KeepAlive makes the watchdog renew the lease
// again.
//
// Extend returns nil when Redis has confirmed the lease, with Config.Replicas also its replicas. The lease applies to
// the whole call tree: to the first hold and to all holds that have re-entered it. While other holds of this System
// share the lease of a read lock, the watchdog renews it, and the hold still ends at the end of d; so Left is then no
// longer than Config.Watchdog. A shorter lease of a read/write lock does not shorten its TTL in Redis, since others may
// read under it: if the process is killed, the lock is free when the longer lease would have ended.
//
// Its errors are:
//
//   - ErrLost, ErrNotHeld: the hold has ended.
//   - ErrInvalid: d is not valid, is longer than what is left of a max hold, or is shorter than what is left of a
//     minimum time (WithAtLeast).
//   - the cause of ctx: Extend continues in the background.
//   - ErrUnavailable, ErrNotReplicated, ErrRejected: Redis has not confirmed the lease, and may have set it or may set
//     it later. In that case a longer lease does not count. A lease that is shorter than what is left, or than the
//     watchdog's, may count in this process nevertheless: see Left. Extend may be called again. A longer lease also
//     fails with ErrUnavailable while an unanswered command may still set a shorter one.
//   - ErrCrashed: the lock actor has crashed; if Err returns nil, call Extend again. ErrClosed: the System was closed.
//
// Extend returns after at most Config.CallTimeout and 250 ms, even if ctx never ends.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	wrong := (&request.Call{Lease: d}).CheckTimes()
	if d == 0 {
		wrong = errors.New("a lease of zero would be over at once; KeepAlive makes the watchdog renew the lease")
	}
	return h.extend(ctx, d, wrong)
}

// KeepAlive makes the watchdog renew the lease from now on, as if the hold had been acquired without WithLease. A max
// hold stays. KeepAlive has the errors of Extend, and returns after the same time. If Redis has not confirmed the
// lease, the hold ends with its fixed lease at the latest.
func (h *Hold) KeepAlive(ctx context.Context) error { return h.extend(ctx, 0, nil) }

// extend gives the hold another lease, unless wrong says that the lease is not valid; 0 is the lease of the watchdog.
func (h *Hold) extend(ctx context.Context, lease time.Duration, wrong error) error {
	const op = "extend"
	if err := h.checkUsable(); err != nil {
		return invalidError(op, "", err)
	}
	if ctx == nil {
		return invalidError(op, h.lock.Name(), errNoContext)
	}
	if err := cmp.Or(wrong, h.lock.runtime.Rules().CheckRed(h.lock.kind, h.lock.members, lease)); err != nil {
		return invalidError(op, h.lock.Name(), err)
	}
	if err := h.Err(); err != nil {
		return err
	}
	call := h.lock.newCall(request.OpExtend)
	call.HoldID, call.Lease = h.id, lease
	_, err := h.lock.submit(ctx, op, call)
	return err
}

// Release releases the hold. It returns nil when Redis has confirmed that, or when the lock stays in this process: the
// next waiter has it, other readers share it, or it lingers (Config.Linger).
//
// ctx bounds only the wait for the confirmation; the release is carried out even if ctx ends. If ctx never ends,
// Release returns when the lease and a call to Redis that is in progress then have ended, at the latest. Its errors
// are:
//
//   - ErrLost: the lock was lost before the Release.
//   - ErrNotHeld: the hold was released before, even if the earlier Release has returned ErrLost; see Err.
//   - ErrNotReleased: Redis did not confirm the release before ctx ended, or at all. The release is
//     retried in the background, unless the error also wraps ErrRejected: Redis would refuse it again.
//     The lock is free when its TTL ends at the latest.
//   - ErrCrashed: the lock actor has crashed. If Err returns nil, the lock is still held: call Release
//     again. Otherwise the actor was stopped after many crashes, and the hold was lost.
//
// While other holds of the call tree are held, Release only sets the hold count in Redis. If Redis does not accept the
// count within Config.CallTimeout, or rejects it, the hold is released nevertheless, since the release of the last hold
// does not depend on the count.
func (h *Hold) Release(ctx context.Context) error {
	const op = "release"
	if err := h.checkUsable(); err != nil {
		return invalidError(op, "", err)
	}
	if ctx == nil {
		return invalidError(op, h.lock.Name(), errNoContext) // before released is set: the lock stays held
	}
	if !h.released.CompareAndSwap(false, true) {
		return &Error{
			Op: op, Lock: h.lock.Name(), Reason: messages.Reason_REASON_NOT_HELD, Detail: "this hold was released before", Err: ErrNotHeld,
		}
	}
	if why := h.Err(); why != nil {
		return why
	}
	call := h.lock.describe(request.NewRelease())
	call.HoldID, call.Permit = h.id, h.permit()
	if h.lock.runtime.Observer().Traces() {
		call.Holder = releaser{(*holder)(h), ctx}
	}
	out, answered := h.lock.runtime.Do(ctx, call)
	var err error
	switch {
	case !answered:
		// It is ErrNotReleased even if the cause wraps ErrLost or ErrNotHeld.
		err = notReleased(&Error{Op: op, Lock: h.lock.Name(), Err: context.Cause(ctx)})
	case out.Reason == 0:
		call.FreeRelease() // not after a refusal: whichever component refused may still read the call
	default:
		err = h.lock.failedError(op, out.Answer)
		switch {
		case errors.Is(err, ErrCrashed) && h.Err() == nil:
			h.released.Store(false)
			return err
		case errors.Is(err, ErrLost): // the release has discovered the loss
			h.root.lose(err)
			return err
		case !errors.Is(err, ErrNotHeld):
			err = notReleased(err)
		}
	}
	h.end()
	return err
}
