package machine

// Transfer reports that another process has made this one the owner of the lock, under the term of its
// entry in the wait queue; or it is a question (IsQuestion), or says that permits of a semaphore are free.
type Transfer struct {
	Term uint64
	// Seq is the number of the command that added the entry or confirmed it last; 0 if the lock was not transferred.
	Seq uint64
	// Tokens are the highest tokens drawn, one per counter.
	Tokens []int64
}

// IsQuestion reports whether nothing was transferred: another process wants the lock, which Term has. A semaphore gets
// the same when permits are free for this process.
func (t Transfer) IsQuestion() bool { return t.Seq == 0 }
