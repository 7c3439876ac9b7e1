package core

import (
	"math/bits"
	"time"
)

// Config is what a lock's decisions depend on; the same for all locks of a system.
type Config struct {
	// Lease is the TTL that the watchdog keeps renewing, every Renewal.
	Lease   time.Duration
	Renewal time.Duration
	// Tenure is how long a process may hand the lock on among its own waiters
	// before it looks whether others wait.
	Tenure time.Duration
	// Opening is how often, at the end of a tenure, the lock is released even
	// though nobody is seen to wait.
	Opening time.Duration
	// Poll bounds the wait for an unlock message, which may get lost.
	Poll time.Duration
	// CallTimeout bounds the wait for Redis to answer.
	CallTimeout time.Duration
	// QueueLimit bounds the waiters.
	QueueLimit int
	// Seed makes the jitter of this process differ from that of others.
	Seed uint64
}

const (
	// replyGrace is how long after a command's deadline its reply is still awaited
	// before it is given up as lost on the way.
	replyGrace = 250 * time.Millisecond
	// Tries that failed are repeated after firstBackoff at first, then after twice
	// as long every time, up to mostBackoff; sooner for short leases.
	firstBackoff = 50 * time.Millisecond
	mostBackoff  = time.Second
)

// Margin is how much earlier than its TTL a lease stops being trusted: 1 % for
// clocks that run at different speeds, and 2 ms for Redis's rounding. It is the
// drift allowance of the Redlock description.
func Margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// TryTime is how long a request that does not wait goes without an answer at most: what it
// waits for is Redis, perhaps behind a release that is not confirmed.
func (c *Config) TryTime() time.Duration { return c.CallTimeout + replyGrace }

// timeout bounds one call about a lease, so that several fit into it.
func (c *Config) timeout(lease time.Duration) time.Duration {
	return max(min(c.CallTimeout, lease/4), time.Millisecond)
}

// backoff is the pause before a command about a lease of that length is sent again.
func (l *Lock) backoff(tries int, lease time.Duration) time.Duration {
	return l.pause(tries, lease, lease/6)
}

// waitersBackoff is the pause before the next try for a lease of that length. None is at
// stake yet, so that the pauses may grow longer than it.
func (l *Lock) waitersBackoff(tries int, lease time.Duration) time.Duration {
	return l.pause(tries, lease, l.cfg.Lease/6)
}

func (l *Lock) pause(tries int, lease, most time.Duration) time.Duration {
	pause := min(firstBackoff, lease/20) << min(tries, 10)
	return l.jitter(max(min(pause, most, mostBackoff), time.Millisecond))
}

// jitter gives between a half and the whole of d. It is drawn from the lock's own
// history, so that the same events always lead to the same decisions.
func (l *Lock) jitter(d time.Duration) time.Duration {
	// The finalizer of splitmix64.
	z := l.cfg.Seed + l.seq*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	part, _ := bits.Mul64(z, uint64(d/2))
	return d/2 + time.Duration(part)
}
