package backend

import (
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// queueEntries records which entries the tries of a lock of several parts have left in the wait queues. The tries of a
// lock follow one another, but the reply to a try that was given up may come during the next try.
type queueEntries struct {
	mu sync.Mutex
	// queuedParts is the number of the first parts, which may have an entry.
	queuedParts int
	// reservedSince is the time of the first refusal by a free part that is reserved for another client; zero after any
	// other reply.
	reservedSince time.Time
	// refusedBy is the index of that part.
	refusedBy int
	// waitingSince is the beginning of the first try that was refused after the lock was last held or given up; zero if
	// no try was refused.
	waitingSince time.Time
	// lastTry is the end of the last try.
	lastTry time.Time
}

// leaveAfter is the time after which a MultiLock leaves the parts behind a reserved part to another client. Most
// reservations end earlier, and a client that left its entries each time would starve.
const leaveAfter = 100 * time.Millisecond

// waitingTime returns the time since the first try that was refused, which is more than 0, or 0 if the lock does not
// wait. Like an entry, a wait ends if there is no other try for a TTL.
func (e *queueEntries) waitingTime(ttl time.Duration, now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.waitingSince.IsZero() && now.Sub(e.lastTry) >= ttl {
		e.waitingSince = time.Time{}
	}
	if e.waitingSince.IsZero() {
		return 0
	}
	return max(now.Sub(e.waitingSince), time.Microsecond)
}

// noteTry notes the end of a try, and when it began. A request that Redis rejects no longer waits.
func (e *queueEntries) noteTry(c *lock.Command, r *Reply, began, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case r.Outcome == lock.Done, r.Outcome == lock.Failed && !r.Transient:
		e.waitingSince = time.Time{}
	case c.Entry.Term != 0:
		if e.lastTry = now; e.waitingSince.IsZero() {
			e.waitingSince = began
		}
	}
}

// noteGivenUp notes that the lock no longer waits.
func (e *queueEntries) noteGivenUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waitingSince = time.Time{}
}

// mayExist reports whether a part may have an entry.
func (e *queueEntries) mayExist() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.queuedParts > 0
}

// leaveAll notes that all entries are removed, and returns the number of the first parts, which may have an entry.
func (e *queueEntries) leaveAll() (queuedParts int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	queuedParts, e.queuedParts = e.queuedParts, 0
	return queuedParts
}

// leave handles the refusal by the i-th part. It returns the range of the parts behind it whose wait queues this
// MultiLock, A, leaves now, so that another MultiLock, B, does not wait for A while A waits for B:
//
//	part i     free, but reserved for B, which comes first in its queue: it refuses A
//	part i+1   reserved for A, which has an entry there of an earlier try: it refuses B
//
// This happens if both have waited equally long: otherwise their order is the same in all queues. If part i stays
// reserved for leaveAfter, A removes its entries from the parts behind it, so that B can take all parts. Until then
// leave sets a short TTL in r, and the next try comes soon. If a client holds part i, that client will release it, and
// the entries of A stay.
func (e *queueEntries) leave(i int, r *Reply, now time.Time) (from, to int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	behind, queued := i+1, e.queuedParts
	e.queuedParts = max(behind, queued)
	isReserved := r.Outcome == lock.Refused && r.Holder == ""
	switch {
	case !isReserved || queued <= behind:
		e.reservedSince = time.Time{}
	case e.reservedSince.IsZero() || e.refusedBy != i:
		e.reservedSince, e.refusedBy = now, i
		r.TTL = min(r.TTL, leaveAfter)
	case now.Sub(e.reservedSince) < leaveAfter:
		r.TTL = min(r.TTL, leaveAfter)
	default:
		e.queuedParts, e.reservedSince = behind, time.Time{}
		return behind, queued
	}
	return 0, 0
}
