package semaphore

import (
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/requestqueue"
)

// Request asks for permits.
type Request struct {
	// ID grows with every request to the pool.
	ID uint64
	// Owner may die while it waits; 0 for a goroutine.
	Owner machine.Owner
	// N is how many permits it wants, from 1.
	N int
	// Try tries once and does not wait.
	Try bool
	// Deadline ends the wait; 0 is no limit.
	Deadline Instant
	// Ref identifies the request to the actor.
	Ref any
}

// Waiting is what the queue knows of a request.
func (r *Request) Waiting() requestqueue.Key {
	return requestqueue.Key{ID: r.ID, Owner: uint64(r.Owner), Deadline: r.Deadline, Try: r.Try}
}
