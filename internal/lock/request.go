package lock

import (
	"cmp"
	"slices"
	"time"
)

// Owner identifies the owner of a request, for re-entry and for its death. Every actor and every
// call tree has a number. 0 is an owner that never re-enters.
type Owner uint64

// Request is a request for the lock, and the hold once it is granted.
type Request struct {
	// ID grows with every request to the lock.
	ID    uint64
	Owner Owner
	Mode  Mode
	// NoReentry refuses a re-entry instead of granting it.
	NoReentry bool
	// Fenced asks for a fencing token from each of the lock's counters.
	Fenced bool
	// Lease is the fixed lease; 0 asks for the watchdog.
	Lease time.Duration
	// MaxHold bounds a hold under the watchdog; 0 is no limit.
	MaxHold time.Duration
	// Try tries once and does not wait.
	Try bool
	// Deadline ends the wait; 0 is no limit.
	Deadline Instant
	// Ref identifies the request to the lock actor.
	Ref any
	// term is the term of the waiter's queue entry, if it has one.
	term uint64
}

func (r *Request) tries() bool { return r.Try }

// queue holds the requests that wait, in order of arrival. It is a value: what an
// older copy of it sees is never changed, only appended to beyond its end.
type queue struct {
	requests []*Request
	// nextDeadline is not later than any deadline in the queue; 0 if there is none.
	nextDeadline Instant
	// revision counts the arrivals, and the departures of those who gave up.
	revision uint64
}

func (q *queue) len() int { return len(q.requests) }

func (q *queue) head() *Request { return q.requests[0] }

func (q *queue) push(req *Request) {
	q.revision++
	q.requests = append(q.requests, req)
	if req.Deadline > 0 && (q.nextDeadline == 0 || req.Deadline < q.nextDeadline) {
		q.nextDeadline = req.Deadline
	}
}

// insert puts a request back where its time of arrival belongs.
func (q *queue) insert(req *Request) {
	i, _ := slices.BinarySearchFunc(q.requests, req.ID, compareID)
	rest := q.requests[i:]
	q.requests = slices.Clip(q.requests[:i])
	q.push(req)
	q.requests = append(q.requests, rest...)
}

func compareID(req *Request, id uint64) int { return cmp.Compare(req.ID, id) }

func (q *queue) pop() *Request {
	req := q.requests[0]
	if q.requests = q.requests[1:]; len(q.requests) == 0 {
		*q = queue{revision: q.revision}
	}
	return req
}

// withdraw takes out one request that gives up; nil if it is not there.
func (q *queue) withdraw(id uint64) *Request {
	req := q.take(id)
	if req != nil {
		q.revision++
	}
	return req
}

// take takes out one request; nil if it is not there. IDs grow along the queue.
func (q *queue) take(id uint64) *Request {
	i, found := slices.BinarySearchFunc(q.requests, id, compareID)
	if !found {
		return nil
	}
	if i == 0 {
		return q.pop()
	}
	req := q.requests[i]
	q.requests = slices.Concat(q.requests[:i], q.requests[i+1:])
	return req
}

// byTerm finds the request that waits as that term; nil if there is none.
func (q *queue) byTerm(term uint64) *Request {
	for _, req := range q.requests {
		if req.term == term {
			return req
		}
	}
	return nil
}

// remove takes out all requests for which leave is true.
func (q *queue) remove(leave func(*Request) bool) []*Request {
	var left, stay []*Request
	var next Instant
	for _, req := range q.requests {
		if leave(req) {
			left = append(left, req)
			continue
		}
		stay = append(stay, req)
		if req.Deadline > 0 && (next == 0 || req.Deadline < next) {
			next = req.Deadline
		}
	}
	if left != nil {
		q.revision++
	}
	q.requests, q.nextDeadline = stay, next
	return left
}
