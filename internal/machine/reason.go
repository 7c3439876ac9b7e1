package machine

import "fmt"

// Reason is why a request was refused or a hold lost. The enumeration Reason in package messages has the same numbers.
type Reason uint8

// See messages/lockkeeper.proto for what each means.
const (
	Invalid Reason = iota + 1
	Held
	TimedOut
	CancelledByRequest
	QueueFull
	Closed
	Unavailable
	Rejected
	Crashed
	NotHeld
	Lost
	Expired
	Gone
	Taken
	Forced
	MaxHold
	Reentry
	NotReplicated
	NoPermits

	// NumReasons is the number of reasons, with 0.
	NumReasons
)

// Details of refusals.
const (
	// OwnerDied is for a request whose owner has died.
	OwnerDied = "the owner of the request has died"
	// Closing is for a request during Close.
	Closing = "the system is closing"
	// WasWithdrawn is for a request that a Cancel names.
	WasWithdrawn = "the request was withdrawn"
	// MaybeDone is before the error of a command that Redis may have carried out.
	MaybeDone = "it may have been carried out: "
	// NoNumber is for a semaphore without a number of permits, as far as the process knows.
	NoNumber = "it was never set, or Redis has lost its data"
)

// String returns the reason as the messages spell it, in lower case.
func (r Reason) String() string {
	names := [NumReasons]string{
		"unspecified", "invalid", "held", "timed out", "cancelled", "queue full", "closed", "unavailable", "rejected",
		"crashed", "not held", "lost", "expired", "gone", "taken", "forced", "max hold", "re-entry", "not replicated",
		"no permits",
	}
	if r < NumReasons {
		return names[r]
	}
	return fmt.Sprintf("reason %d", r)
}
