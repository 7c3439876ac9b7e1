package requestqueue

import (
	"slices"
	"sort"
	"time"
)

const (
	// leafWidth is the largest number of requests in a leaf.
	leafWidth = 128
	// fanOut is the largest number of children of an inner node.
	fanOut = 16
)

// node is a leaf, with items, or an inner node, with kids. It has at least one item or kid, unless it is the root of an
// empty queue.
type node[W Waiter] struct {
	items []W
	kids  []*node[W]
	// n is the number of requests below the node.
	n int
	// tries is the number of requests below the node that try once.
	tries int
	// fenced is the number of requests below the node that ask for a token.
	fenced int
	// due is at or before the earliest deadline below the node; 0 if there is none.
	due time.Duration
}

// leaf makes a leaf; nil without items.
func leaf[W Waiter](items []W) *node[W] {
	if len(items) == 0 {
		return nil
	}
	x := &node[W]{items: items}
	for _, w := range items {
		x.count(w.Waiting())
	}
	return x
}

// inner makes an inner node of kids of the same height; nil without kids.
func inner[W Waiter](kids []*node[W]) *node[W] {
	if len(kids) == 0 {
		return nil
	}
	x := &node[W]{kids: kids}
	for _, kid := range kids {
		x.n, x.tries, x.fenced, x.due = x.n+kid.n, x.tries+kid.tries, x.fenced+kid.fenced, sooner(x.due, kid.due)
	}
	return x
}

// root makes the root of a tree of one node, of the two halves of a divided node, or of no node.
func root[W Waiter](left, right *node[W]) *node[W] {
	switch {
	case left == nil:
		return new(node[W])
	case right != nil:
		return inner([]*node[W]{left, right})
	}
	for len(left.kids) == 1 {
		left = left.kids[0]
	}
	return left
}

// build makes a tree of sorted requests.
func build[W Waiter](items []W) *node[W] {
	var level []*node[W]
	for some := range slices.Chunk(items, leafWidth/2) {
		level = append(level, leaf(slices.Clip(some)))
	}
	for len(level) > 1 {
		var above []*node[W]
		for some := range slices.Chunk(level, fanOut/2) {
			above = append(above, inner(slices.Clip(some)))
		}
		level = above
	}
	if len(level) == 0 {
		return new(node[W])
	}
	return level[0]
}

// count adds one request to the numbers of the node.
func (x *node[W]) count(k Key) {
	x.n++
	if k.Try {
		x.tries++
	}
	if k.Fenced {
		x.fenced++
	}
	x.due = sooner(x.due, k.Deadline)
}

// sooner returns the earlier of two times; 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func (x *node[W]) first() W {
	for x.kids != nil {
		x = x.kids[0]
	}
	return x.items[0]
}

func (x *node[W]) last() W {
	for x.kids != nil {
		x = x.kids[len(x.kids)-1]
	}
	return x.items[len(x.items)-1]
}

// index returns the index of the first item that is not before a key, or of the kid with that item.
func (x *node[W]) index(k Key) int {
	if x.kids == nil {
		return sort.Search(len(x.items), func(i int) bool { return x.items[i].Waiting().compare(k) >= 0 })
	}
	return sort.Search(len(x.kids), func(i int) bool { return x.kids[i].last().Waiting().compare(k) >= 0 })
}

func (x *node[W]) find(k Key) (w W, found bool) {
	for x.kids != nil {
		i := x.index(k)
		if i == len(x.kids) {
			return w, false
		}
		x = x.kids[i]
	}
	i := x.index(k)
	if i == len(x.items) || x.items[i].Waiting().compare(k) != 0 {
		return w, false
	}
	return x.items[i], true
}

func (x *node[W]) search(reached func(W) bool) (w W, found bool) {
	for x.kids != nil {
		i := sort.Search(len(x.kids), func(i int) bool { return reached(x.kids[i].last()) })
		if i == len(x.kids) {
			return w, false
		}
		x = x.kids[i]
	}
	i := sort.Search(len(x.items), func(i int) bool { return reached(x.items[i]) })
	if i == len(x.items) {
		return w, false
	}
	return x.items[i], true
}

