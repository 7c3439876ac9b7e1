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
	// failover, and a transfer has drawn from what was left.
	fell bool
}

// mostTokens bounds how many are drawn at once.
const maxTokens = 10000

// spending is how many tokens the holds of this turn were given, and how many were drawn for them. dry: they
// had to be drawn again, which may have taken the rest of the turn. before is what the turn before needed.
type spending struct {
	given, drawn int64
	redrawn      bool
	before       int64
}

// needed is what this turn has needed by now; who had to draw again would have used more.
func (s *spending) needed() int64 {
	if s.redrawn {
		return s.drawn
	}
	return s.given
}

func (s *spending) draw(n int64) {
	s.redrawn = s.redrawn || s.drawn > 0
	s.drawn += n
}

func (s *spending) newTurn() { *s = spending{before: s.needed()} }

// reserve is how many tokens to draw for the lease: one for each of those who wait and
// have asked for one. The one that the lease is for is the first of them. A few who come back again and
// again need many more within a turn, so as many are drawn as one of the last turns needed, and half of that
// besides: to draw again takes a round trip of the turn.
func (l *Lock) reserve() int64 {
	if l.kind.Tokens == 0 {
		return 0
	}
	n := int64(l.queue.waiters.Fenced())
	if n == 0 {
		return 0
	}
	needed := max(l.spent.needed(), l.spent.before)
	return min(max(n, needed+needed/2), maxTokens)
}

// drawTokens takes those that are higher than all that the lock has had.
func (l *Lock) drawTokens(o op, r Result) {
	if len(r.Tokens) != l.kind.Tokens || l.kind.Tokens == 0 {
		return
	}
	left, seen := o.reserved, slices.Clone(r.Tokens)
	for i, had := range l.seen {
		left, seen[i] = min(left, seen[i]-had), max(had, seen[i])
	}
	l.seen = seen
	l.spent.draw(o.reserved)
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
	l.spent.given++
	next := make([]int64, len(l.lease.tokens.last))
	for i, last := range l.lease.tokens.last {
		next[i] = last - l.lease.tokens.left
	}
	return next
}
