package machine

// Transfer reports that another process has made this one the owner of the lock, under the term of its
// entry in the wait queue. If Seq is 0, it reports that another process wants the lock, which that term has.
type Transfer struct {
	Term uint64
	// Seq is the number of the command that added the entry or confirmed it last.
	Seq uint64
	// Tokens are the highest tokens drawn, one per counter.
	Tokens []int64
}
