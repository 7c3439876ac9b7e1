package lock

import (
	"iter"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// counts are the hold counts of each mode.
type counts struct{ exclusive, shared int }

// unknown is the value of the counts in Redis after a command whose outcome is not known.
var unknown = counts{-1, -1}

// once is a hold count of one in that mode.
func once(m machine.Mode) counts { return counts{}.plus(m, 1) }

func (c counts) in(m machine.Mode) int {
	if m == machine.Shared {
		return c.shared
	}
	return c.exclusive
}

func (c counts) plus(m machine.Mode, n int) counts {
	if m == machine.Shared {
		c.shared += n
	} else {
		c.exclusive += n
	}
	return c
}

func (c counts) total() int { return c.exclusive + c.shared }

// hold is one holder's use of the lease, or its share in it.
type hold struct {
	id    uint64
	owner machine.Owner
	ref   any
	counts
	// leaseEnd is the end of its fixed lease, which no renewal changes; 0 for none.
	leaseEnd machine.Instant
	// maxEnd is the end of its max hold; 0 for none.
	maxEnd machine.Instant
	// keepUntil is the end of its minimum time; 0 for none.
	keepUntil machine.Instant
	// keepAgainUntil is the end of the minimum time of its re-entries alone; 0 for none.
	keepAgainUntil machine.Instant
	// ownerDied says that its owner has died, and its release is on its way.
	ownerDied bool
	// unwatched says that the death of an owner does not end the hold.
	unwatched bool

	tokens []int64
}

// is reports whether the hold has that id.
func (h *hold) is(id uint64) bool { return h.id == id }

// fixed reports whether the hold has a fixed lease.
func (h *hold) fixed() bool { return h.leaseEnd != 0 }

// end returns the hold's own end; 0 if it lasts as long as the lease.
func (h *hold) end() machine.Instant {
	if h.leaseEnd == 0 || h.maxEnd == 0 {
		return max(h.leaseEnd, h.maxEnd)
	}
	return min(h.leaseEnd, h.maxEnd)
}

// wouldUpgrade reports whether a re-entry in that mode would make a reader a writer.
func (h *hold) wouldUpgrade(m machine.Mode) bool { return m == machine.Exclusive && h.exclusive == 0 }

// holds are the holds on the lease: one that is exclusive, or any number that share it. It is a value: a copy never
// sees a change, since others is replaced, or appended to beyond the copy's end.
type holds struct {
	// first has a field of its own, since there is rarely another hold.
	first  hold
	others []*hold
	// othersEnd is not later than the first end of one of others; 0 if there is none. It may be too early, after an
	// update or the end of a hold; the Tick then finds it anew.
	othersEnd machine.Earliest
}

func (h *holds) len() int {
	if h.first.id == 0 {
		return 0
	}
	return 1 + len(h.others)
}

// nextEnd returns a time not later than the first end of a hold. It looks at one hold only, since every event asks for it,
// and there may be thousands of readers.
func (h *holds) nextEnd() machine.Earliest {
	next := h.othersEnd
	next.Add(h.first.end())
	return next
}

// findOthersEnd finds othersEnd anew.
func (h *holds) findOthersEnd() {
	h.othersEnd = 0
	for _, each := range h.others {
		h.othersEnd.Add(each.end())
	}
}

func (h *holds) all() iter.Seq[hold] {
	return func(yield func(hold) bool) {
		if h.first.id == 0 || !yield(h.first) {
			return
		}
		for _, each := range h.others {
			if !yield(*each) {
				return
			}
		}
	}
}

// byID finds a hold; its id is 0 if there is none.
func (h *holds) byID(id uint64) hold {
	return h.find(func(one *hold) bool { return one.id == id })
}

func (h *holds) byOwner(owner machine.Owner) hold {
	if owner == 0 {
		return hold{}
	}
	return h.find(func(one *hold) bool { return one.owner == owner })
}

func (h *holds) find(match func(*hold) bool) hold {
	if match(&h.first) {
		return h.first
	}
	for _, each := range h.others {
		if match(each) {
			return *each
		}
	}
	return hold{}
}

func (h *holds) add(one hold) {
	if h.first.id == 0 {
		h.first = one
		return
	}
	another := one
	h.others = append(h.others, &another)
	h.othersEnd.Add(one.end())
}

// update replaces the hold with that id.
func (h *holds) update(one hold) {
	if h.first.id == one.id {
		h.first = one
		return
	}
	h.others = slices.Clone(h.others)
	for i, each := range h.others {
		if each.id == one.id {
			h.others[i] = &one
			h.othersEnd.Add(one.end())
		}
	}
}

func (h *holds) remove(id uint64) {
	switch {
	case h.first.id != id:
		h.others = slices.DeleteFunc(slices.Clone(h.others), func(each *hold) bool { return each.id == id })
	case len(h.others) == 0:
		*h = holds{}
	default:
		h.first, h.others = *h.others[0], h.others[1:]
	}
}

// wanted returns the counts that Redis should have. Holds that share the lease count as one there, and their re-entries
// are added.
func (h *holds) wanted() counts {
	var c counts
	sharers := 0
	for each := range h.all() {
		c.exclusive += each.exclusive
		c.shared += each.shared
		if each.shared > 0 {
			sharers++
		}
	}
	if sharers > 1 {
		c.shared -= sharers - 1
	}
	return c
}
