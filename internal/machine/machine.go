package machine

import "time"

// Machine decides what happens to a lock, a semaphore or a latch in this process. It is a value without I/O: an event
// and the time go in, effects come out. The actor applies an event to a copy, which then replaces the machine, so a
// panic changes nothing. lock.Lock describes the methods.
type Machine interface {
	Acquire(now Instant, req Request)
	Release(now Instant, id uint64, owner Owner, mode Mode, ref any)
	Cancel(now Instant, id uint64, owner Owner, ref any)
	OwnerGone(now Instant, owner Owner)
	ForceRelease(now Instant, mode Mode, owners Owners, ref any)
	Ensure(now Instant, id uint64, d time.Duration, ref any)
	Signal(now Instant)
	Subscribed(now Instant, term uint64)
	Transferred(now Instant, t Transfer)
	Suspect(now Instant)
	Tick(now Instant)
	Close(now Instant)

	// NextEffect writes the next effect to e, and reports whether there is one. The machine forgets it then.
	NextEffect(e *Effect) bool
	NextWake() (at Instant, ok bool)
	Idle() bool
	Next() any
	Load() (holds, waiters int, first any)
	Snapshot() Snapshot
	Term() uint64
	LeaseUntil() Instant
	Outstanding() (holders []Holder, pending []any)
}
