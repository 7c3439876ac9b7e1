package core

import (
	"fmt"
	"slices"
	"time"
)

// A tiny world for exhaustive exploration: two processes with two clients each, one
// Redis, one lock. Whatever can happen next is an action; a world is a value that can
// be copied, so that every action can be tried from every state.

// scenario says what may happen in a world.
type scenario struct {
	name    string
	clients [processes][clients]Ticket
	// How many of each may happen.
	faults, cancels, reentries, forces, flushes, kills, pauses int8
}

const (
	processes = 2
	clients   = 2
)

var tinyConfig = Config{
	Lease: 1000 * time.Millisecond, Renewal: 400 * time.Millisecond, Tenure: 50 * time.Millisecond, Opening: time.Hour,
	Poll: 600 * time.Millisecond, CallTimeout: 200 * time.Millisecond, QueueLimit: 10,
}

type clientState uint8

const (
	absent clientState = iota
	asking
	holdingLock
	givingBack
	finished
)

type client struct {
	state clientState
	// count is how often it holds, re is how many re-entries are asked for.
	count, re int8
	// request is the id of its request, id that of its hold.
	request, id uint64
}

type process struct {
	lock    Lock
	terms   uint64
	ids     uint64
	dead    bool
	clients [clients]client
	// out are commands on their way to Redis, in are results on their way back.
	out []Command
	in  []result
	// sub: 0 none, 1 asked for, 2 subscribed and not confirmed, 3 confirmed.
	sub, notes uint8
}

type result struct {
	seq uint64
	Result
}

// owner is a field in Redis; term 0 is no field.
type fieldOf struct {
	process int8
	term    uint64
}

type world struct {
	s         *scenario
	now       Instant
	processes [processes]process
	// The key: its one field, count and expiry.
	held      fieldOf
	count     int
	expiresAt Instant
	// late are commands that were given up, and may still arrive.
	late  []lateCommand
	spent scenario
	wrong string
}

type lateCommand struct {
	process int8
	command Command
}

func newWorld(s *scenario) world {
	w := world{s: s}
	for i := range w.processes {
		w.processes[i].lock = New(&tinyConfig, &Kind{})
	}
	return w
}

// clone is a copy of which nothing is shared that either may append to.
func (w *world) clone() world {
	c := *w
	c.late = slices.Clip(c.late)
	for i := range c.processes {
		p := &c.processes[i]
		p.out, p.in = slices.Clip(p.out), slices.Clip(p.in)
		l := &p.lock
		l.queue.tickets, l.changes, l.ensures = slices.Clip(l.queue.tickets), slices.Clip(l.changes), slices.Clip(l.ensures)
		l.lost.ids, l.holds.more, l.effects, l.sides = slices.Clip(l.lost.ids), slices.Clip(l.holds.more), slices.Clip(l.effects), slices.Clip(l.sides)
	}
	return c
}

func (w *world) violated(format string, values ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, values...)
	}
}

// ref is who made a request: what a client asked for.
type ref struct {
	client int8 // -1: nobody's
	what   byte // acquire, re-enter, release, cancel, force
}

// event applies an event to a process's lock, and carries out what follows.
func (w *world) event(i int, event func(*Lock)) {
	p := &w.processes[i]
	if !p.lock.SpareTerm() {
		p.terms++
		p.lock.Refill(p.terms)
	}
	event(&p.lock)
	for {
		e, more := p.lock.Effects()
		if !more {
			break
		}
		switch e.Kind {
		case Send:
			p.out = append(p.out, e.Command)
		case Reply:
			w.answered(p, e.Ref.(ref), e.Answer)
		case TellLost:
			w.lost(i, e.Ref.(ref), e.Answer)
		case Subscribe:
			p.sub = max(p.sub, 1)
			if p.sub == 3 {
				p.sub = 2
			}
		case Unsubscribe:
			p.sub, p.notes = 0, 0
		}
	}
	w.check(i)
}

func (w *world) answered(p *process, r ref, a Answer) {
	if r.client < 0 {
		return
	}
	c := &p.clients[r.client]
	switch r.what {
	case 'a':
		if c.state != asking {
			w.violated("client %d is answered %v though it is not asking", r.client, a.Kind)
		}
		if c.state = finished; a.Kind == Granted {
			c.state, c.count, c.id = holdingLock, 1, a.HoldID
			for j, other := range p.clients {
				if j != int(r.client) && (other.state == holdingLock || other.state == givingBack && other.count > 0) {
					w.violated("clients %d and %d of one process hold the lock", j, r.client)
				}
			}
		}
	case 'e':
		if c.re--; c.re < 0 {
			w.violated("a re-entry of client %d is answered twice", r.client)
		}
		switch {
		case a.Kind == Granted && a.Count > 1:
			c.count++
		case a.Kind == Granted: // its hold was over: this is a new one
			c.state, c.count, c.id = holdingLock, 1, a.HoldID
		}
	case 'r':
		if c.state != givingBack {
			w.violated("client %d is answered a release that it does not await", r.client)
		}
		if c.count = int8(a.Count); a.Kind == NotFreed {
			c.count = 0
		}
		if c.state = finished; c.count > 0 {
			c.state = holdingLock
		}
	}
}

