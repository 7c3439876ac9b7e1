package machine

import (
	"fmt"
	"time"
)

// CannotExtend says why a hold cannot have another lease from now on, of that length or, for 0, the lease of the
// watchdog; "" if it can. maxEnd is the end of its max hold, 0 for none. unwatched: no death of an owner ends it.
func CannotExtend(lease time.Duration, now, maxEnd Instant, unwatched bool) string {
	switch {
	case maxEnd != 0 && TrustedUntil(now, lease) > maxEnd:
		return fmt.Sprintf("a lease of %v is too long, since %v are left of the max hold, which no extension moves", lease, maxEnd-now)
	case lease == 0 && maxEnd == 0 && unwatched:
		return "the watchdog cannot keep the hold, since no death of an owner would end it: give a lease"
	}
	return ""
}
