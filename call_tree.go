package lockkeeper

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// callTree is the state of a hold, the root, and of all holds that have re-entered it. For the lock actor the tree is
// one hold, and the lock actor notifies the root. The tree holds the lock until all its holds are released, in any
// order. A re-entry uses the owner of the root.
//
// The mutex of the root guards the state of all holds of the tree.
type callTree struct {
	// reentries are the re-entries that are held or whose context is not cancelled yet.
	reentries map[*Hold]struct{}
	// lost is why the tree was lost; nil while it is held, and after a release.
	lost error
	// loss is cancelled only by the loss of the tree. The root's contextIn creates it, for holds
	// that are acquired with a derived context; see follow.
	loss       context.Context
	cancelLoss context.CancelCauseFunc
}

// holdKey is the context key of the innermost hold.
type holdKey struct{}

// HoldFrom returns the innermost hold of a lock, not of a permit, that ctx belongs to, or nil if
// there is none. The Context of a hold, the context that Do or Elect passes to its function, and
// all contexts derived from them belong to the hold.
func HoldFrom(ctx context.Context) *Hold {
	if ctx == nil {
		return nil
	}
	hold := innermostHold(ctx)
	for hold != nil && hold.permit() != nil {
		hold = hold.outer
	}
	return hold
}

// innermostHold is like HoldFrom, but also returns the holds of permits.
func innermostHold(ctx context.Context) *Hold {
	hold, _ := ctx.Value(holdKey{}).(*Hold)
	return hold
}

// reentered returns the root of the call tree that an Acquire of the lock re-enters, or nil if
// the Acquire has a new owner. The outer hold may be released already: if any hold of its tree is
// still held, a new owner would wait for itself.
func (l *Lock) reentered(outer *Hold) *Hold {
	if request.TraitsOf(l.kind).Permits {
		return nil // each Acquire takes its own permit
	}
	for ; outer != nil; outer = outer.outer {
		if outer.lock.runtime == l.runtime && outer.lock.same(l) && slices.ContainsFunc(outer.root.tree(), (*Hold).active) {
			return outer.root
		}
	}
	return nil
}

// granted records a grant, which is a new hold or a re-entry.
func (h *Hold) granted(out request.Outcome) {
	h.id, h.count, h.owner, h.until, h.tokens = out.HoldID, out.Count, out.Owner, out.Until, out.Tokens
	h.bound.Store(int64(out.Bound))
	if root := holdOf(out.Holder); root != nil && root != h {
		h.root = root
		root.join(h)
	}
}

// join adds a re-entry to the root's call tree. If the tree is lost, the re-entry is lost too.
func (h *Hold) join(inner *Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil {
		inner.ended, inner.cause = h.lost, h.lost
		return
	}
	if h.reentries == nil {
		h.reentries = map[*Hold]struct{}{}
	}
	h.reentries[inner] = struct{}{}
}

// tree returns the re-entries of the root, and the root.
func (h *Hold) tree() []*Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(slices.Collect(maps.Keys(h.reentries)), h)
}

// errReleased stands for the error of a released hold. Few programs ask for that error, so explained creates it on
// demand.
var errReleased = errors.New("it was released")

// explained returns an error of the hold as the host sees it.
func (h *Hold) explained(why error) error {
	if why != errReleased {
		return why
	}
	return &Error{
		Op: "hold", Lock: h.lock.Name(), Reason: messages.Reason_REASON_NOT_HELD, Detail: errReleased.Error(), Err: ErrNotHeld,
	}
}

// end records that the hold was released, and cancels the contexts that were kept alive for it. It has no effect on a
// hold that has ended.
func (h *Hold) end() {
	root := h.root
	root.mu.Lock()
	defer root.mu.Unlock()
	if h.ended != nil {
		return
	}
	h.ended = errReleased
	for one := range root.reentries {
		one.settle()
	}
	root.settle()
}

// lose ends all holds of the root's call tree. A hold that was released before stays released, but the loss cancels its
// context unless that is cancelled already. Only the first call has an effect.
func (h *Hold) lose(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil {
		return
	}
	h.lost = why
	if h.cancelLoss != nil {
		h.cancelLoss(why)
	}
	end := func(one *Hold) {
		if one.ended == nil {
			one.ended = why
		}
		if one.cause == nil {
			one.cancelWith(why)
		}
	}
	for one := range h.reentries {
		end(one)
	}
	end(h)
	h.reentries = nil
}

// settle cancels the context of a hold that has ended, unless a hold that was acquired with that context is still held,
// such as the read hold of a writer that has become a reader.
func (h *Hold) settle() {
	if h.ended == nil || h.cause != nil {
		return
	}
	for one := range h.root.reentries {
		if one.isWithin(h) {
			return
		}
	}
	h.cancelWith(h.ended)
	delete(h.root.reentries, h)
}

// isWithin reports whether the hold is held and was acquired with the context of the other hold or with a derived
// context.
func (h *Hold) isWithin(other *Hold) bool {
	if h.ended != nil {
		return false
	}
	for h != nil && h != other {
		h = h.outer
	}
	return h != nil
}

// cancelWith cancels the hold's context, or causes contextIn to create it cancelled.
func (h *Hold) cancelWith(cause error) {
	h.cause = cause
	for _, stop := range h.unfollow {
		stop()
	}
	h.unfollow = nil
	if h.cancel != nil {
		h.cancel(h.explained(cause))
	}
}

// follow cancels the context when an outer hold of another lock is lost, or at once if such a hold is lost already. A
// release of the outer hold changes nothing, since this lock is still held.
func (h *Hold) follow() {
	cancel := h.cancel
	for outer := h.outer; outer != nil; outer = outer.outer {
		if outer.root == h.root { // lose cancels this context
			continue
		}
		loss := outer.root.loss // set: h.parent is derived from the root's context
		if loss.Err() != nil {
			cancel(context.Cause(loss))
			return
		}
		h.unfollow = append(h.unfollow, context.AfterFunc(loss, func() { cancel(context.Cause(loss)) }))
	}
}
