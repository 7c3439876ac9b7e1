package machine

import (
	"math/bits"
	"time"
)

// Config is the configuration of the machines. All machines of a System have the same.
type Config struct {
	// Watchdog is the TTL of a lease that the watchdog renews.
	Watchdog time.Duration
	// Renewal is the time between two of its renewals.
	Renewal time.Duration
	// HandOffLimit bounds the time in which a process hands the lock off to its own waiters. Then it yields.
	HandOffLimit time.Duration
	// ForcedYield is the interval of yields that release the lock although no other client is seen to wait.
	ForcedYield time.Duration
	// Linger bounds the time that a lease lingers in the process after its last hold; 0 for none.
	Linger time.Duration
	// Poll bounds the wait for an unlock message, which may be lost.
	Poll time.Duration
	// CallTimeout bounds the wait for Redis to answer.
	CallTimeout time.Duration
	// Replicated: a lease is trusted only if replicas of Redis have it.
	Replicated bool
	// QueueLimit bounds the number of waiters.
	QueueLimit int
	// Seed makes the jitter of this process differ from the jitter of others.
	Seed uint64
}

// NoAnswer is the detail for a request whose wait has ended before Redis has answered; it does not answer before its
// replicas have, or their time is over.
func (c *Config) NoAnswer() string {
	if c.Replicated {
		return "neither Redis nor enough of its replicas have answered within the wait"
	}
	return "Redis has not answered within the wait"
}

// LongestEntry bounds EntryTimeout: the scripts take a longer entry for another application's.
const LongestEntry = 24 * time.Hour

// TransferTTL returns the TTL that a transfer gives the key. It is short, so that a transfer to a process
// that has just died costs little.
func (c *Config) TransferTTL() time.Duration { return min(2*c.Poll, c.Watchdog, LongestEntry) }

// EntryTimeout returns how long an entry of the wait queue lasts without being confirmed.
func (c *Config) EntryTimeout() time.Duration { return c.TransferTTL() }

// OpenTime returns how long the lock is left to foreign clients at a time.
func (c *Config) OpenTime() time.Duration { return min(2*c.HandOffLimit, c.EntryTimeout()/4) }

// TryTime bounds how long a request that does not wait remains without an answer. It includes the wait
// for a release that is not confirmed yet.
func (c *Config) TryTime() time.Duration { return c.CallTimeout + ReplyGrace }

// Timeout bounds one call about a lease, so that several fit into the lease.
func (c *Config) Timeout(lease time.Duration) time.Duration {
	return max(min(c.CallTimeout, lease/4), time.Millisecond)
}

// RenewAfter returns the time between a command that set the lease and the next renewal. If the reply took long,
// because the process is busy or Redis is far away, the next reply will be late as well, so the renewal
// begins earlier by that time.
func (c *Config) RenewAfter(took time.Duration) time.Duration {
	if took < c.Renewal/10 {
		return c.Renewal
	}
	return max(c.Renewal-took, 0)
}

// Jitter returns a time between d/2 and d. It derives from n, a number of the machine's own history, so the same events
// always lead to the same decisions.
func (c *Config) Jitter(d time.Duration, n uint64) time.Duration {
	// The finalizer of splitmix64.
	z := c.Seed + n*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	part, _ := bits.Mul64(z, uint64(d/2))
	return d/2 + time.Duration(part)
}

// Margin returns how much earlier than its TTL the validity of a lease ends: 1 % for clocks that run
// at different speeds, and 2 ms for Redis's rounding. It is the drift allowance of the Redlock
// description.
func Margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// TrustedUntil returns the end of the trust in a lease which a command sets that was sent then.
func TrustedUntil(sentAt Instant, lease time.Duration) Instant { return sentAt + lease - Margin(lease) }
