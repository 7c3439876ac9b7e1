package lockkeeper

import (
	"context"
	"maps"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A call tree is a hold, the root, and all holds that have re-entered it. To the lock actor
// they are one hold, and it notifies the root. The tree holds the lock until all of them are
// released, in any order. A re-entry names the tree's owner.
//
// The root has the state of the tree, and its mutex guards the state of all its holds.
type callTree struct {
	// reentries are the re-entries that are held, or whose context is not cancelled yet.
	reentries map[*Hold]struct{}
	lost      error
	// loss ends with the loss of the tree, and with nothing else. It is made with the root's
	// context, for the holds that are acquired beneath it; see follow.
	loss     context.Context
	tellLoss context.CancelCauseFunc
}

// holdKey is the key of a context's value for the innermost hold that it belongs to.
type holdKey struct{}

// HoldFrom returns the hold that a context belongs to, or nil if there is none. The Context of
// a hold belongs to it, the context that Do or Elect passes to its function, and any context
// derived from them. With several holds it is the innermost.
func HoldFrom(ctx context.Context) *Hold {
	if ctx == nil {
		return nil
	}
	hold := innermost(ctx)
	for hold != nil && hold.permit() != nil {
		hold = hold.outer
	}
	return hold
}

// innermost is HoldFrom, but for the holds of permits as well.
func innermost(ctx context.Context) *Hold {
	hold, _ := ctx.Value(holdKey{}).(*Hold)
	return hold
}

// reentered returns the root of the tree that an Acquire of the lock re-enters, or nil if the
// Acquire is a new holder. The outer hold may be released: what counts is whether any hold of its
// tree still holds the lock, since the caller would then wait for itself.
func (l *Lock) reentered(outer *Hold) *Hold {
	if l.kind == messages.Kind_KIND_EXPIRABLE_SEMAPHORE {
		return nil // everybody takes a permit of his own
	}
	for ; outer != nil; outer = outer.outer {
		if outer.lock.runtime == l.runtime && outer.lock.same(l) && slices.ContainsFunc(outer.root.tree(), (*Hold).active) {
			return outer.root
		}
	}
	return nil
}

// granted records the outcome of an Acquire: a hold, or a re-entry.
func (h *Hold) granted(out actors.Outcome) {
	h.id, h.count, h.owner, h.until, h.tokens = out.HoldID, out.Count, out.Owner, out.Until, out.Tokens
	bind(out)
	if root := holdOf(out.Holder); root != nil && root != h {
		h.root = root
		root.join(h)
	}
}

// bind records the end of the hold that an Acquire got or re-entered.
func bind(out actors.Outcome) {
	root := holdOf(out.Holder)
	for root != nil {
		is := root.bound.Load()
		if int64(out.Bound) <= is || root.bound.CompareAndSwap(is, int64(out.Bound)) {
			return
		}
	}
}

// join adds a re-entry to the root's tree, which may have been lost already.
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

// tree returns the root and its re-entries.
func (h *Hold) tree() []*Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(slices.Collect(maps.Keys(h.reentries)), h)
}

// end records why the hold is over, once, and cancels the contexts that lasted because of it.
func (h *Hold) end(why error) {
	root := h.root
	root.mu.Lock()
	defer root.mu.Unlock()
	if h.ended != nil {
		return
	}
	h.ended = why
	for one := range root.reentries {
		one.settle()
	}
	root.settle()
}

// lose ends all holds of the root's tree. A hold that was released before stays released, but
// if its context is not cancelled yet, the loss cancels it.
func (h *Hold) lose(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = why
	if h.tellLoss != nil {
		h.tellLoss(why)
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

// settle cancels the context of a hold that is over, unless a hold that was acquired with it is
// held: a writer that has become a reader, for instance.
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

// isWithin reports whether the hold is held and was acquired with the context of the other, or
// beneath it.
func (h *Hold) isWithin(other *Hold) bool {
	if h.ended != nil {
		return false
	}
	for h != nil && h != other {
		h = h.outer
	}
	return h != nil
}

// cancelWith cancels the hold's context; one that is made later is cancelled at once.
func (h *Hold) cancelWith(cause error) {
	h.cause = cause
	for _, stop := range h.unfollow {
		stop()
	}
	h.unfollow = nil
	if h.cancel != nil {
		h.cancel(cause)
	}
}

// follow cancels the context when a hold of another lock is lost that this one was acquired
// beneath, and at once if that is lost already. It ignores that hold's release: this lock is still held.
func (h *Hold) follow() {
	cancel := h.cancel
	for outer := h.outer; outer != nil; outer = outer.outer {
		if outer.root == h.root { // its loss is this one's
			continue
		}
		loss := outer.root.loss // parent is derived from the root's context, so it is made and does not change
		if loss.Err() != nil {
			cancel(context.Cause(loss))
			return
		}
		h.unfollow = append(h.unfollow, context.AfterFunc(loss, func() { cancel(context.Cause(loss)) }))
	}
}
