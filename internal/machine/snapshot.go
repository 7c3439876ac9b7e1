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

// Holder identifies a hold to the lock actor.
type Holder struct {
	Ref any
	ID  uint64
}