func (w *world) lost(i int, r ref, a Answer) {
	c := &w.processes[i].clients[r.client]
	if c.count == 0 {
		w.violated("client %d lost a lock that it does not hold", r.client)
	}
	if c.count = 0; c.state == holdingLock {
		c.state = finished
	}
	if a.Reason == Taken && w.spent.forces+w.spent.flushes == 0 && w.spent.pauses == 0 {
		w.violated("the lock was taken from a holder who trusted it")
	}
}

// trusts tells whether a client of the process has the lock as far as it can know.
func (w *world) trusts(i int) bool {
	p := &w.processes[i]
	return !p.dead && p.lock.holds.len() > 0 && w.now < p.lock.holdUntil(p.lock.holds.first)
}

// check looks after what must hold after every event of a process.
func (w *world) check(i int) {
	p := &w.processes[i]
	if w.trusts(0) && w.trusts(1) && w.spent.forces+w.spent.flushes == 0 {
		w.violated("both processes trust their lease")
	}
	if p.lock.holds.len() > 1 {
		w.violated("more than one hold")
	}
	if p.lock.holds.len() > 0 && p.lock.now >= p.lock.lease.until {
		w.violated("a hold outlives its lease")
	}
	for id, c := range p.clients {
		if c.state == asking && !p.owes(ref{int8(id), 'a'}) {
			w.violated("nobody will answer client %d", id)
		}
	}
	// Those who wait are served in their order, since nobody here only tries.
	for i := 1; i < len(p.lock.queue.tickets); i++ {
		if p.lock.queue.tickets[i-1].ID > p.lock.queue.tickets[i].ID {
			w.violated("the queue is out of order")
		}
	}
}

func (p *process) owes(r ref) bool {
	_, pending := p.lock.Everyone()
	return slices.Contains(pending, any(r))
}

// What Redis does with our scripts.

func (w *world) expire() {
	if w.held.term != 0 && w.now >= w.expiresAt {
		w.held = fieldOf{}
	}
}

func (w *world) set(f fieldOf, count int, lease time.Duration) {
	w.held, w.count, w.expiresAt = f, count, w.now+lease
}

func (w *world) publish() {
	for i := range w.processes {
		if w.processes[i].sub >= 2 {
			w.processes[i].notes = min(w.processes[i].notes+1, 2)
		}
	}
}

func (w *world) execute(i int8, c Command) Result {
	w.expire()
	me := fieldOf{i, c.Term}
	mine := w.held == me
	switch c.Kind {
	case Acquire:
		switch {
		case w.held.term == 0 && c.Count != 1:
			return Result{Outcome: Absent}
		case w.held.term != 0 && !mine:
			r := Result{Outcome: Refused, TTL: w.expiresAt - w.now, Holder: fmt.Sprint(w.held.process)}
			if w.held.process == i {
				r.OwnTerm = w.held.term
			}
			return r
		}
		w.set(me, c.Count, c.Lease)
	case Release:
		switch {
		case !mine:
			return Result{Outcome: Absent}
		case c.Count == 0:
			w.held = fieldOf{}
			w.publish()
		default:
			w.set(me, c.Count, c.Lease)
		}
	case Renew:
		if !mine {
			return Result{Outcome: Absent, Taken: w.held.term != 0}
		}
		w.expiresAt = w.now + c.Lease
	case Yield:
		if !mine {
			return Result{Outcome: Absent}
		}
		others := 0
		for j := range w.processes {
			if w.processes[j].sub >= 2 {
				others++
			}
		}
		if c.Subscribed {
			others--
		}
		if others > 0 || c.Open {
			w.held = fieldOf{}
			w.publish()
			return Result{Outcome: Done, Others: max(others, 0)}
		}
		w.set(me, 1, c.Lease)
		return Result{Outcome: Kept}
	case ForceRelease:
		was := w.held.term != 0
		if w.held = (fieldOf{}); was {
			w.publish()
		}
		return Result{Outcome: Done, WasHeld: was}
	}
	return Result{Outcome: Done}
}
