package machine

import "slices"

// maxLosses bounds how many lost holds are remembered.
const maxLosses = 100

// Losses are the holds that were lost last, all for the same reason. They explain the loss to a late release.
type Losses struct {
	ids    []uint64
	reason Reason
}

// Add remembers a lost hold, and forgets those that were lost for another reason.
func (l *Losses) Add(id uint64, reason Reason) {
	if l.reason != reason || len(l.ids) == maxLosses {
		*l = Losses{reason: reason}
	}
	l.ids = append(slices.Clip(l.ids), id)
}

// Why returns why a hold was lost; 0 if it is not remembered.
func (l *Losses) Why(id uint64) Reason {
	if slices.Contains(l.ids, id) {
		return l.reason
	}
	return 0
}
