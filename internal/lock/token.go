package lock

import "slices"

// tokens are the fencing tokens of a lock. Redis gives them to a term in blocks, one of each counter, so a local
// hand-off needs no command. Other processes draw higher tokens only when the term is over.
type tokens struct {
	// highest are the highest tokens that the lock has had, one per counter.
	highest []int64
	// last is the last token of each counter's block.
	last []int64
	// left is the number of tokens that are left of each block.
	left int64
	// counters is the number of the lock's counters.
	counters int32
	// regressed says that no token is left because the lock has had higher tokens: the counter has lost tokens, as in a
	// failover, and a transfer has drawn from it.
	regressed bool
	// spent counts the tokens of the last turns.
	spent spending
}

// maxTokens bounds how many are drawn at once.
const maxTokens = 10000

// spending counts the tokens of this turn.
type spending struct {
	// given is the number of tokens that holds have received.
	given int64
	// drawn is the number of tokens that were drawn.
	drawn int64
	// redrawn says that tokens were drawn more than once, which may have taken the rest of the turn.
	redrawn bool
	// previous is the number that the turn before needed.
	previous int64
}

// needed returns the number of tokens that this turn has needed so far. A turn in which tokens were drawn again would
// have used more.
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

// endTerm forgets the tokens that are left.
func (t *tokens) endTerm() { t.last, t.left, t.regressed = nil, 0, false }

// toDraw returns the number of tokens to draw for the lease: one for each waiting request that asks for one, including
// the one that the lease is for. A few clients that come back again and again need many more within a turn. So the
// number is at least one and a half times what either of the last two turns needed, since drawing again costs a round
// trip within the turn.
func (t *tokens) toDraw(requests int) int64 {
	if t.counters == 0 || requests == 0 {
		return 0
	}
	needed := max(t.spent.needed(), t.spent.previous)
	return min(max(int64(requests), needed+needed/2), maxTokens)
}

// keep keeps the drawn tokens that are higher than all that the lock has had; n were drawn from each counter.
func (t *tokens) keep(n int64, drawn []int64) {
	if len(drawn) != int(t.counters) || t.counters == 0 {
		return
	}
	left, highest := n, slices.Clone(drawn)
	for i, had := range t.highest {
		left, highest[i] = min(left, drawn[i]-had), max(had, drawn[i])
	}
	t.spent.draw(n)
	t.highest, t.last, t.left, t.regressed = highest, drawn, max(left, 0), n > 0 && left <= 0
}

// know raises the highest tokens. A block that does not reach them is too low for another hold.
func (t *tokens) know(highest []int64) {
	known := slices.Clone(highest)
	for i, had := range t.highest {
		known[i] = max(known[i], had)
	}
	for i, last := range t.last {
		if known[i] > last {
			t.left = 0
		}
	}
	t.highest = known
}

// has reports whether there is a token for a request, or the request needs none.
func (t *tokens) has(req *waiter) bool { return t.counters == 0 || !req.Fenced || t.left > 0 }

// next returns the tokens of the next hold, one per counter; nil if the request asks for none.
func (t *tokens) next(req *waiter) []int64 {
	if t.counters == 0 || !req.Fenced || t.left == 0 {
		return nil
	}
	t.left--
	t.spent.given++
	next := make([]int64, len(t.last))
	for i, last := range t.last {
		next[i] = last - t.left
	}
	return next
}

// HighestTokens returns the highest token of each counter that the lock knows; nil before the first. The caller must
// not change it.
func (l *Lock) HighestTokens() []int64 { return l.tokens.highest }

// KnowTokens raises what HighestTokens returns: other locks of the System draw from the same counters. If another lock
// has drawn while this lock was held, the lease of this lock is lost, and the tokens that are left are too low for
// another hold.
func (l *Lock) KnowTokens(highest []int64) { l.tokens.know(highest) }
