package lock

import "slices"

// tokens are fencing tokens that Redis has given out to a term, and that are not yet
// given to its holds: a hold that is handed on gets one without asking Redis. Tokens
// of others are higher than these only when the term is over.
type tokens struct {
	// last of each counter's block, and how many of each are left.
	last []int64
	left int64
	// fell: none is left because the lock has had higher ones. Redis has lost some, as in a
	// failover.
	fell bool
}

// mostTokens bounds how many are drawn at once.
const mostTokens = 1000

// reserve is how many tokens to draw for the lease: one for each of those who wait and
// have asked for one. The one that the lease is for is the first of them. What a counter has lost
// is drawn besides.
func (l *Lock) reserve() int64 {
	if l.kind.Tokens == 0 {
		return 0
	}
	var n int64
	for _, req := range l.queue.requests[:min(l.queue.len(), mostTokens)] {
		if req.Fenced {
			n++
		}
	}
	if n > 0 {
		n += l.lag
	}
	return n
}

// drawTokens takes those that are higher than all that the lock has had.
func (l *Lock) drawTokens(o op, r Result) {
	if len(r.Tokens) != l.kind.Tokens || l.kind.Tokens == 0 {
		return
	}
	left, seen := o.reserved, slices.Clone(r.Tokens)
	l.lag = 0
	for i, had := range l.seen {
		left, l.lag, seen[i] = min(left, seen[i]-had), max(l.lag, had-seen[i]), max(had, seen[i])
	}
	l.seen = seen
	l.lease.tokens = tokens{last: r.Tokens, left: max(left, 0), fell: o.reserved > 0 && left <= 0}
}

// hasToken reports whether a request that asks for a token can be given one.
func (l *Lock) hasToken(req *Request) bool {
	return l.kind.Tokens == 0 || !req.Fenced || l.lease.tokens.left > 0
}

// nextTokens gives the tokens of the next hold.
func (l *Lock) nextTokens(req *Request) []int64 {
	if l.kind.Tokens == 0 || !req.Fenced || l.lease.tokens.left == 0 {
		return nil
	}
	l.lease.tokens.left--
	next := make([]int64, len(l.lease.tokens.last))
	for i, last := range l.lease.tokens.last {
		next[i] = last - l.lease.tokens.left
	}
	return next
}
