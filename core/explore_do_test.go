package core_test

import (
	"errors"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

var errLate = errors.New("no reply in time")

// do lets a move happen.
func (m *microcosm) do(a move) {
	p := &m.peers[a.p]
	switch a.what {
	case 'a', 'e', 'r', 'q', 'c', 'O':
		m.wish(a)
	case 'G':
		m.spent.forces++
		m.event(a.p, func(l *core.Lock) { l.ForceRelease(m.now, core.Exclusive, ref{-1, 'f'}) })
	case 'X':
		m.spent.closes++
		p.closed = true
		m.event(a.p, func(l *core.Lock) { l.Close(m.now) })
	case 'D', 'x', 'y', 'z', 'h', 'o', 'v':
		m.arrive(a)
	case 'L':
		late := m.late[a.i]
		m.late = slices.Concat(m.late[:a.i], m.late[a.i+1:])
		m.execute(late.peer, -1, late.command)
		m.peers[late.peer].retaken = m.holder(late.peer)
	case 'P', 'C', 'k':
		m.reply(a)
	case 'R':
		p.stalled = false
		p.lock.Detach() // from others that have the same effects to carry out
		m.carryOut(a.p, -1)
		m.checkTrust()
	case 'N':
		p.notes--
		m.event(a.p, func(l *core.Lock) { l.Signal(m.now) })
	case 'n':
		m.spent.faults++
		p.notes--
	case 'S':
		p.sub = unconfirmed
		m.redis.Subscribe(m.client(a.p), m.channel(a.p))
	case 's':
		p.sub = listening
		m.event(a.p, func(l *core.Lock) { l.Subscribed(m.now, p.channel) })
	case 'T':
		m.event(a.p, func(l *core.Lock) { l.Tick(m.now) })
	case '+', '!':
		if a.what == '!' {
			m.spent.pauses++
		}
		if m.s.most.times > 0 && !m.calm {
			m.spent.times++
		}
		m.now, _ = m.tomorrow()
		m.redis.At(m.now)
		m.checkTrust()
	case 'F', 'E':
		m.forget(a)
	case 'K':
		m.spent.kills++
		p.dead, p.in, p.notes, p.sub = true, nil, 0, unsubscribed
		m.redis.Hangup(m.client(a.p))
	}
}

// wish lets a client want something.
func (m *microcosm) wish(a move) {
	p := &m.peers[a.p]
	c := &p.callers[a.i]
	t := m.s.callers[a.p][a.i]
	p.ids++
	t.ID, t.Ref = p.ids, ref{a.i, a.what}
	if t.Deadline > 0 {
		t.Deadline += m.now
	}
	switch a.what {
	case 'a':
		c.state, c.request = asking, t.ID
		m.event(a.p, func(l *core.Lock) { l.Acquire(m.now, t) })
	case 'e':
		m.spent.reentries++
		c.again++
		t.Mode = m.s.again
		m.event(a.p, func(l *core.Lock) { l.Acquire(m.now, t) })
	case 'r', 'q':
		c.state, c.mode = givingBack, core.Exclusive
		if a.what == 'q' {
			c.mode = core.Shared
		}
		m.event(a.p, func(l *core.Lock) { l.Release(m.now, c.id, 0, c.mode, ref{a.i, 'r'}) })
	case 'c':
		m.spent.cancels++
		m.event(a.p, func(l *core.Lock) { l.Cancel(m.now, c.request, 0, ref{a.i, 'c'}) })
	case 'O':
		m.spent.deaths++
		c.dying, c.again = true, 0
		m.event(a.p, func(l *core.Lock) { l.OwnerGone(m.now, t.Owner) })
	}
}

// arrive decides what becomes of a command on its way.
func (m *microcosm) arrive(a move) {
	p := &m.peers[a.p]
	c := p.out[0]
	p.out = p.out[1:]
	r := core.Result{Outcome: core.Failed, Err: errLate, Transient: true, Unsure: true}
	switch a.what {
	case 'D':
		r = m.execute(a.p, -1, c)
	case 'x':
		m.execute(a.p, -1, c)
	case 'z':
		m.late = append(m.late, lateCommand{a.p, c})
	case 'h':
		m.execute(a.p, int(a.i), c)
	case 'o':
		r.Unsure = false
	case 'v':
		r.Unsure, r.Transient = false, false
	}
	if m.now > c.Deadline && !p.dead {
		p.retaken = m.holder(a.p) // it has come too late
	}
	switch a.what {
	case 'D':
	case 'o', 'v':
		m.spent.errors++
	default:
		m.spent.faults++
	}
	if !p.dead {
		p.in = append(p.in, answerTo{c.Seq, r})
	}
}

// reply brings a result to its lock, whose actor may crash over it: before it is done with
// it, so that it comes again, behind the others; or after that, with effects left to be
// carried out.
func (m *microcosm) reply(a move) {
	p := &m.peers[a.p]
	r := p.in[0]
	p.in = p.in[1:]
	if a.what != 'P' {
		m.spent.crashes++
	}
	replied := func(l *core.Lock) { l.Replied(m.now, r.seq, r.Result) }
	switch a.what {
	case 'P':
		m.event(a.p, replied)
	case 'C':
		p.in = append(p.in, r)
		m.inVain(a.p, replied)
	case 'k':
		p.stalled = true
		m.apply(a.p, replied)
		m.carryOut(a.p, 1)
	}
}

// forget deletes a key, or all there are.
func (m *microcosm) forget(a move) {
	before := m.redis
	if a.what == 'F' {
		m.spent.flushes++
		m.redis.Delete(int(a.i))
	} else {
		m.spent.restarts++
		m.redis.Restart()
		for i := range m.peers {
			if p := &m.peers[i]; p.sub != unsubscribed {
				p.sub = subscribing
			}
		}
	}
	m.rob(&before)
}

// rob takes note of those who have lost a key that they may trust.
func (m *microcosm) rob(before *model.Server) {
	for i := range m.redis.Parts() {
		for _, h := range before.Part(i).Holders() {
			if m.redis.Part(i).Of(h.Owner) == (model.Counts{}) {
				m.peers[h.Client].robbed = h.Term
			}
		}
	}
}