func (x *node[W]) firstWaiting() (w W, found bool) {
	for x.kids != nil {
		i := slices.IndexFunc(x.kids, func(kid *node[W]) bool { return kid.tries < kid.n })
		if i < 0 {
			return w, false
		}
		x = x.kids[i]
	}
	i := slices.IndexFunc(x.items, func(w W) bool { return !w.Waiting().Try })
	if i < 0 {
		return w, false
	}
	return x.items[i], true
}

// each yields the requests below the node, and reports whether to continue.
func (x *node[W]) each(yield func(W) bool) bool {
	for _, w := range x.items {
		if !yield(w) {
			return false
		}
	}
	for _, kid := range x.kids {
		if !kid.each(yield) {
			return false
		}
	}
	return true
}

// from yields the requests from a key on, and reports whether to continue.
func (x *node[W]) from(k Key, yield func(W) bool) bool {
	i := x.index(k)
	for _, w := range x.items[min(i, len(x.items)):] {
		if !yield(w) {
			return false
		}
	}
	for _, kid := range x.kids[min(i, len(x.kids)):] {
		if !kid.from(k, yield) {
			return false
		}
	}
	return true
}

// append adds a request at the end, if x is a leaf with room, and reports whether it did. Only append and shift
// change a node.
func (x *node[W]) append(w W, k Key) bool {
	if x.kids != nil || x.n >= leafWidth || x.n > 0 && x.last().Waiting().compare(k) > 0 {
		return false
	}
	x.items = append(x.items, w)
	x.count(k)
	return true
}

// shift removes the first request, whose key is k, from a root that is a leaf.
func (x *node[W]) shift(k Key) {
	if x.n == 1 {
		*x = node[W]{}
		return
	}
	x.items = x.items[1:]
	x.n--
	if k.Try {
		x.tries--
	}
	if k.Fenced {
		x.fenced--
	}
}

// with returns the node with one more request, as two nodes if it is too wide.
func (x *node[W]) with(w W, k Key) (left, right *node[W]) {
	i := x.index(k)
	if x.kids == nil {
		items := slices.Insert(slices.Clip(x.items), i, w)
		if len(items) <= leafWidth {
			return leaf(items), nil
		}
		cut := division(i, len(items))
		return leaf(items[:cut:cut]), leaf(items[cut:])
	}
	i = min(i, len(x.kids)-1)
	a, b := x.kids[i].with(w, k)
	kids := slices.Clone(x.kids)
	if kids[i] = a; b != nil {
		kids = slices.Insert(kids, i+1, b)
	}
	if len(kids) <= fanOut {
		return inner(kids), nil
	}
	cut := division(i+1, len(kids))
	return inner(kids[:cut:cut]), inner(kids[cut:])
}

// division returns where to divide n elements; the i-th element is new. A queue grows at its end, so a new last element
// gets its own node, and the other elements stay in a full node.
func division(i, n int) int {
	if i == n-1 {
		return i
	}
	return n / 2
}

// without returns the node without the request with that key, which must exist; nil if no request is left.
func (x *node[W]) without(k Key) *node[W] {
	i := x.index(k)
	if x.kids == nil {
		return leaf(removed(x.items, i))
	}
	kid := x.kids[i].without(k)
	if kid == nil {
		return inner(removed(x.kids, i))
	}
	kids := slices.Clone(x.kids)
	kids[i] = kid
	return inner(kids)
}

func removed[E any](all []E, i int) []E {
	if i == 0 {
		return all[1:]
	}
	return slices.Concat(all[:i], all[i+1:])
}

// filter returns the node without the requests for which leave is true, and appends these requests to left. It does not
// visit nodes for which skip is true.
func (x *node[W]) filter(skip func(*node[W]) bool, leave func(W) bool, left *[]W) *node[W] {
	if skip(x) {
		return x
	}
	if x.kids == nil {
		var stay []W
		for _, w := range x.items {
			if leave(w) {
				*left = append(*left, w)
			} else {
				stay = append(stay, w)
			}
		}
		return leaf(stay)
	}
	var kids []*node[W]
	for _, kid := range x.kids {
		if kid = kid.filter(skip, leave, left); kid != nil {
			kids = append(kids, kid)
		}
	}
	return inner(kids)
}
