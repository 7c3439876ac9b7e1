package machine

import "time"

// ReplyGrace is the time after a command's deadline until its reply counts as lost.
const ReplyGrace = 250 * time.Millisecond

// RepeatTime is the time for which a numbered command is sent again. Redis remembers its number for twice as long.
const RepeatTime = 30 * time.Minute

// A failed command is sent again after firstBackoff, then after twice as long every time, up to maxBackoff.
const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
)

// Backoff returns the pause before a command about a lease of that length is sent again. It is at most
// maxPause, and shorter for short leases.
func Backoff(tries int, lease, maxPause time.Duration) time.Duration {
	pause := min(firstBackoff, lease/20) << min(tries, 10)
	return max(min(pause, maxPause, maxBackoff), time.Millisecond)
}
