package conformance

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
}

// Traits are what an adapter's lock promises.
type Traits struct {
	// TTL is how long a hold without a lease outlives its client, if that dies. The
	// suite sleeps for a few of them. More than a second of it keeps a loaded machine
	// from losing holds.
	TTL time.Duration
	// Lease is a fixed lease to try, at least 10 ms. Default: a third of TTL.
	Lease time.Duration
	// RefusesReentry says that a re-entry is refused with ErrReentry instead of granted.
	RefusesReentry bool
	// Ordered says that the lock is granted in the order of the requests over all
	// clients, instead of only among those of one client.
	Ordered bool
	// Unordered says that there is no order even among the requests of one client.
	Unordered bool
}

// Client is one process that uses the lock.
type Client interface {
	// Acquire waits for the lock of that name until ctx ends; then its error is ctx's.
	// Each call is on behalf of somebody else, so that it never re-enters a hold.
	Acquire(ctx context.Context, lock string, r Request) (Hold, error)
	// Close ends the client: waiters are refused with ErrClosed, holders are told
	// of their loss, and what is held is released. It may be called more than once.
	Close(ctx context.Context) error
}

// Request is how a lock is to be acquired.
type Request struct {
	// Lease is a fixed lease, which is not renewed; 0: the hold lasts until its release.
	Lease time.Duration
	// Wait bounds the wait, besides the context; 0: nothing else does.
	Wait time.Duration
	// Try asks once, and does not wait.
	Try bool
}

// Hold is a granted lock.
type Hold interface {
	// Release gives the lock back. It returns nil when that is true, ErrLost if the
	// hold was lost before, and ErrNotHeld if it was released before.
	Release(ctx context.Context) error
	// Lost is closed when the holder is told that it has lost the lock.
	Lost() <-chan struct{}
}

// The errors, for errors.Is: an adapter translates its own into them. Others, which no
// case expects, it returns as they are.
var (
	ErrHeld    = errors.New("conformance: the lock is held, and the request did not want to wait")
	ErrTimeout = errors.New("conformance: the wait was over")
	ErrClosed  = errors.New("conformance: the client is closed")
	ErrReentry = errors.New("conformance: the lock cannot be re-entered")
	ErrInvalid = errors.New("conformance: the request asks for what cannot be had")
	ErrLost    = errors.New("conformance: the hold was lost")
	ErrNotHeld = errors.New("conformance: the hold was released before")
	// ErrUnavailable: the storage has not answered within the wait. Only short waits may end so.
	ErrUnavailable = errors.New("conformance: the storage does not answer")
)

// Reenterer is a Hold whose holder can ask for the lock again.
type Reenterer interface {
	// Reenter acquires the lock once more for the holder of this hold, which may be
	// released itself if another hold of its holder is not. A lease that is
	// longer than what is left of the hold's prolongs it; a shorter one, or one for a hold
	// without a lease, is refused with ErrInvalid.
	Reenter(ctx context.Context, r Request) (Hold, error)
	// Count is how often the holder had the lock when this hold was granted: 1 for the first.
	Count() int
}

// Tokened is a Hold with fencing tokens.
type Tokened interface {
	// Tokens has one for each lock that the hold consists of; 0 for one without a token.
	Tokens() []int64
}

// Mortal is a Client whose holders can die without it: actors, or sessions.
type Mortal interface {
	// AcquireUntil is Acquire for a holder that dies when death is closed, be it waiting
	// or holding. It cancels and releases nothing then: the lock has to notice. The error
	// of a request whose holder has died does not matter.
	AcquireUntil(ctx context.Context, death <-chan struct{}, lock string, r Request) (Hold, error)
}

// ForceReleaser is a Client that can free a lock whoever holds it.
type ForceReleaser interface {
	// ForceRelease reports whether the lock was held.
	ForceRelease(ctx context.Context, lock string) (wasHeld bool, err error)
}

// Inspector is a Client that can tell how things stand. Without it the suite does not
// know when a request has come to wait, and can only give it time for that.
type Inspector interface {
	Inspect(ctx context.Context, lock string) (Status, error)
}

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

// Killer is a Client that can die as a process does.
type Killer interface {
	// Kill cuts the client off from the storage for good, without releasing anything.
	Kill()
}

// Crasher is a Client in which whatever looks after a lock can crash and is restarted.
type Crasher interface {
	// Crashes are the ways to crash: for each a name, and what makes it happen. It
	// returns when the crash has happened.
	Crashes(lock string) map[string]func(t testing.TB)
}

// Deleter is an Adapter that can delete a lock from the storage, behind the clients' backs.
type Deleter interface {
	Delete(t testing.TB, lock string)
}
