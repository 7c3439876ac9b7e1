package machine

import (
	"slices"
	"time"
)

// maxLate bounds the tries of a command that may still be answered late. Their pauses grow, so few fit into a lease.
const maxLate = 8

// AddLate returns a list of tries that may still be answered late, with another one.
func AddLate[T any](late []T, one T) []T {
	return append(slices.Clone(late[max(0, len(late)-maxLate+1):]), one)
}

// Unacked is the shortest lease that a command without a reply may still set; 0 if there is none.
type Unacked time.Duration

// Add notes that a command which sets that lease has no reply.
func (u *Unacked) Add(lease time.Duration) {
	if *u == 0 || Unacked(lease) < *u {
		*u = Unacked(lease)
	}
}

// MayCutShort reports whether a late command may shorten a lease of that length.
func (u Unacked) MayCutShort(lease time.Duration) bool { return u != 0 && u < Unacked(lease) }
