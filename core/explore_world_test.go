package core_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

// A microcosm is a tiny world for exhaustive exploration: two processes with two clients
// each, one Redis, one lock. Whatever can happen next is a move; a microcosm is a value
// that can be copied, so that every move can be tried from every state.
type microcosm struct {
	s     *scenario
	now   core.Instant
	redis model.Server
	peers [peers]peer
	// late are commands that were given up, and may still arrive.
	late  []lateCommand
	spent budget
	calm  bool // the faults have stopped
	// token is the highest that a hold has had.
	token int64
	wrong string
}

const (
	peers   = 2
	callers = 2
)

// peer is a process: a lock, and what is on its way to and from it.
type peer struct {
	lock    core.Lock
	terms   uint64
	ids     uint64
	callers [callers]caller
	dead    bool
	closed  bool
	// stalled: its lock actor has crashed with effects that are still to be carried out.
	stalled bool
	// robbed is a term whose key was taken away by what the protocol cannot prevent.
	robbed uint64
	// before is the term before the present event; retaken is one that has, or has taken,
	// the lock by a late command.
	before, retaken uint64
	// out are commands on their way to Redis, in are results on their way back.
	out []core.Command
	in  []answerTo
	// notes are messages on their way.
	notes   uint8
	sub     subscribed
	channel uint64
}

// subscribed is how far a subscription has come.
type subscribed uint8

const (
	unsubscribed subscribed = iota
	subscribing
	unconfirmed
	listening
)

type answerTo struct {
	seq uint64
	core.Result
}

type lateCommand struct {
	peer    int8
	command core.Command
}

// caller is a client of a process.
type caller struct {
	state callerState
	// again is how many re-entries are asked for; dying: its owner is dead.
	again int8
	dying bool
	// request is the id of its request, id that of its hold, which ends at bound at the
	// latest unless that is 0.
	request, id uint64
	bound       core.Instant
	held        counts
	mode        core.Mode // that it gives back
}

type callerState uint8

const (
	absent callerState = iota
	asking
	holding
	givingBack
	finished
)

func (s callerState) String() string {
	return [...]string{"absent", "asking", "holding", "giving back", "finished"}[s]
}

// ref is who made a request: what a caller asked for.
type ref struct {
	caller int8 // -1: nobody's
	what   byte // acquire, re-enter, give back, cancel, force
}

func newMicrocosm(s *scenario) microcosm {
	m := microcosm{s: s, redis: model.New(s.setup)}
	for i := range m.peers {
		m.peers[i].lock = core.New(s.config, &s.kind)
	}
	return m
}

// client is whose the terms of a process are.
func (m *microcosm) client(i int8) model.Client {
	if m.s.siblings {
		return 0
	}
	return model.Client(i)
}

// newTerm numbers a term. No number is used twice by one client.
func (m *microcosm) newTerm(p *peer) uint64 {
	if m.s.siblings {
		p.terms = max(m.peers[0].terms, m.peers[1].terms)
	}
	p.terms++
	return p.terms
}

// detach makes a copy one of which nothing is shared that either may append to.
func (m *microcosm) detach() {
	m.late = slices.Clip(m.late)
	for i := range m.peers {
		p := &m.peers[i]
		p.out, p.in = slices.Clip(p.out), slices.Clip(p.in)
		p.lock.Detach()
	}
}

func (m *microcosm) violated(format string, values ...any) {
	if m.wrong == "" {
		m.wrong = fmt.Sprintf(format, values...)
	}
}

// tomorrow is when something happens by itself.
func (m *microcosm) tomorrow() (at core.Instant, ok bool) {
	soon := func(t core.Instant, is bool) {
		if is && t > m.now && (!ok || t < at) {
			at, ok = t, true
		}
	}
	for i := range m.peers {
		if p := &m.peers[i]; !p.dead {
			soon(p.lock.NextWake())
		}
	}
	soon(m.redis.NextEnd())
	return at, ok
}

// scribe writes microcosms down; see model.Encoder.
type scribe struct{ model.Encoder }

// Ref implements core.Encoder.
func (e *scribe) Ref(of any) {
	who, ok := of.(ref)
	if !ok {
		e.Number(0)
		return
	}
	e.Number(int64(who.what)<<4 + int64(who.caller) + 2)
}

func (m *microcosm) hash(e *scribe) uint64 {
	e.Begin(m.now)
	m.redis.Encode(&e.Encoder)
	for _, n := range m.spent.all() {
		e.Number(int64(n))
	}
	for i := range m.peers {
		e.For(m.client(int8(i)))
		m.peers[i].encode(e)
	}
	e.Number(int64(len(m.late)))
	for _, l := range m.late {
		e.For(m.client(l.peer))
		encodeCommand(e, &l.command, m.peers[l.peer].terms)
	}
	return e.Sum()
}

func encodeCommand(e *scribe, c *core.Command, newest uint64) {
	e.Number(int64(c.Kind))
	e.Term(c.Term)
	e.Number(int64(c.Count))
	e.Number(int64(c.Shared))
	e.Number(int64(c.Mode))
	e.Number(int64(c.Lease))
	e.Number(c.Tokens)
	e.Bool(c.Announce)
	e.Bool(c.Subscribed)
	e.Bool(c.Open)
	e.Bool(c.Take)
	e.Number(int64(newest - c.Top))
	for _, entry := range c.Entries {
		e.Term(entry.Term)
		e.Number(int64(entry.Lease))
		e.Bool(entry.Try)
	}
}

func (p *peer) encode(e *scribe) {
	e.Bool(p.dead)
	e.Number(int64(len(p.out)))
	for i := range p.out {
		e.Number(int64(p.lock.LastSeq() - p.out[i].Seq))
		encodeCommand(e, &p.out[i], p.terms)
	}
	if p.dead {
		return
	}
	e.Bool(p.closed)
	e.Bool(p.stalled)
	e.Bool(p.robbed != 0 && p.robbed == p.lock.Term())
	for i := range p.callers {
		c := &p.callers[i]
		e.Number(int64(c.state))
		e.Number(int64(c.held.exclusive))
		e.Number(int64(c.held.shared))
		e.Number(int64(c.again))
		e.Number(int64(c.mode))
		e.Bool(c.dying)
		e.Instant(c.bound)
	}
	e.Number(int64(len(p.in)))
	for i := range p.in {
		r := &p.in[i]
		e.Number(int64(p.lock.LastSeq() - r.seq))
		e.Number(int64(r.Outcome))
		e.Number(int64(r.TTL / time.Millisecond))
		e.Term(r.OwnTerm)
		e.Bool(r.Taken)
		e.Bool(r.Freed)
		e.Bool(r.Transient)
		e.Bool(r.WasHeld)
		e.Bool(r.Holder != "")
		e.Number(int64(r.Others))
	}
	e.Number(int64(p.sub))
	e.Term(p.channel)
	e.Number(int64(p.notes))
	p.lock.Encode(e, p.terms, p.ids)
}
