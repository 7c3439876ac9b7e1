package machine

import (
	"fmt"
)

// Reason is why a request was refused or a hold lost. The numbers are those of the Reason
// enumeration in package messages.
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
)

// OwnerDied is the detail of the refusal of a request whose owner has died.
const OwnerDied = "the owner of the request has died"

// String returns the reason as the messages spell it, in lower case.
func (r Reason) String() string {
	names := [...]string{
		"unspecified", "invalid", "held", "timed out", "cancelled", "queue full", "closed", "unavailable", "rejected",
		"crashed", "not held", "lost", "expired", "gone", "taken", "forced", "max hold", "re-entry", "not replicated",
		"no permits",
	}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("reason %d", r)
}
