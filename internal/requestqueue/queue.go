// Package requestqueue provides the queue of waiting requests for locks and semaphores.
//
// The queue is a tree, so that only operations on all requests visit all requests: a leaf has up to leafWidth requests,
// and an inner node up to fanOut children. Each node has the number of requests below it, the numbers of requests that
// try once and that ask for a token, and the earliest deadline. A short queue is a single leaf.
//
// A queue is a value. The requests of an older copy never change; new requests are only appended beyond its end. So an
// event may be applied to a copy, which then replaces the original.
package requestqueue

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Key contains the properties of a request that a queue uses.
type Key struct {
	// ID is unique. IDs increase along the queue.
	ID uint64
	// Owner is the owner of the request; 0 if it has none.
	Owner uint64
	// Deadline ends the wait; 0 is no limit.
	Deadline time.Duration
	// Try: the request tries once and does not wait.
	Try bool
	// Fenced: the request asks for a fencing token.
	Fenced bool
	// rank is the owner for entries of the index of owners, and 0 for requests.
	rank uint64
}

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.rank, other.rank), cmp.Compare(k.ID, other.ID))
}

func (k Key) expired(now time.Duration) bool { return k.Deadline != 0 && now >= k.Deadline }

// Waiter is a request. Its key never changes.
type Waiter interface{ Waiting() Key }

// Queue holds requests in the order of their IDs.
type Queue[W Waiter] struct {
	root node[W]
	// owners is an index of the requests by owner. It is made when RemoveOwner is first called on a long queue.
	owners *node[owned]
	// revision counts the arrivals, and the departures of requests that were not served.
	revision uint64
}

// owned is an entry of the index of owners.
type owned struct{ owner, id uint64 }

func (o owned) Waiting() Key { return Key{rank: o.owner, ID: o.id} }

// Len returns the number of requests.
func (q *Queue[W]) Len() int { return q.root.n }

// Head returns the first request. There must be one.
func (q *Queue[W]) Head() W { return q.root.first() }

// LastID returns the ID of the last request; 0 if there is none.
func (q *Queue[W]) LastID() uint64 {
	if q.Len() == 0 {
		return 0
	}
	return q.root.last().Waiting().ID
}

// NextDeadline returns a time at or before the earliest deadline in the queue; 0 if there is none.
func (q *Queue[W]) NextDeadline() time.Duration { return q.root.due }

// Fenced returns the number of requests that ask for a fencing token.
func (q *Queue[W]) Fenced() int { return q.root.fenced }

// Revision returns a number that grows when a request arrives, or leaves other than by Pop and Take.
func (q *Queue[W]) Revision() uint64 { return q.revision }

// All yields the requests in their order.
func (q *Queue[W]) All() iter.Seq[W] {
	return func(yield func(W) bool) { q.root.each(yield) }
}

// Front returns the first n requests, or all if there are fewer.
func (q *Queue[W]) Front(n int) []W {
	n = min(n, q.Len())
	if q.root.kids == nil {
		return q.root.items[:n:n]
	}
	front := make([]W, 0, n)
	q.root.each(func(w W) bool {
		front = append(front, w)
		return len(front) < n
	})
	return front
}

// Find returns the request with that id.
func (q *Queue[W]) Find(id uint64) (w W, found bool) { return q.root.find(Key{ID: id}) }

// Search returns the first request for which reached is true. reached must also be true for all later requests.
func (q *Queue[W]) Search(reached func(W) bool) (w W, found bool) { return q.root.search(reached) }

// FirstWaiting returns the first request that does not try once.
func (q *Queue[W]) FirstWaiting() (w W, found bool) { return q.root.firstWaiting() }

// Push adds a request in the order of its ID, which is usually the end.
func (q *Queue[W]) Push(w W) {
	q.revision++
	k := w.Waiting()
	if !q.root.append(w, k) {
		q.root = *root(q.root.with(w, k))
	}
	if q.owners != nil && k.Owner != 0 {
		entry := owned{k.Owner, k.ID}
		q.owners = root(q.owners.with(entry, entry.Waiting()))
	}
}

