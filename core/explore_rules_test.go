package core_test

import (
	"fmt"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

// check looks after what must hold after every event of a process.
func (m *microcosm) check(i int8) {
	p := &m.peers[i]
	m.checkTrust()
	m.checkTidy(i)
	s := p.lock.Snapshot()
	if s.HeldHere && s.Until <= m.now {
		m.violated("a hold of p%d outlives its lease", i)
	}
	var pending []any
	for id := range p.callers {
		c := &p.callers[id]
		if c.held != (counts{}) && !s.HeldHere {
			m.violated("client %d of p%d has not heard that its hold is over", id, i)
		}
		if c.state != asking || c.dying {
			continue
		}
		if pending == nil {
			_, pending = p.lock.Everyone()
		}
		if !slices.Contains(pending, any(ref{int8(id), 'a'})) {
			m.violated("nobody will answer client %d of p%d", id, i)
		}
	}
}

// checkTrust compares what the processes trust with what Redis says: who trusts a lease
// must have it, unless it was robbed, and who trusts an exclusive hold is alone.
func (m *microcosm) checkTrust() {
	trusted, exclusive := 0, false
	for i := range m.peers {
		p := &m.peers[i]
		until := p.lock.LeaseUntil()
		if p.dead || m.now >= until {
			continue
		}
		reads, writes := 0, 0
		for j := range p.callers {
			c := &p.callers[j]
			switch {
			case c.held == counts{} || c.dying || c.bound != 0 && m.now >= c.bound:
			case c.held.exclusive > 1 || c.held.exclusive == 1 && (c.state != givingBack || c.mode != core.Exclusive):
				writes++
			default:
				reads++
			}
		}
		if reads+writes == 0 {
			continue
		}
		o := model.Owner{Client: m.client(int8(i)), Term: p.lock.Term()}
		if !m.has(o, until, writes > 0) {
			if p.robbed != o.Term {
				m.violated("p%d trusts its lease until %v, but Redis has %+v", i, until, m.redis.Parts())
			}
			continue
		}
		trusted += reads + writes
		exclusive = exclusive || writes > 0
	}
	if exclusive && trusted > 1 {
		m.violated("a hold is exclusive, and %d are trusted", trusted)
	}
}

// checkTidy checks that a process that has nothing left to do holds nothing in Redis, except
// what a late command has taken, or what Redis does not let it release.
func (m *microcosm) checkTidy(i int8) {
	p := &m.peers[i]
	if m.spent.errors > 0 || len(p.out) > 0 || !p.lock.Idle() {
		return
	}
	if term := m.holder(i); term != 0 && term != p.retaken {
		m.violated("p%d has come to rest, but in Redis its term %d holds the lock", i, term)
	}
}

// checkFreed checks that what is said to be free is not held any more, unless a late
// command has taken it again.
func (m *microcosm) checkFreed(i int8) {
	p := &m.peers[i]
	o := model.Owner{Client: m.client(int8(i)), Term: p.before}
	for part := range m.redis.Parts() {
		if held := m.redis.Part(part).Of(o); held != (model.Counts{}) && p.retaken != p.before && p.before != 0 {
			m.violated("p%d says that the lock is free, but Redis has %+v", i, m.redis.Part(part).Holders())
		}
	}
}

// holder is a term of the process that holds some part of the lock, 0 if there is none.
func (m *microcosm) holder(i int8) uint64 {
	for part := range m.redis.Parts() {
		for _, h := range m.redis.Part(part).Holders() {
			if h.Client == m.client(int8(i)) {
				return h.Term
			}
		}
	}
	return 0
}

// has reports whether Redis knows of an owner until then.
func (m *microcosm) has(o model.Owner, until core.Instant, exclusive bool) bool {
	for i := range m.redis.Parts() {
		l := m.redis.Part(i)
		if held := l.Of(o); held == (model.Counts{}) || exclusive && held.Exclusive == 0 || l.Lasts(o) < until {
			return false
		}
	}
	return true
}

// checkTurn checks, when somebody has taken a fair lock, that all who stood before it in
// the queue have left, or count as dead.
func (m *microcosm) checkTurn(before *model.Server) {
	l := m.redis.Part(0)
	if l.Free() || before.Part(0).Of(l.Holders()[0].Owner) != (model.Counts{}) {
		return
	}
	for _, w := range before.Part(0).Queue() {
		if w.Owner == l.Holders()[0].Owner {
			return
		}
		if p := &m.peers[w.Client]; !p.dead && w.Timeout > m.redis.Clock() && p.lock.Waits(w.Term) {
			m.violated("%v gets the lock before %v", l.Holders()[0].Owner, w.Owner)
		}
	}
}

// settle runs a microcosm to its end without any more faults: everybody who waits must be
// served, and nothing may be left.
func (m *microcosm) settle() string {
	m.calm = true
	var list []move
	for range 5000 {
		if m.wrong != "" {
			return m.wrong
		}
		var a move
		for _, candidate := range m.moves(list[:0]) {
			switch candidate.what {
			case 'D', 'P', 'N', 'S', 's', 'T', 'r', 'q', '+', 'L', 'R':
				if a.what == 0 || a.what == '+' {
					a = candidate
				}
			}
		}
		if a.what == 0 {
			break
		}
		m.do(a)
	}
	for i := range m.peers {
		p := &m.peers[i]
		if p.dead {
			continue
		}
		for id, c := range p.callers {
			if !c.dying && c.state != absent && c.state != finished || c.again != 0 {
				return fmt.Sprintf("client %d of p%d is never served: it is %v", id, i, c.state)
			}
		}
		if !p.lock.Idle() {
			return fmt.Sprintf("p%d never comes to rest: %s", i, dump(p.lock))
		}
	}
	for i := range m.redis.Parts() {
		l := m.redis.Part(i)
		if !l.Free() {
			return "the key stays"
		}
		for _, w := range l.Queue() {
			if p := &m.peers[w.Client]; !p.dead && m.spent.faults+m.spent.errors == 0 {
				return fmt.Sprintf("%v is left behind in the queue", w.Owner)
			}
		}
	}
	if m.redis.Ears() > 0 {
		return "somebody still listens"
	}
	return m.wrong
}
