package machine

import "time"

// Machine decides what happens to a lock, a semaphore or a latch in this process. It is a value without I/O: an event
// and the time go in, effects come out. The actor applies an event to a copy, which then replaces the machine, so a
// panic changes nothing. A machine ignores the events that do not concern its kind.
type Machine interface {
	// Requests. An effect Reply answers the request of a Ref, at once or after a later event. Some kinds have further
	// requests: see Event of kinds.Kind.

	// Acquire asks for the lock, for permits, or for an open latch. The request is granted or refused at once, or waits
	// in the queue.
	Acquire(now Instant, req Request)
	// Release releases one hold: that of the owner, or, if the owner is 0 or has none, the hold with that id. A
	// semaphore or latch has no holds: the request ref says how many permits return, or which count-down it is.
	Release(now Instant, id uint64, owner Owner, mode Mode, ref any)
	// Cancel withdraws the waiting request with that id, or, if id is 0, those of the owner.
	Cancel(now Instant, id uint64, owner Owner, ref any)
	// ForceRelease frees a lock if one of the owners holds it in that mode. Holders here are notified first.
	ForceRelease(now Instant, mode Mode, owners Owners, ref any)
	// Ensure asks that the lease of a lock's hold is valid for at least d; it is renewed if necessary.
	Ensure(now Instant, id uint64, d time.Duration, ref any)
	// Extend gives a hold a fixed lease that begins now, or for 0 the lease of the watchdog. The hold is that of the
	// owner, or, if the owner is 0 or has none, the one with that id.
	Extend(now Instant, id uint64, owner Owner, lease time.Duration, ref any)

	// Facts from outside. The replies of Redis are such facts, too: kinds.Kind applies them, since they differ by kind.

	// OwnerGone reports that an owner has died: its requests are refused, and its holds are released.
	OwnerGone(now Instant, owner Owner)
	// Signal reports a message on a channel: the lock, or permits, may be free.
	Signal(now Instant)
	// Subscribed reports that the subscription with the term of an effect Subscribe is confirmed. Earlier messages may
	// have been missed.
	Subscribed(now Instant, term uint64)
	// Transferred reports that another process has transferred the lock to this one.
	Transferred(now Instant, t Transfer)
	// Suspect reports that the key may have been taken away: the lock asks Redis as soon as it can.
	Suspect(now Instant)
	// Tick reports that time has passed: the machine does what is due.
	Tick(now Instant)
	// Close reports that the System closes: waiting requests are refused, and all holds end and are released.
	Close(now Instant)

	// Queries. Only NextEffect changes the machine.

	// NextEffect writes the next effect to e and removes it from the machine. It reports whether there was one.
	NextEffect(e *Effect) bool
	// NextWake returns when the machine needs its next Tick, unless another event comes first; ok is false if it needs
	// none.
	NextWake() (at Instant, ok bool)
	// Idle reports whether the machine has nothing to do and no state to keep.
	Idle() bool
	// FirstWaiter returns the Ref of the first request that waits, or nil.
	FirstWaiter() any
	// Load returns how many holds there are, and how many requests wait. firstRef is the Ref of the first hold or, if
	// there is none, of the first waiter; nil if there is neither.
	Load() (holds, waiters int, firstRef any)
	// Snapshot returns the state in this process.
	Snapshot() Snapshot
	// Term returns the term of a lock's lease, or 0.
	Term() uint64
	// LeaseUntil returns the end of the validity of a lock's lease without a renewal, or 0.
	LeaseUntil() Instant
	// Outstanding returns the holders, and the Refs of the requests that await an answer, so that an actor that is
	// given up can notify and answer them. It returns none if the kind is a kinds.Stopper, which answers all.
	Outstanding() (holders []Holder, pending []any)
}
