package machine

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/requestqueue"
)

// Mode is how a lock is held.
type Mode uint8

// The enumeration Mode in package messages has the same numbers.
const (
	// Exclusive: by one holder.
	Exclusive Mode = iota
	// Shared: together with other shared holds.
	Shared
)

// Other returns the other mode.
func (m Mode) Other() Mode { return Shared - m }

// Owners are the owners that a forced release is meant for. The zero value means the owners that hold the lock when
// Redis is asked, and the holders of this process.
type Owners struct {
	// Fields are their fields in Redis.
	Fields []string
	// Term is the term of this System's own owner among them, or 0.
	Term uint64
}

// Owner identifies the owner of a request, for re-entry and for the owner's death. Every actor and every
// call tree has a number. 0 is an owner that never re-enters.
type Owner uint64

// Request is a request for the lock, and the hold once it is granted.
type Request struct {
	// ID grows with every request to the lock.
	ID    uint64
	Owner Owner
	Mode  Mode
	// Unwatched says that no death of an owner ends the hold, so that the watchdog alone must not keep it.
	Unwatched bool
	// NoReentry refuses a re-entry instead of granting it.
	NoReentry bool
	// Fenced asks for a fencing token from each of the lock's counters.
	Fenced bool
	// Lease is the fixed lease; 0 asks for the watchdog.
	Lease time.Duration
	// MaxHold bounds a hold under the watchdog; 0 is no limit.
	MaxHold time.Duration
	// AtLeast is the minimum time of a hold: its key stays for so long; 0 for none.
	AtLeast time.Duration
	// Try tries once and does not wait.
	Try bool
	// Deadline ends the wait; 0 is no limit.
	Deadline Instant
	// Ref identifies the request to the lock actor.
	Ref any
}

// Release is a request to release the owner's hold or, if the owner is 0 or has no hold, the hold with that id.
type Release struct {
	ID    uint64
	Owner Owner
	Mode  Mode
	// Shown: others know the ids of the hold's permits, which are not handed off.
	Shown bool
	// DropsMinimum: no requester has got the first grant of the hold, so its minimum time ends.
	DropsMinimum bool
	Ref          any
}

// Waiting returns what the queue sorts and finds a request by.
func (r *Request) Waiting() requestqueue.Key {
	return requestqueue.Key{ID: r.ID, Owner: uint64(r.Owner), Deadline: r.Deadline, Try: r.Try, Fenced: r.Fenced}
}
