package machine

import "time"

// ReplyGrace is how long after a command's deadline its reply is awaited before it counts as lost.
const ReplyGrace = 250 * time.Millisecond

// RepeatTime is how long a numbered command is sent again. Redis remembers its number for twice as long.
const RepeatTime = 30 * time.Minute

const (
	// A failed command is sent again after firstBackoff, then after twice as long every time, up to maxBackoff.
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
)

// Backoff returns the pause before a command about a lease of that length is sent again. It is never longer than most,
// and shorter for short leases.
func Backoff(tries int, lease, most time.Duration) time.Duration {
	pause := min(firstBackoff, lease/20) << min(tries, 10)
	return max(min(pause, most, maxBackoff), time.Millisecond)
}
