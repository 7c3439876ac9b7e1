package machine

import "time"

// Turn is the time in which a process hands off to its own waiters in memory. When it is over, the process yields: it
// lets other processes go first if it sees that they wait, and now and then in any case, since some wait unseen.
type Turn struct {
	// Until is the end of the turn.
	Until Instant
	// ForcedAt is the time from which a yield lets others go first although none is seen; 0 before the first turn.
	ForcedAt Instant
}

// Start starts a turn that lasts for limit, or another one after a yield that saw no other process. Yields are forced
// after a time that counts from the first turn.
func (t *Turn) Start(now Instant, limit, forcedAfter time.Duration) {
	t.Until = now + limit
	if t.ForcedAt == 0 {
		t.ForcedAt = now + forcedAfter
	}
}

// IsOver reports whether the process must yield before it hands off again.
func (t *Turn) IsOver(now Instant) bool { return now >= t.Until }

// IsForced reports whether a yield lets others go first in any case.
func (t *Turn) IsForced(now Instant) bool { return now >= t.ForcedAt }
