package boottime

import (
	"sync"
	"time"
)

// compared is the clock of systems without a clock that continues during sleep. The wall clock is set forward when the
// machine wakes up; its whole gain on the monotonic clock counts as time that has passed. So setting the wall clock
// forward may lose leases, which is safe.
type compared struct {
	times func() (wall, mono time.Duration)

	mu     sync.Mutex // guards the fields below, and the order of readings
	offset time.Duration
	asleep time.Duration
}

func newCompared(times func() (wall, mono time.Duration)) *compared {
	wall, mono := times()
	return &compared{times: times, offset: wall - mono}
}

// Now implements Clock.
func (c *compared) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, mono := c.times()
	moved := wall - mono - c.offset
	if moved > jitter || moved < -jitter {
		c.offset += moved
		c.asleep += max(moved, 0)
	}
	return mono + c.asleep
}

// Beat implements Clock.
func (c *compared) Beat(f func()) (stop func()) { return tick(time.Second/4, f) }
