package backend

import (
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// places are what the tries of a lock of several parts have left in the wait queues. The tries of a lock follow one
// another, but the reply to one that was given up may come during the next.
type places struct {
	mu sync.Mutex
	// queued is for how many of the parts there may be an entry.
	queued int
	// keptFrom is since when the part that refuses is kept for another client, zero if it is not; refused is its index.
	keptFrom time.Time
	refused  int
	// since is when a try was refused for the first time since the lock was last held or given up, zero if none was;
	// last is when the last one was.
	since, last time.Time
}

// keptTime is for how long a part is kept for another client until the others are left to that one. Most reservations
// end before, and a client that left its places each time would starve.
const keptTime = 100 * time.Millisecond

// waited returns for how long the lock has been waiting; more than 0 if it has. Like an entry, that lasts for a TTL
// without another try.
func (p *places) waited(ttl time.Duration, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.since.IsZero() && now.Sub(p.last) >= ttl {
		p.since = time.Time{}
	}
	if p.since.IsZero() {
		return 0
	}
	return max(now.Sub(p.since), time.Microsecond)
}

// tried notes the end of a try, and when it began. A request that Redis rejects does not wait any more.
func (p *places) tried(c *lock.Command, r *Reply, began, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.Outcome == lock.Done, r.Outcome == lock.Failed && !r.Transient:
		p.since = time.Time{}
	case c.Entry.Term != 0:
		if p.last = now; p.since.IsZero() {
			p.since = began
		}
	}
}

// left notes that the lock does not wait any more.
func (p *places) left() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
}

// any reports whether there may be entries.
func (p *places) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queued > 0
}

// leaveAll notes that all entries are removed, and returns for how many of the parts there may be one.
func (p *places) leaveAll() (queued int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	queued, p.queued = p.queued, 0
	return queued
}

// leave returns the parts behind the i-th, which has refused, whose wait queues this MultiLock, A, leaves now: those with
// an entry of an earlier try. A leaves them if the i-th part is free, but has been kept for another MultiLock, B, for
// keptTime: B may wait for one of those parts, which is kept for A, if both have waited equally long. If another client
// holds the i-th part, it will release it, and the entries stay. Until A leaves them, leave sets a short TTL in r, so that
// the next try comes soon.
func (p *places) leave(i int, r *Reply, now time.Time) (from, to int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, last := i+1, p.queued
	p.queued = max(first, last)
	switch {
	case r.Outcome != lock.Refused || r.Holder != "" || last <= first:
		p.keptFrom = time.Time{}
	case p.keptFrom.IsZero() || p.refused != i:
		p.keptFrom, p.refused = now, i
		r.TTL = min(r.TTL, keptTime)
	case now.Sub(p.keptFrom) < keptTime:
		r.TTL = min(r.TTL, keptTime)
	default:
		p.queued, p.keptFrom = first, time.Time{}
		return first, last
	}
	return 0, 0
}
