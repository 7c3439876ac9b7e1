package machine

// Transfer reports that another process has made this one the owner of the lock, under the term of its
// entry in the wait queue. A question (IsQuestion) is published like one, for the event Asked.
type Transfer struct {
	Term uint64
	// Seq is the number of the command that added the entry or confirmed it last; 0 if the lock was not transferred.
	Seq uint64
	// Tokens are the highest tokens drawn, one per counter.
	Tokens []int64
}

// IsQuestion reports whether nothing was transferred, and this process is asked; see Machine.Asked.
func (t Transfer) IsQuestion() bool { return t.Seq == 0 }
