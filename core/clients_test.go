package core_test

import (
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// request is what a client of a process has asked for, and, for an Acquire that was
// granted, the hold.
type request struct {
	at       core.Instant
	id       uint64
	what     string
	ticket   *core.Ticket // of an Acquire
	term     uint64       // what it may stand in Redis's queue as
	hold     uint64       // of a Release: whose
	mode     core.Mode    // of a Release: which of its holds
	answered bool
	// Of a hold:
	counts     counts
	tokens     []int64
	bound      core.Instant // its own end, as it was told; 0: it has none
	good       core.Instant // the latest that it was seen to be good for
	lost, over bool
	dead       bool // its owner is
}

func (r *request) String() string { return fmt.Sprintf("%s %d", r.what, r.id) }

// request makes a request with a new id, which is also a ticket's.
func (p *process) request(what string) *request {
	p.nextID++
	return &request{at: p.w.now, id: p.nextID, what: what}
}

// ask brings a request to the lock, which from then on owes it an answer.
func (p *process) ask(r *request, name string, apply func(*core.Lock)) {
	p.event(name, func(l *core.Lock) {
		p.requests[r.id], r.term = r, p.terms
		apply(l)
	})
}

// acquire asks for the lock in one of many ways.
func (p *process) acquire() {
	t := p.w.tape
	r := p.request("acquire")
	ticket := core.Ticket{ID: r.id, Ref: r}
	switch t.pick(4) {
	case 1:
		ticket.Owner = core.Owner(1 + t.pick(3))
	case 2, 3:
		if ticket.Owner = 1; len(p.holds) > 0 {
			ticket.Owner = p.some().ticket.Owner
		}
	}
	ticket.Once = ticket.Owner != 0 && t.pick(8) == 1
	ticket.Fenced = p.w.kind.Parts || p.w.kind.Tokens > 0 && t.pick(2) == 1
	if p.w.kind.Shares && t.pick(5) > 1 {
		ticket.Mode = core.Shared
	}
	ticket.Lease = oneOf(t, 0, 0, 0, 0, 50*ms, 500*ms, 2*sec, 10*sec, 20*sec)
	if ticket.Lease == 0 {
		ticket.MaxHold = oneOf(t, 0, 0, 0, 10*ms, 300*ms, 4*sec)
	}
	if len(p.holds) > 0 && t.pick(2) == 1 { // what nearly every re-entry with them would be refused for
		ticket.Lease, ticket.MaxHold = 0, 0
	}
	switch t.pick(6) {
	case 1:
		ticket.Try = true
	case 2:
		ticket.Deadline = p.w.now + oneOf(t, 300*ms, 0, ms, 20*ms, 2*sec)
	}
	r.ticket = &ticket
	name := fmt.Sprintf("acquire %d: %s, owner %d, once %v, lease %v, max hold %v, try %v, until %v",
		ticket.ID, modes[ticket.Mode], ticket.Owner, ticket.Once, ticket.Lease, ticket.MaxHold, ticket.Try, ticket.Deadline)
	p.ask(r, name, func(l *core.Lock) { l.Acquire(p.w.now, ticket) })
}

var modes = [...]string{"exclusive", "shared"}

// release gives back one of the present holds, by its id or by its owner.
func (p *process) release(byOwner bool) {
	if len(p.holds) > 0 {
		p.releaseHold(p.some(), byOwner)
	}
}

// releaseHold gives back a hold once, in a mode that it is held in; of both modes,
// either may be first.
func (p *process) releaseHold(h *request, byOwner bool) {
	if h.dead {
		return
	}
	r := p.request("release")
	id, owner := h.id, core.Owner(0)
	r.hold, r.mode = id, core.Exclusive
	if c := h.counts; c.exclusive == 0 || c.shared > 0 && p.w.tape.pick(3) == 1 {
		r.mode = core.Shared
	}
	if byOwner && h.ticket.Owner != 0 {
		id, owner = 0, h.ticket.Owner
	}
	p.ask(r, fmt.Sprintf("release %d of hold %d, %s", r.id, r.hold, modes[r.mode]), func(l *core.Lock) { l.Release(p.w.now, id, owner, r.mode, r) })
}

// releaseAny gives back something that may never have been held.
func (p *process) releaseAny() {
	r := p.request("release")
	r.hold = uint64(1 + p.w.tape.pick(int(min(p.nextID, 200))))
	if p.w.kind.Shares && p.w.tape.pick(2) == 1 {
		r.mode = core.Shared
	}
	p.ask(r, fmt.Sprintf("release %d of hold %d, perhaps over", r.id, r.hold), func(l *core.Lock) { l.Release(p.w.now, r.hold, 0, r.mode, r) })
}

func (p *process) cancel() {
	open := p.open()
	var id uint64
	var owner core.Owner
	if n := len(open); n > 0 {
		victim := open[p.w.tape.pick(min(n, 256))]
		if id = victim.id; victim.ticket != nil && victim.ticket.Owner != 0 && p.w.tape.pick(2) == 1 {
			id, owner = 0, victim.ticket.Owner
		}
	}
	r := p.request("cancel")
	p.ask(r, fmt.Sprintf("cancel %d of request %d, owner %d", r.id, id, owner), func(l *core.Lock) { l.Cancel(p.w.now, id, owner, r) })
}

func (p *process) ownerGone() {
	if !p.w.faults.owners {
		return
	}
	owner := core.Owner(1 + p.w.tape.pick(3))
	if len(p.holds) > 0 && p.w.tape.pick(2) == 1 {
		owner = p.some().ticket.Owner
	}
	if owner == 0 {
		return
	}
	p.event(fmt.Sprintf("owner %d is gone", owner), func(l *core.Lock) {
		// What it asked for is no longer owed an answer.
		for id, r := range p.requests {
			if r.ticket != nil && r.ticket.Owner == owner {
				delete(p.requests, id)
			}
		}
		for _, h := range p.holds {
			if h.ticket.Owner == owner {
				h.dead = true
			}
		}
		l.OwnerGone(p.w.now, owner)
	})
}

func (p *process) ensure() {
	r := p.request("ensure")
	id := uint64(p.w.tape.pick(int(min(p.nextID, 200))))
	if len(p.holds) > 0 {
		id = p.some().id
	}
	d := oneOf(p.w.tape, 100*ms, 0, p.w.cfg.Lease-core.Margin(p.w.cfg.Lease), p.w.cfg.Lease/2, p.w.cfg.Lease)
	p.ask(r, fmt.Sprintf("ensure %d: hold %d for %v", r.id, id, d), func(l *core.Lock) { l.Ensure(p.w.now, id, d, r) })
}

func (p *process) forceRelease() {
	if !p.w.faults.robbed {
		return
	}
	r := p.request("force")
	if p.w.kind.Shares && p.w.tape.pick(2) == 1 {
		r.mode = core.Shared
	}
	p.ask(r, fmt.Sprintf("force release %d, %s", r.id, modes[r.mode]), func(l *core.Lock) { l.ForceRelease(p.w.now, r.mode, r) })
}

func (p *process) close() {
	if p.w.faults.closed {
		p.closed = true
		p.event("close", func(l *core.Lock) { l.Close(p.w.now) })
	}
}

// kill ends the process at once.
func (p *process) kill() {
	if !p.w.faults.killed {
		return
	}
	p.w.logf("%s is killed", p.uuid)
	p.end()
}

func (p *process) end() {
	p.dead, p.holds, p.mail = true, nil, nil
	clear(p.requests)
	p.w.redis.Hangup(p.client)
}

// giveUp gives the lock up, as the shell does when it cannot go on: everyone is told,
// and what the lock leaves in Redis is released.
func (p *process) giveUp() {
	w := p.w
	if !w.faults.givenUp {
		return
	}
	w.logf("%s gives its lock up", p.uuid)
	p.checkEveryone()
	farewell := p.lock.Farewell(w.now)
	p.end()
	// What was sent before has arrived by then.
	w.after(10*sec, func() {
		if w.redis.frozenUntil > w.now {
			return
		}
		for _, c := range farewell {
			w.redis.run(p, c)
		}
		for i := range w.redis.Parts() {
			for _, owner := range w.redis.Part(i).Holders() {
				if owner.Client == p.client && !w.faults.rejected && !w.faults.late && !w.faults.lost && !w.faults.frozen && !w.faults.slow {
					w.violated("%s has given up, but %s still holds the lock", p.uuid, owner.Owner)
				}
			}
		}
		for _, waiter := range w.redis.Part(0).Queue() {
			if waiter.Client == p.client && !p.ghosts[waiter.Owner] && !w.faults.rejected {
				w.violated("%s has given up, but %s still waits in the queue", p.uuid, waiter.Owner)
			}
		}
	})
}

// answered checks an answer against its request, and lets a new holder plan.
func (p *process) answered(r *request, a core.Answer) {
	p.w.logf("%s: %v is answered: %s", p.uuid, r, describeAnswer(a))
	if r.answered {
		p.w.violated("%s: %v is answered twice", p.uuid, r)
	}
	r.answered = true
	delete(p.requests, r.id)
	switch a.Kind {
	case core.Granted:
		p.granted(r, a)
	case core.NotGranted, core.NotFreed, core.NotDone:
		if a.Reason == 0 || a.Detail == "" {
			p.w.violated("%s: %v is refused without a reason: %+v", p.uuid, r, a)
		}
	case core.Freed:
		p.freed(r, a)
	}
	switch a.Kind {
	case core.NotGranted:
		p.refused(r, a)
	case core.NotFreed:
		p.gaveBack(r, a)
	}
	if want := kinds[r.what]; a.Kind != want[0] && a.Kind != want[1] {
		p.w.violated("%s: %v cannot be answered by %v", p.uuid, r, a.Kind)
	}
}

var kinds = map[string][2]core.AnswerKind{
	"acquire": {core.Granted, core.NotGranted},
	"release": {core.Freed, core.NotFreed},
	"cancel":  {core.Withdrawn},
	"ensure":  {core.Ensured, core.NotDone},
	"force":   {core.Forced, core.NotDone},
}

func describeAnswer(a core.Answer) string {
	name := [...]string{"?", "granted", "not granted", "freed", "not freed", "withdrawn", "forced", "ensured", "not done"}[a.Kind]
	return fmt.Sprintf("%s, hold %d, count %d, until %v, tokens %v, %v %s", name, a.HoldID, a.Count, a.Until, a.Tokens, a.Reason, a.Detail)
}

// planned lets a new holder decide what becomes of its hold.
func (p *process) planned(hold *request) {
	w := p.w
	d := oneOf(w.tape, ms, 0, 20*ms, 300*ms, 3*sec)
	again := func() {
		if p.holding(hold.id) == hold {
			p.releaseHold(hold, w.tape.pick(2) == 1)
		}
	}
	switch w.tape.pick(4) {
	case 0: // released
		w.after(d, again)
	case 1: // released twice
		w.after(d, again)
		w.after(d, again)
	case 2: // released until it is over
		var repeat func()
		repeat = func() {
			if p.holding(hold.id) == hold {
				if w.now >= p.pausedUntil { // a client does not ask again and again before it is answered
					p.releaseHold(hold, false)
				}
				w.after(10*ms, repeat)
			}
		}
		w.after(d, repeat)
	case 3: // forgotten
	}
}
