package kinds

import (
	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// tokens are the counters from which a lock draws fencing tokens, in the order of its tokens. A fenced lock shares its
// counter with the MultiLocks of the System that have it as a member. Most locks draw no tokens, and use no counter.
type tokens struct {
	sources  []tokenSource
	counters []*backend.Counter
}

type tokenSource struct {
	server *backend.Server
	name   string
}

// tokensOf returns the counters of a MultiLock.
func tokensOf(members []backend.MemberSpec) (t tokens) {
	for _, batch := range backend.Batches(members) {
		for _, i := range batch {
			if one := &members[i]; one.Fenced {
				t.sources = append(t.sources, tokenSource{one.Server, one.Name})
			}
		}
	}
	return t
}

// attachCounter makes a lock that draws no token a user of its counter, if the System knows one, so that the counter is
// not forgotten while the lock is in use.
func (t *tokens) attachCounter() {
	if t.counters != nil || len(t.sources) != 1 {
		return
	}
	if counter := t.sources[0].server.KnownCounter(t.sources[0].name); counter != nil {
		t.counters = []*backend.Counter{counter}
	}
}

// drawAbove returns the tokens above which a command must draw, given the tokens that its lock knows.
func (t *tokens) drawAbove(known []int64) []int64 {
	if t.counters == nil {
		for _, one := range t.sources {
			t.counters = append(t.counters, one.server.Counter(one.name))
		}
	}
	if !t.higher(known) {
		return known
	}
	return t.highest(known)
}

// raiseLock raises the tokens that a lock knows to the tokens that other locks have drawn.
func (t *tokens) raiseLock(l *lock.Lock) {
	if known := l.HighestTokens(); t.higher(known) {
		l.KnowTokens(t.highest(known))
	}
}

// recordDrawn records the tokens that a lock has drawn.
func (t *tokens) recordDrawn(l *lock.Lock) {
	if t.counters == nil {
		return
	}
	for i, token := range l.HighestTokens() {
		t.counters[i].NoteDrawn(token)
	}
}

// higher reports whether a counter is higher than a lock knows.
func (t *tokens) higher(known []int64) bool {
	for i, counter := range t.counters {
		if had := counter.Highest(); had > 0 && (i >= len(known) || had > known[i]) {
			return true
		}
	}
	return false
}

func (t *tokens) highest(known []int64) []int64 {
	all := make([]int64, len(t.counters))
	copy(all, known)
	for i, counter := range t.counters {
		all[i] = max(all[i], counter.Highest())
	}
	return all
}

// release ends the use of the counters.
func (t *tokens) release() {
	for i, counter := range t.counters {
		t.sources[i].server.LeaveCounter(counter)
	}
	t.counters = nil
}
