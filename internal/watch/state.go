// Package watch shares the reads of a lock among all its watchers in a System.
package watch

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// State is the state of a lock at the last read.
type State struct {
	Status *messages.Status
	// Since is a time at which the present owners held the lock, or at which it was free: the earliest known time.
	Since time.Time
}

// next returns the state after a read at a time. changed reports whether the lock has other owners than before, or
// another note.
func (before *State) next(status *messages.Status, at time.Time) (after State, changed bool) {
	after = State{status, at}
	if len(status.Owners) <= 1 { // with several owners the time is known for one, and the others may have joined since
		after.Since = at.Add(-status.HeldAtLeast.AsDuration())
	}
	if before.Status == nil || !sameOwners(before.Status, status) {
		return after, true
	}
	if before.Since.Before(after.Since) {
		after.Since = before.Since
	}
	return after, before.Status.Note != status.Note
}

func sameOwners(a, b *messages.Status) bool {
	if a.Holders > int64(len(a.Owners)) && b.Holders > int64(len(b.Owners)) { // too many readers: each read has different ones
		return a.Mode == b.Mode && a.Holders == b.Holders
	}
	return a.Locked == b.Locked && a.Mode == b.Mode &&
		slices.Equal(slices.Sorted(slices.Values(a.Owners)), slices.Sorted(slices.Values(b.Owners)))
}
