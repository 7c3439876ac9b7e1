package backend

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Counter is the counter of a fenced lock's tokens, as far as this System knows it. All lock actors of the System that
// draw from the counter share it, so the tokens of a fenced lock grow even if a MultiLock has drawn the last tokens.
type Counter struct {
	name string
	// highest is the highest token that was drawn.
	highest atomic.Int64
	// users is the number of lock actors that use the counter. The mutex of counters guards it, and unusedSince.
	users int
	// unusedSince is the time at which the last user left.
	unusedSince machine.Instant
}

// Highest returns the highest token that this System has drawn, 0 if there is none.
func (c *Counter) Highest() int64 { return c.highest.Load() }

// NoteDrawn notes a token that was drawn.
func (c *Counter) NoteDrawn(token int64) {
	for {
		last := c.highest.Load()
		if token <= last || c.highest.CompareAndSwap(last, token) {
			return
		}
	}
}

// counters are the counters of one Server. A counter is forgotten when no lock actor has used it for some time.
type counters struct {
	keepFor time.Duration
	// count is the number of counters. Most Systems have none.
	count atomic.Int64

	mu     sync.Mutex // guards the fields below
	byName map[string]*Counter
	// unused are the counters without users, in the order in which they lost their users. Some may have users again.
	unused []unused
}

type unused struct {
	counter *Counter
	since   machine.Instant
}

// Counter returns the counter of a lock, for one more user, which leaves it with LeaveCounter.
func (s *Server) Counter(name string) *Counter { return s.counters.enter(name, s.clock.Now()) }

// KnownCounter is like Counter, but returns nil if there is no counter yet.
func (s *Server) KnownCounter(name string) *Counter {
	if s.counters.count.Load() == 0 {
		return nil
	}
	return s.counters.enterKnown(name)
}

// LeaveCounter ends the use of a counter.
func (s *Server) LeaveCounter(c *Counter) { s.counters.leave(c, s.clock.Now()) }

func (all *counters) enter(name string, now machine.Instant) *Counter {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.forget(now)
	c := all.byName[name]
	if c == nil {
		if all.byName == nil {
			all.byName = map[string]*Counter{}
		}
		c = &Counter{name: name}
		all.byName[name] = c
		all.count.Add(1)
	}
	c.users++
	return c
}

func (all *counters) enterKnown(name string) *Counter {
	all.mu.Lock()
	defer all.mu.Unlock()
	c := all.byName[name]
	if c != nil {
		c.users++
	}
	return c
}

func (all *counters) leave(c *Counter, now machine.Instant) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.forget(now)
	if c.users--; c.users == 0 {
		c.unusedSince = now
		all.unused = append(all.unused, unused{c, now})
	}
}

// forget removes counters that were not used for long. It looks at two counters at most, which is enough because each
// use adds one counter at most.
func (all *counters) forget(now machine.Instant) {
	for range min(2, len(all.unused)) {
		first := all.unused[0]
		if now < first.since+all.keepFor {
			return
		}
		all.unused[0] = unused{}
		if all.unused = all.unused[1:]; len(all.unused) == 0 {
			all.unused = nil
		}
		if c := first.counter; c.users == 0 && c.unusedSince == first.since {
			delete(all.byName, c.name)
			all.count.Add(-1)
		}
	}
}
