package machine

import (
	"slices"
	"time"
)

// A command is unanswered while it has no reply, and for good if none comes. Redis may carry it out late, and the reply
// may be late.

// maxUnanswered bounds the tries whose late replies count. Their pauses grow, so few fit into a lease.
const maxUnanswered = 8

// AddUnanswered returns a list of unanswered tries with another one.
func AddUnanswered[T any](tries []T, one T) []T {
	return append(slices.Clone(tries[max(0, len(tries)-maxUnanswered+1):]), one)
}

// Unanswered is the shortest lease that an unanswered command may still set; 0 if there is none.
type Unanswered time.Duration

// Add notes that a command which sets that lease is unanswered.
func (u *Unanswered) Add(lease time.Duration) {
	if *u == 0 || Unanswered(lease) < *u {
		*u = Unanswered(lease)
	}
}

// MayCutShort reports whether an unanswered command may shorten a lease of that length.
func (u Unanswered) MayCutShort(lease time.Duration) bool { return u != 0 && u < Unanswered(lease) }
