package machine

// Machine decides what happens to a lock, a semaphore or a latch in this process. It is a value without I/O: an event
// and the time go in, effects come out. The actor applies an event to a copy, which then replaces the machine, so a
// panic changes nothing. A machine ignores the events that do not concern its kind.
type Machine interface {
	// Requests. An effect Reply answers the request of a Ref, at once or after a later event. The other requests differ
	// by kind: see Acquire and Event of kinds.Adapter.

	// Cancel withdraws the waiting request with that id, or, if id is 0, the requests of the owner.
	Cancel(now Instant, id uint64, owner Owner, ref any)

	// External events. The replies of Redis are events, too: kinds.Adapter applies them, since they differ by kind.

	// OwnerGone reports that an owner has died: its requests are refused, and its holds are released.
	OwnerGone(now Instant, owner Owner)
	// Signal reports a message on a channel: the lock, or permits, may be free.
	Signal(now Instant)
	// Subscribed reports that the subscription with the term of an effect Subscribe is confirmed. Earlier messages may
	// have been missed.
	Subscribed(now Instant, term uint64)
	// Transferred reports that another process has transferred the lock to this one.
	Transferred(now Instant, t Transfer)
	// Asked reports that another process wants the lock that this process has with that term; or, for a semaphore, that
	// this process is asked to try, since permits are free for it.
	Asked(now Instant, term uint64)
	// Suspect reports that the key may have been taken away: a lock asks Redis as soon as it can.
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
	// Summary returns what the actor reads after each event.
	Summary() Summary
	// Snapshot returns the state in this process, for users. It may take longer.
	Snapshot() Snapshot
	// Outstanding returns the holders, and the Refs of the requests that await an answer, so that an actor that is
	// given up can notify and answer them. It returns none if the kind is a kinds.Stopper, which answers all.
	Outstanding() (holders []Holder, pending []any)
}
