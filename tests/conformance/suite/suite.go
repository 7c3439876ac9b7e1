// Package suite is a suite of tests for locks: what anybody may expect of a
// distributed lock with leases, whatever kind it is and wherever it is kept.
//
//	func TestConformance(t *testing.T) { suite.Run(t, myAdapter{}) }
//
// An [Adapter] makes a lock known to the suite. What it cannot do it names in [Traits.Lacks]:
// the cases that need that are skipped, and say so. Its types embed the interface whose
// methods they lack.
//
// Every case opens clients of its own and uses a lock of its own, and the cases run
// beside each other. After each, all its clients are closed, and nothing of its lock
// may be left in the storage; after all of them, no goroutine in the process.
//
// No case asserts how fast something is: whatever is to happen may take up to [Limit],
// and only a suite that fails takes that long.
package suite

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Adapter makes a kind of lock known to the suite. Its methods are called from many
// goroutines.
type Adapter interface {
	Traits() Traits
	// Open starts a client: what a process of its own is to the lock. It is closed when
	// the test ends, if the suite has not closed it before.
	Open(t testing.TB) Client
	// Left lists whatever is stored for a lock of that name, without what is documented
	// to stay. It may change while something is still being cleaned up.
	Left(t testing.TB, lock string) []string
	// Delete deletes a lock from the storage, behind the clients' backs. See [Deletion].
	Delete(t testing.TB, lock string)
}

// Traits are what an adapter's lock promises.
type Traits struct {
	// TTL is how long a hold without a lease outlives its client, if that dies. The
	// suite sleeps for a few of them. More than a second of it keeps a loaded machine
	// from losing holds.
	TTL time.Duration
	// Lease is a fixed lease to try, at least 10 ms. Default: a third of TTL.
	Lease time.Duration
	// Ordered says that the lock is granted in the order of the requests over all
	// clients, instead of only among those of one client.
	Ordered bool
	Lacks   []Capability
}

// Capability is what an adapter may lack.
type Capability string

const (
	Reentry    Capability = "re-entry"                        // Hold.Reenter and Hold.Count
	Refusal    Capability = "re-entry that is refused"        // Request.Once
	Order      Capability = "order"                           // even among the requests of one client
	Tokens     Capability = "fencing tokens"                  // Hold.Tokens
	Death      Capability = "death of a holder"               // Request.Death
	Force      Capability = "forced release"                  // Client.ForceRelease
	Inspection Capability = "inspection"                      // Client.Inspect; without it the suite gives requests some time to come to wait
	Kill       Capability = "death of a client"               // Client.Kill
	Crash      Capability = "crash of what looks after locks" // Client.Crashes
	Deletion   Capability = "deletion"                        // Adapter.Delete
)

// Client is one process that uses the lock.
type Client interface {
	// Acquire waits for the lock of that name until ctx ends; then its error is ctx's.
	// Each call is on behalf of somebody else, so that it never re-enters a hold.
	Acquire(ctx context.Context, lock string, r Request) (Hold, error)
	// Close ends the client: waiters are refused with ErrClosed, holders are told
	// of their loss, and what is held is released. It may be called more than once.
	Close(ctx context.Context) error
	// ForceRelease frees a lock whoever holds it, and reports whether it was held.
	ForceRelease(ctx context.Context, lock string) (wasHeld bool, err error)
	// Inspect tells how things stand.
	Inspect(ctx context.Context, lock string) (Status, error)
	// Kill cuts the client off from the storage for good, without releasing anything.
	Kill()
	// Crashes are the ways in which what looks after a lock can crash, to be restarted: for
	// each a name, and what makes it happen. That returns when the crash has happened.
	Crashes(lock string) map[string]func(t testing.TB)
}

// Request is how a lock is to be acquired.
type Request struct {
	// Lease is a fixed lease, which is not renewed; 0: the hold lasts until its release.
	Lease time.Duration
	// Wait bounds the wait, besides the context; 0: nothing else does.
	Wait time.Duration
	// Try asks once, and does not wait.
	Try bool
	// Once refuses a re-entry with ErrReentry instead of granting it.
	Once bool
	// Death, if it is not nil, is closed when the holder dies, be it waiting or holding. It
	// cancels and releases nothing then: the lock has to notice. The error of a request
	// whose holder has died does not matter.
	Death <-chan struct{}
}

// Hold is a granted lock.
type Hold interface {
	// Release gives the lock back. It returns nil when that is true, ErrLost if the
	// hold was lost before, and ErrNotHeld if it was released before.
	Release(ctx context.Context) error
	// Lost is closed when the holder is told that it has lost the lock.
	Lost() <-chan struct{}
	// Reenter acquires the lock once more for the holder of this hold, which may be
	// released itself if another hold of its holder is not. A lease that is
	// longer than what is left of the hold's prolongs it; a shorter one, or one for a hold
	// without a lease, is refused with ErrInvalid.
	Reenter(ctx context.Context, r Request) (Hold, error)
	// Count is how often the holder had the lock when this hold was granted: 1 for the first.
	Count() int
	// Tokens has one for each lock that the hold consists of; 0 for one without a token.
	Tokens() []int64
}

// The errors, for errors.Is: an adapter translates its own into them. Others, which no
// case expects, it returns as they are.
var (
	ErrHeld    = errors.New("suite: the lock is held, and the request did not want to wait")
	ErrTimeout = errors.New("suite: the wait was over")
	ErrClosed  = errors.New("suite: the client is closed")
	ErrReentry = errors.New("suite: the lock cannot be re-entered")
	ErrInvalid = errors.New("suite: the request asks for what cannot be had")
	ErrLost    = errors.New("suite: the hold was lost")
	ErrNotHeld = errors.New("suite: the hold was released before")
	// ErrUnavailable: the storage has not answered within the wait. Only short waits may end so.
	ErrUnavailable = errors.New("suite: the storage does not answer")
)

// Status is how things stand with a lock, as seen by one client.
type Status struct {
	// Locked says that somebody holds the lock, HeldHere that it is somebody in this client.
	Locked, HeldHere bool
	// Count is how often the holder has it.
	Count int
	// Waiters is how many requests wait in this client.
	Waiters int
	// Queue is how many requests stand in line over all clients, if the lock is Ordered.
	Queue int
}
