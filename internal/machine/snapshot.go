package machine

// Snapshot is the state of a machine, without asking Redis.
type Snapshot struct {
	// HeldHere says that this process has a hold.
	HeldHere bool
	// Count is the hold count of the first holder; for an expirable semaphore, the number of permits held here.
	Count   int
	Waiters int
	// Until is the end of the first hold without a renewal.
	Until  Instant
	Tokens []int64
}

// Summary is the part of the state that is read after each event.
type Summary struct {
	// Holds is the number of holds.
	Holds int
	// Waiters is the number of requests that wait.
	Waiters int
	// FirstRef is the Ref of the first hold or, if there is none, of the first waiter; nil if there is neither.
	FirstRef any
	// Term is the term of a lock's lease; 0 without one, and for other kinds: each permit has its own lease, or none.
	Term uint64
	// LeaseUntil is the end of that lease's validity without a renewal.
	LeaseUntil Instant
}

// Holder identifies a hold to the lock actor.
type Holder struct {
	Ref any
	ID  uint64
}