// Pop removes and returns the first request, which is served. There must be one.
func (q *Queue[W]) Pop() W {
	w := q.Head()
	if k := w.Waiting(); q.root.kids == nil { // without allocating another leaf
		q.root.shift(k)
	} else {
		q.remove(w, k.ID)
	}
	return w
}

// Take removes and returns the request with that id, which is served.
func (q *Queue[W]) Take(id uint64) (w W, found bool) {
	if q.Len() > 0 && q.Head().Waiting().ID == id { // most often
		return q.Pop(), true
	}
	if w, found = q.root.find(Key{ID: id}); found {
		q.remove(w, id)
	}
	return w, found
}

func (q *Queue[W]) remove(w W, id uint64) {
	q.replace(q.root.without(Key{ID: id}))
	q.forget(w)
}

// Remove removes and returns the requests for which leave is true. It visits all requests.
func (q *Queue[W]) Remove(leave func(W) bool) []W {
	return q.filter(func(*node[W]) bool { return false }, leave)
}

// RemoveExpired removes and returns requests whose deadline has come, at most limit.
func (q *Queue[W]) RemoveExpired(now time.Duration, limit int) (left []W) {
	skip := func(n *node[W]) bool { return n.due == 0 || now < n.due || limit == 0 }
	return q.filter(skip, func(w W) bool {
		if limit == 0 || !w.Waiting().expired(now) {
			return false
		}
		limit--
		return true
	})
}

// RemoveTries removes and returns the requests that try once and for which leave is true.
func (q *Queue[W]) RemoveTries(leave func(W) bool) []W {
	skip := func(n *node[W]) bool { return n.tries == 0 }
	return q.filter(skip, func(w W) bool { return w.Waiting().Try && leave(w) })
}

// Withdraw removes and returns the request with that id or, if id is 0, the requests of the owner.
func (q *Queue[W]) Withdraw(id, owner uint64) []W {
	if id == 0 {
		return q.RemoveOwner(owner)
	}
	if w, found := q.Take(id); found {
		q.revision++
		return []W{w}
	}
	return nil
}

// RemoveOwner removes and returns the requests of an owner; there are none if owner is 0.
func (q *Queue[W]) RemoveOwner(owner uint64) (left []W) {
	if owner == 0 {
		return nil
	}
	if q.root.kids == nil {
		return q.Remove(func(w W) bool { return w.Waiting().Owner == owner })
	}
	if q.owners == nil {
		q.index()
	}
	var ids []uint64
	q.owners.from(owned{owner: owner}.Waiting(), func(o owned) bool {
		if o.owner == owner {
			ids = append(ids, o.id)
		}
		return o.owner == owner
	})
	for _, id := range ids {
		w, _ := q.Take(id)
		q.revision++
		left = append(left, w)
	}
	return left
}

// Clip makes later appends allocate, so that copies of the queue can grow independently.
func (q *Queue[W]) Clip() { q.root.items = slices.Clip(q.root.items) }

func (q *Queue[W]) filter(skip func(*node[W]) bool, leave func(W) bool) (left []W) {
	if q.Len() == 0 || skip(&q.root) {
		return nil
	}
	q.replace(q.root.filter(skip, leave, &left))
	for _, w := range left {
		q.revision++
		q.forget(w)
	}
	return left
}

// replace makes a node the root; nil makes the queue empty.
func (q *Queue[W]) replace(by *node[W]) {
	if q.root = *root(by, nil); q.root.kids == nil {
		q.owners = nil
	}
}

// forget removes a removed request from the index of owners.
func (q *Queue[W]) forget(w W) {
	if k := w.Waiting(); q.owners != nil && k.Owner != 0 {
		q.owners = root(q.owners.without(Key{rank: k.Owner, ID: k.ID}), nil)
	}
}

// index makes the index of owners.
func (q *Queue[W]) index() {
	var all []owned
	for w := range q.All() {
		if k := w.Waiting(); k.Owner != 0 {
			all = append(all, owned{k.Owner, k.ID})
		}
	}
	slices.SortFunc(all, func(a, b owned) int { return a.Waiting().compare(b.Waiting()) })
	q.owners = build(all)
}
