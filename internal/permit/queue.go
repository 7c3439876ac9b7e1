package permit

import "github.com/lockkeeper-go/lockkeeper/internal/lock"

// Request asks for permits.
type Request struct {
	// ID grows with every request to the pool.
	ID uint64
	// Owner is who may die while it waits; 0 for a goroutine.
	Owner lock.Owner
	// N is how many permits it wants, from 1.
	N int
	// Try tries once and does not wait.
	Try bool
	// Deadline ends the wait; 0 is no limit.
	Deadline Instant
	// Ref identifies the request to the actor.
	Ref any
}

// queue holds the requests that wait, in order of arrival. It is a value: what an older copy of it
// sees is never changed, only appended to beyond its end.
type queue struct {
	requests []Request
	// nextDeadline is not later than any deadline in the queue; 0 if there is none.
	nextDeadline Instant
}

func (q *queue) len() int { return len(q.requests) }

func (q *queue) head() *Request { return &q.requests[0] }

func (q *queue) push(req Request) {
	q.requests = append(q.requests, req)
	if req.Deadline > 0 && (q.nextDeadline == 0 || req.Deadline < q.nextDeadline) {
		q.nextDeadline = req.Deadline
	}
}

func (q *queue) pop() Request {
	req := q.requests[0]
	if q.requests = q.requests[1:]; len(q.requests) == 0 {
		*q = queue{}
	}
	return req
}

// remove takes out all requests for which leave is true.
func (q *queue) remove(leave func(*Request) bool) (left []Request) {
	rest := queue{}
	for i, req := range q.requests {
		if leave(&q.requests[i]) {
			left = append(left, req)
		} else {
			rest.push(req)
		}
	}
	*q = rest
	return left
}
