package lockkeeper

import (
	"context"
	"maps"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/actors"
)

// A call tree is a hold, the root, and all that have re-entered it: they are one hold to
// the lock actor, which tells the root what becomes of it. The tree holds the lock until
// the last of them is released, in whichever order, and its owner is what a re-entry names.
//
// The root has what belongs to the tree, and its mutex guards it for all of them.
type callTree struct {
	// reentries are those that are not over, or whose context is not.
	reentries map[*Hold]struct{}
	lost      error
}

// treeKey finds, in a context, the innermost hold of a System that the context belongs to.
type treeKey struct{ runtime *actors.Runtime }

// outerOf is the innermost hold, of whichever lock, that a context belongs to; nil if
// there is none.
func (l *Lock) outerOf(ctx context.Context) *Hold {
	hold, _ := ctx.Value(treeKey{l.runtime}).(*Hold)
	return hold
}

// reentered is the tree that an Acquire of the lock re-enters, by its root; nil if it is
// another holder. The hold around it may be released: what counts is whether anything of
// its tree still holds the lock, since whoever waits for that would wait for itself.
func (l *Lock) reentered(outer *Hold) *Hold {
	for ; outer != nil; outer = outer.outer {
		if outer.lock.same(l) && slices.ContainsFunc(outer.root.tree(), (*Hold).active) {
			return outer.root
		}
	}
	return nil
}

// granted takes note of what an Acquire got: a hold, or the re-entry of one.
func (h *Hold) granted(out actors.Outcome) {
	h.id, h.count, h.owner, h.until, h.tokens = out.HoldID, out.Count, out.Owner, out.Until, out.Tokens
	bind(out)
	if root, ok := out.Holder.(*Hold); ok && root != h {
		h.root = root
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

// tree are the root and its re-entries.
func (h *Hold) tree() []*Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(slices.Collect(maps.Keys(h.reentries)), h)
}

// end records why the hold is over, once, and ends the contexts that were kept for it.
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

// lose ends all of the root's tree. A hold of it that was released before has been
// released, but if its context went on for the sake of others, it ends with the loss.
func (h *Hold) lose(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = why
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

// settle ends the context of a hold that is over, unless one that was acquired with it
// goes on: a writer that has become a reader, for instance.
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

// isWithin reports whether the hold lasts and was acquired with the context of another,
// or of one that was.
func (h *Hold) isWithin(other *Hold) bool {
	if h.ended != nil {
		return false
	}
	for h != nil && h != other {
		h = h.outer
	}
	return h != nil
}

// cancelWith ends the hold's context, or what will be its context.
func (h *Hold) cancelWith(cause error) {
	if h.cause = cause; h.cancel != nil {
		h.cancel(cause)
	}
}
