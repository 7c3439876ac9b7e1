package core_test

import (
	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

// event applies an event to a process's lock, and carries out what follows.
func (m *microcosm) event(i int8, event func(*core.Lock)) {
	m.apply(i, event)
	m.carryOut(i, -1)
	m.check(i)
}

func (m *microcosm) apply(i int8, event func(*core.Lock)) {
	p := &m.peers[i]
	m.refill(p)
	p.before = p.lock.Term()
	event(&p.lock)
}

func (m *microcosm) refill(p *peer) {
	if !p.lock.SpareTerm() {
		p.lock.Refill(m.newTerm(p))
	}
}

// inVain applies an event to a copy that is thrown away, as when the lock actor crashes:
// the original must not notice.
func (m *microcosm) inVain(i int8, event func(*core.Lock)) {
	p := &m.peers[i]
	m.refill(p)
	before := dump(p.lock)
	scratch := p.lock
	event(&scratch)
	if dump(p.lock) != before {
		m.violated("an event on a copy has changed the original")
	}
}

// carryOut carries out so many effects, or all of them.
func (m *microcosm) carryOut(i int8, most int) {
	p := &m.peers[i]
	for ; most != 0; most-- {
		e, more := p.lock.Effects()
		if !more {
			p.stalled = false
			break
		}
		switch e.Kind {
		case core.Send:
			p.out = append(p.out, e.Command)
		case core.Reply:
			m.answered(i, e.Ref.(ref), e.Answer)
		case core.TellLost:
			m.lost(i, e.Ref.(ref), e.Answer)
		case core.Over:
			c := &p.callers[e.Ref.(ref).caller]
			if c.held == (counts{}) {
				m.violated("a hold of p%d is over twice", i)
			}
			if c.held = (counts{}); c.state == holding {
				c.state = finished
			}
		case core.Subscribe:
			p.channel = e.Term
			if p.sub == unsubscribed {
				p.sub = subscribing
			} else if p.sub == listening {
				p.sub = unconfirmed
			}
		case core.Unsubscribe:
			m.redis.Unsubscribe(m.client(int8(i)), m.channel(i))
			p.sub, p.notes, p.channel = unsubscribed, 0, 0
		}
	}
}

// channel is what a process listens to: in a fair lock, every waiter has its own.
func (m *microcosm) channel(i int8) model.Owner {
	if m.s.kind.Queued {
		return model.Owner{Client: m.client(int8(i)), Term: m.peers[i].channel}
	}
	return model.Owner{}
}

// execute has Redis, or one part of the lock alone, carry out a command.
func (m *microcosm) execute(i int8, part int, c core.Command) core.Result {
	before := m.redis
	var r core.Result
	var told []model.Publication
	if part < 0 {
		r, told = m.redis.Run(m.client(int8(i)), c)
	} else {
		r, told = m.redis.RunPart(m.client(int8(i)), part, c)
	}
	for _, t := range told {
		for j := range m.peers {
			if p := &m.peers[j]; m.redis.Hears(m.client(int8(j)), t) {
				p.notes = min(p.notes+1, 2)
			}
		}
	}
	if c.Kind == core.ForceRelease {
		m.rob(&before)
	}
	if c.Kind == core.Enrol {
		m.checkTurn(&before)
	}
	return r
}

// answered takes the end of a request to its client.
func (m *microcosm) answered(i int8, r ref, a core.Answer) {
	if r.caller < 0 || r.what == 'c' {
		return
	}
	c := &m.peers[i].callers[r.caller]
	if c.dying && r.what != 'r' {
		if a.Kind == core.Granted {
			m.violated("client %d of p%d is dead, and gets the lock", r.caller, i)
		}
		return // it was refused for another reason before its death was heard of
	}
	switch r.what {
	case 'a':
		if c.state != asking {
			m.violated("client %d of p%d is answered %v though it is not asking", r.caller, i, a.Kind)
		}
		if c.state = finished; a.Kind == core.Granted {
			m.granted(i, r.caller, a)
		}
	case 'e':
		if c.again--; c.again < 0 {
			m.violated("a re-entry of client %d of p%d is answered twice", r.caller, i)
		}
		switch {
		case a.Kind != core.Granted:
		case a.HoldID != c.id || c.held == counts{}: // its hold was over: this is a new one
			m.granted(i, r.caller, a)
		default:
			c.bound = a.Bound
			if c.held = plus(c.held, m.s.again, 1); a.Count != c.held.in(m.s.again) {
				m.violated("client %d of p%d re-enters with count %d, but it holds %v", r.caller, i, a.Count, c.held)
			}
		}
	case 'r':
		if c.state != givingBack {
			m.violated("client %d of p%d is answered a release that it does not await", r.caller, i)
		}
		if a.Kind == core.Freed && c.held == (counts{}) && !a.HandedOn {
			m.checkFreed(i)
		}
		gaveBack := a.Kind == core.Freed || a.Reason == core.Unavailable || a.Reason == core.Rejected
		if gaveBack && c.held != (counts{}) && !c.dying {
			if c.held = plus(c.held, c.mode, -1); a.Kind == core.Freed && c.held.total() != a.Count {
				m.violated("client %d of p%d is left with count %d, but it holds %v", r.caller, i, a.Count, c.held)
			}
		}
		if c.state = finished; c.held != (counts{}) {
			c.state = holding
		}
	}
}

// granted gives a client its hold.
func (m *microcosm) granted(i, who int8, a core.Answer) {
	p := &m.peers[i]
	c := &p.callers[who]
	mode := m.s.callers[i][who].Mode
	if c.request != a.HoldID {
		mode = m.s.again
	}
	for j := range p.callers {
		other := &p.callers[j]
		if other.held != (counts{}) && (mode == core.Exclusive || other.held.exclusive > 0) {
			m.violated("clients %d and %d of p%d hold the lock", j, who, i)
		}
		if other.state == asking && !other.dying && other.request < a.HoldID && !m.s.kind.Queued && !m.over(i, j) {
			m.violated("client %d of p%d is served before client %d", who, i, j)
		}
	}
	c.state, c.held, c.id, c.bound = holding, plus(counts{}, mode, 1), a.HoldID, a.Bound
	if t := &m.s.callers[i][who]; (t.Lease > 0 || t.MaxHold > 0) && (a.Bound == 0 || a.Bound > m.now+max(t.Lease, t.MaxHold)) {
		m.violated("client %d of p%d is bound until %v at %v", who, i, a.Bound, m.now)
	}
	if asked := m.s.callers[i][who].Fenced; asked && len(a.Tokens) != m.s.kind.Tokens || !asked && len(a.Tokens) > 0 {
		m.violated("client %d of p%d is granted with tokens %v", who, i, a.Tokens)
	}
	if len(a.Tokens) > 0 && a.Until > m.now {
		m.grow(i, a.Tokens[0])
	}
}

// over reports whether a client's wait is over, though it has not been told yet.
func (m *microcosm) over(i int8, who int) bool { return m.s.callers[i][who].Deadline > 0 }

// grow checks that tokens grow from hold to hold, unless Redis has forgotten them.
func (m *microcosm) grow(i int8, token int64) {
	switch p := &m.peers[i]; {
	case token > m.token || m.spent.restarts > 0:
		m.token = token
	case p.robbed != p.lock.Term():
		m.violated("p%d grants with token %d after token %d", i, token, m.token)
	}
}

// lost tells a client of the loss of its hold.
func (m *microcosm) lost(i int8, r ref, a core.Answer) {
	c := &m.peers[i].callers[r.caller]
	if c.held == (counts{}) {
		m.violated("client %d of p%d has lost a lock that it does not hold", r.caller, i)
	}
	if n := &m.spent; (a.Reason == core.Taken || a.Reason == core.Gone) && n.forces+n.flushes+n.restarts == 0 {
		m.violated("p%d: the lock was lost to somebody else, or gone, while its holder trusted it", i)
	}
}
