package machine

// Snapshot is the state of a lock in this process, without asking Redis.
type Snapshot struct {
	HeldHere bool
	// Count is the hold count of the first holder.
	Count   int
	Waiters int
	// Until is the end of its validity without a renewal.
	Until  Instant
	Tokens []int64
}

// Summary is the part of the state that is read after each event.
type Summary struct {
	// Holds is the number of holds, and Waiters that of the requests that wait.
	Holds, Waiters int
	// FirstRef is the Ref of the first hold or, if there is none, of the first waiter; nil if there is neither.
	FirstRef any
	// Term is the term of a lock's lease, and LeaseUntil the end of its validity without a renewal. Both are 0 without a
	// lease, and for other kinds: each permit has a lease of its own, or none.
	Term       uint64
	LeaseUntil Instant
}

// Holder identifies a hold to the lock actor.
type Holder struct {
	Ref any
	ID  uint64
}
