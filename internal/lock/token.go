package lock

import "slices"

// tokens are fencing tokens that Redis has given to a term and that its holds have not used yet, so a local
// hand-off needs no command. Tokens of other processes are higher than these only when the term is over.
type tokens struct {
	// last is the last token of each counter's block.
	last []int64
	// left is the number of tokens that are left of each block.
	left int64
	// counterRegressed says that no token is left because the lock has had higher ones. The counter has lost some, as in a
	// failover, and a transfer has drawn from it.
	counterRegressed bool
}

// maxTokens bounds how many are drawn at once.
const maxTokens = 10000

// spending counts the tokens of this turn.
type spending struct {
	// given is the number of tokens that holds have got.
	given int64
	// drawn is the number of tokens that were drawn.
	drawn int64
	// redrawn says that tokens were drawn more than once, which may have taken the rest of the turn.
	redrawn bool
	// previous is the number that the turn before needed.
	previous int64
}

// needed returns the number of tokens that this turn has needed so far; a turn that had to draw again would have used more.
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

func (s *spending) newTurn() { *s = spending{previous: s.needed()} }

// tokensToDraw returns the number of tokens to draw for the lease: one for each waiting request that asks for one,
// including the one that the lease is for. A few clients that come back again and again need many more
// within a turn. So at least one and a half times as many are drawn as one of the last two turns needed: to
// draw again takes a round trip of the turn.
func (l *Lock) tokensToDraw() int64 {
	if l.features.Tokens == 0 {
		return 0
	}
	n := int64(l.queue.Fenced())
	if n == 0 {
		return 0
	}
	needed := max(l.spent.needed(), l.spent.previous)
	return min(max(n, needed+needed/2), maxTokens)
}

// drawTokens keeps the drawn tokens that are higher than all that the lock has had.
func (l *Lock) drawTokens(o op, r Result) {
	if len(r.Tokens) != l.features.Tokens || l.features.Tokens == 0 {
		return
	}
	left, seen := o.draws, slices.Clone(r.Tokens)
	for i, had := range l.seen {
		left, seen[i] = min(left, seen[i]-had), max(had, seen[i])
	}
	l.seen = seen
	l.spent.draw(o.draws)
	l.lease.tokens = tokens{last: r.Tokens, left: max(left, 0), counterRegressed: o.draws > 0 && left <= 0}
}

// HighestTokens returns the highest token of each counter that the lock knows; nil before the first. The caller must not
// change it.
func (l *Lock) HighestTokens() []int64 { return l.seen }

// KnowTokens raises what HighestTokens returns: other locks of the System draw from the same counters. If one has drawn
// while this lock was held, the lease is lost, and the tokens that are left are too low for another hold.
func (l *Lock) KnowTokens(highest []int64) {
	known := slices.Clone(highest)
	for i, had := range l.seen {
		known[i] = max(known[i], had)
	}
	for i, last := range l.lease.tokens.last {
		if known[i] > last {
			l.lease.tokens.left = 0
		}
	}
	l.seen = known
}

// hasToken reports whether a request that asks for a token can be given one.
func (l *Lock) hasToken(req *waiter) bool {
	return l.features.Tokens == 0 || !req.Fenced || l.lease.tokens.left > 0
}

// nextTokens returns the tokens of the next hold, one per counter; nil if the request asks for none.
func (l *Lock) nextTokens(req *waiter) []int64 {
	if l.features.Tokens == 0 || !req.Fenced || l.lease.tokens.left == 0 {
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
