package kinds

import (
	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// tokens are the counters from which a lock draws fencing tokens, in the order of its tokens. A fenced lock shares its
// counter with the MultiLocks of the System that it is a member of. Most locks draw no tokens, and use no counter.
type tokens struct {
	of   []counterOf
	used []*backend.Counter
}

type counterOf struct {
	server *backend.Server
	name   string
}

// tokensOf returns the counters of a MultiLock.
func tokensOf(members []backend.Part) (t tokens) {
	for _, batch := range backend.Batches(members) {
		for _, i := range batch {
			if one := &members[i]; one.Fenced {
				t.of = append(t.of, counterOf{one.Server, one.Name})
			}
		}
	}
	return t
}

// keep makes a lock that draws no token a user of its counter, if the System knows one: its tokens are known for as
// long as the lock is used.
func (t *tokens) keep() {
	if t.used != nil || len(t.of) != 1 {
		return
	}
	if counter := t.of[0].server.KnownCounter(t.of[0].name); counter != nil {
		t.used = []*backend.Counter{counter}
	}
}

// above returns the tokens above which a command must draw, given those that its lock knows.
func (t *tokens) above(known []int64) []int64 {
	if t.used == nil {
		for _, one := range t.of {
			t.used = append(t.used, one.server.Counter(one.name))
		}
	}
	if !t.higher(known) {
		return known
	}
	return t.highest(known)
}

// raise raises the tokens that a lock knows to the tokens that other locks have drawn.
func (t *tokens) raise(l *lock.Lock) {
	if known := l.HighestTokens(); t.higher(known) {
		l.KnowTokens(t.highest(known))
	}
}

// record records the tokens that a lock has drawn.
func (t *tokens) record(l *lock.Lock) {
	if t.used == nil {
		return
	}
	for i, token := range l.HighestTokens() {
		t.used[i].NoteDrawn(token)
	}
}

// higher reports whether a counter is higher than a lock knows.
func (t *tokens) higher(known []int64) bool {
	for i, counter := range t.used {
		if had := counter.Highest(); had > 0 && (i >= len(known) || had > known[i]) {
			return true
		}
	}
	return false
}

func (t *tokens) highest(known []int64) []int64 {
	all := make([]int64, len(t.used))
	copy(all, known)
	for i, counter := range t.used {
		all[i] = max(all[i], counter.Highest())
	}
	return all
}

// leave ends the use of the counters.
func (t *tokens) leave() {
	for i, counter := range t.used {
		t.of[i].server.LeaveCounter(counter)
	}
	t.used = nil
}
