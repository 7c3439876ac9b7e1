package core

import (
	"cmp"
	"slices"
	"time"
)

// Owner identifies who asks, for re-entry and for death: the shell gives a
// number to each actor or call tree. 0 is nobody in particular, who never re-enters.
type Owner uint64

// Ticket is a request for the lock, and the hold once it is granted.
type Ticket struct {
	// ID grows with every request to the lock.
	ID    uint64
	Owner Owner
	Mode  Mode
	// Once refuses a re-entry instead of granting it.
	Once bool
	// Fenced asks for a fencing token from each of the lock's counters.
	Fenced bool
	// Lease is the fixed lease asked for; 0 asks for the watchdog.
	Lease time.Duration
	// MaxHold bounds a hold under the watchdog; 0 does not.
	MaxHold time.Duration
	// Try asks once and does not wait.
	Try bool
	// Deadline ends the wait; 0 waits without limit.
	Deadline Instant
	// Ref is whom the shell answers.
	Ref any
	// term is what a waiter stands in Redis's queue as, if there is one.
	term uint64
}

// queue holds the tickets that wait, in order of arrival. It is a value: what an
// older copy of it sees is never changed, only appended to beyond its end.
type queue struct {
	tickets []*Ticket
	// nextDeadline is not later than any deadline in the queue; 0 if there is none.
	nextDeadline Instant
	// revision counts the arrivals, and the departures of those who gave up.
	revision uint64
}

func (q *queue) len() int { return len(q.tickets) }

func (q *queue) head() *Ticket { return q.tickets[0] }

func (q *queue) push(t *Ticket) {
	q.revision++
	q.tickets = append(q.tickets, t)
	if t.Deadline > 0 && (q.nextDeadline == 0 || t.Deadline < q.nextDeadline) {
		q.nextDeadline = t.Deadline
	}
}

// insert puts a ticket back where its time of arrival belongs.
func (q *queue) insert(t *Ticket) {
	i, _ := slices.BinarySearchFunc(q.tickets, t.ID, compareID)
	rest := q.tickets[i:]
	q.tickets = slices.Clip(q.tickets[:i])
	q.push(t)
	q.tickets = append(q.tickets, rest...)
}

func compareID(t *Ticket, id uint64) int { return cmp.Compare(t.ID, id) }

func (q *queue) pop() *Ticket {
	t := q.tickets[0]
	if q.tickets = q.tickets[1:]; len(q.tickets) == 0 {
		*q = queue{revision: q.revision}
	}
	return t
}

// withdraw takes out one ticket that gives up; nil if it is not there.
func (q *queue) withdraw(id uint64) *Ticket {
	t := q.take(id)
	if t != nil {
		q.revision++
	}
	return t
}

// take takes out one ticket; nil if it is not there. IDs grow along the queue.
func (q *queue) take(id uint64) *Ticket {
	i, found := slices.BinarySearchFunc(q.tickets, id, compareID)
	if !found {
		return nil
	}
	if i == 0 {
		return q.pop()
	}
	t := q.tickets[i]
	q.tickets = slices.Concat(q.tickets[:i], q.tickets[i+1:])
	return t
}

// byTerm finds the ticket that waits as that term; nil if there is none.
func (q *queue) byTerm(term uint64) *Ticket {
	for _, t := range q.tickets {
		if t.term == term {
			return t
		}
	}
	return nil
}

// remove takes out all tickets for which leave is true.
func (q *queue) remove(leave func(*Ticket) bool) []*Ticket {
	var left, stay []*Ticket
	var next Instant
	for _, t := range q.tickets {
		if leave(t) {
			left = append(left, t)
			continue
		}
		stay = append(stay, t)
		if t.Deadline > 0 && (next == 0 || t.Deadline < next) {
			next = t.Deadline
		}
	}
	if left != nil {
		q.revision++
	}
	q.tickets, q.nextDeadline = stay, next
	return left
}
