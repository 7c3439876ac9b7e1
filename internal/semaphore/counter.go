package semaphore

// counter is what a Pool is about: the permits of a semaphore, or the count of a latch. All that differs between them
// is in its methods.
type counter interface {
	// take sends a command for the first waiting requests.
	take(p *Pool)
	// taken handles the reply to that command, which has ended.
	taken(p *Pool, o op, r Result)
	// give sends a command that gives back the first of the returns, and returns the others.
	give(p *Pool, returns []permitReturn) (rest []permitReturn)
	// given handles the reply to that command, which has ended.
	given(p *Pool, o op, r Result)
	// together reports whether all waiting requests go on together. Else none overtakes another, and what comes back is
	// handed off to them.
	together() bool
	// mustBeSet reports whether there is a number only after a Set, so that later Sets change nothing.
	mustBeSet() bool
	// words returns the texts of its answers.
	words() words
}

// words are the texts that differ.
type words struct {
	// refused says why a request waits, or was not granted.
	refused string
	// returned says what a release or a count-down does.
	returned string
	// mayBeReturned says what it may have done.
	mayBeReturned string
}

// permits is the counter of a semaphore. A permit serves one request only, so the requests are served in their order.
type permits struct{}

func (permits) together() bool { return false }

func (permits) mustBeSet() bool { return true }

func (permits) words() words {
	return words{"there are too few permits", "the permits are given back", "the permits may have been given back"}
}
