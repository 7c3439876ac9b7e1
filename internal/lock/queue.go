package lock

import (
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/requestqueue"
)

// waiter is a request that waits, or is about to. Its term is that of its entry in a fair lock's queue, if it has one.
type waiter struct {
	machine.Request
	term uint64
}

// queue holds the requests that wait, in order of arrival.
type queue struct {
	waiters requestqueue.Queue[*waiter]
	// revision counts the arrivals, and the departures of requests that were not granted.
	revision uint64
}

func (q *queue) len() int { return q.waiters.Len() }

func (q *queue) head() *waiter { return q.waiters.Head() }

func (q *queue) nextDeadline() machine.Instant { return q.waiters.NextDeadline() }

// push puts a request where its time of arrival belongs, also one that was taken out.
func (q *queue) push(req *waiter) {
	q.revision++
	q.waiters.Push(req)
}

func (q *queue) pop() *waiter { return q.waiters.Pop() }

// withdraw takes out the request with that id or, if id is 0, those of the owner.
func (q *queue) withdraw(id uint64, owner machine.Owner) []*waiter {
	return q.countDepartures(q.waiters.Withdraw(id, uint64(owner)))
}

// take takes out one request; nil if it is not there.
func (q *queue) take(id uint64) *waiter {
	req, _ := q.waiters.Take(id)
	return req
}

// byTerm finds the request that waits as that term; nil if there is none. Terms grow along the queue.
func (q *queue) byTerm(term uint64) *waiter {
	req, found := q.waiters.Search(func(req *waiter) bool { return req.term >= term })
	if !found || req.term != term {
		return nil
	}
	return req
}

// remove takes out all requests for which leave is true.
func (q *queue) remove(leave func(*waiter) bool) []*waiter {
	return q.countDepartures(q.waiters.Remove(leave))
}

// takeTries takes out the requests that try once.
func (q *queue) takeTries() []*waiter {
	return q.countDepartures(q.waiters.RemoveTries(func(*waiter) bool { return true }))
}

// takeExpired takes out up to machine.MaxExpired requests whose wait is over. If there are more, the next Tick is
// due at once.
func (q *queue) takeExpired(now machine.Instant) []*waiter {
	return q.countDepartures(q.waiters.RemoveExpired(now, machine.MaxExpired))
}

// countDepartures increments the revision if any request has left.
func (q *queue) countDepartures(all []*waiter) []*waiter {
	if all != nil {
		q.revision++
	}
	return all
}
