package core_test

import (
	"maps"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

// process is one process of a world: a lock, and the shell around it.
type process struct {
	w      *world
	uuid   string
	client model.Client
	lock   core.Lock
	terms  uint64

	// wakes counts the timers, so that only the last one rings.
	wakes          uint64
	pausedUntil    core.Instant
	mail           []func() // what has come during the pause
	dead, closed   bool
	listening      bool
	channel        uint64 // the term that it listens as
	subscriptionAt core.Instant

	lastSeq    uint64
	termBefore uint64 // the term before the present event
	// underWay has the terms of the commands that are not answered yet. stained are the
	// terms for which one went wrong or arrived late, so that the count in Redis may
	// be off. ranSeq is the last one carried out, by term.
	underWay map[uint64]uint64
	stained  map[uint64]bool
	late     map[uint64]bool // terms of commands that were carried out too late, or not in their order
	ranSeq   map[uint64]uint64
	// owing is a term whose count Redis has refused, and has not been told since.
	owing  uint64
	events uint64
	// ghosts are the waiters that a late command may have put into the queue again;
	// ranEnrol is the last command about the queue that was carried out.
	ghosts   map[model.Owner]bool
	ranEnrol uint64

	nextID uint64
	// requests are those that are not answered yet, by ticket id or serial.
	requests map[uint64]*request
	// holds are the clients that the lock has granted to, in that order. Of holds that
	// are over, it is noted when, and which were lost.
	holds  []*request
	grants int
	overAt map[uint64]core.Instant
	lost   map[uint64]bool
}

// event applies one event the way the shell does: to a copy, which then replaces the original.
func (p *process) event(name string, apply func(*core.Lock)) {
	w := p.w
	if p.dead {
		return
	}
	if w.now < p.pausedUntil || len(p.mail) > 0 {
		p.mail = append(p.mail, func() { p.handle(name, apply) })
		if len(p.mail) == 1 {
			w.at(p.pausedUntil, p.resume)
		}
		return
	}
	p.handle(name, apply)
}

// resume handles what has come during a pause, in order.
func (p *process) resume() {
	if p.w.now < p.pausedUntil {
		p.w.at(p.pausedUntil, p.resume)
		return
	}
	for len(p.mail) > 0 && !p.dead {
		p.mail[0]()
		p.mail = p.mail[1:]
	}
}

func (p *process) handle(name string, apply func(*core.Lock)) {
	p.w.logf("%s: %s", p.uuid, name)
	if !p.lock.SpareTerm() {
		p.terms++
		p.lock.Refill(p.terms)
	}
	p.tryInVain(apply)
	next := p.lock
	p.termBefore = p.term()
	apply(&next)
	p.lock = next
	p.drain()
	p.checkAfterEvent()
	p.setTimer()
}

// tryInVain applies an event to a copy that is thrown away, as when the shell crashes:
// the original must not notice.
func (p *process) tryInVain(apply func(*core.Lock)) {
	p.events++
	look := p.events%16 == 0
	var before string
	if look {
		before = dump(p.lock)
	}
	scratch := p.lock
	apply(&scratch)
	if look && dump(p.lock) != before {
		p.w.violated("%s: an event on a copy has changed the original\nbefore %s\nafter  %s", p.uuid, before, dump(p.lock))
	}
}

func (p *process) setTimer() {
	p.wakes++
	wake, ok := p.lock.NextWake()
	if !ok {
		return
	}
	if p.w.faults.sleepy && !p.w.calm {
		wake += oneOf(p.w.tape, 0, 0, 0, ms, 100*ms)
	}
	number := p.wakes
	p.w.at(wake, func() { p.tick(number) })
}

// tick lets a timer ring, unless it is not the last one any more.
func (p *process) tick(number uint64) {
	w := p.w
	if number != p.wakes || p.dead {
		return
	}
	if w.now < p.pausedUntil {
		w.at(p.pausedUntil, func() { p.tick(number) })
		return
	}
	p.event("tick", func(l *core.Lock) { l.Tick(w.now) })
	if len(p.mail) == 0 {
		p.checkTick()
	}
}

func (p *process) replied(c core.Command, r core.Result) {
	p.event("reply to "+describe(c)+": "+outcome(r), func(l *core.Lock) {
		delete(p.underWay, c.Seq)
		if p.w.now > c.Deadline {
			p.stained[c.Term] = true
		}
		l.Replied(p.w.now, c.Seq, r)
	})
}

// drain carries out what the lock asks for.
func (p *process) drain() {
	for {
		e, ok := p.lock.Effects()
		if !ok {
			return
		}
		switch e.Kind {
		case core.Send:
			p.checkSend(e.Command)
			p.w.send(p, e.Command)
		case core.Reply:
			p.answered(e.Ref.(*request), e.Answer)
		case core.TellLost:
			p.told(e.Ref.(*request), e.Answer)
		case core.TellAtRisk:
			p.warned(e.Ref.(*request), e.Answer)
		case core.Over:
			p.over(e.Ref.(*request))
		case core.Subscribe:
			p.listening, p.channel = true, e.Term
			p.w.logf("%s subscribes", p.uuid)
			p.w.subscribe(p)
		case core.Unsubscribe:
			p.listening = false
			p.w.logf("%s unsubscribes", p.uuid)
			p.w.unsubscribe(p, e.Term)
		}
	}
}

// carriedOut takes note that Redis has carried out a command.
func (p *process) carriedOut(c core.Command) {
	if c.Seq < p.ranSeq[c.Term] {
		p.stained[c.Term] = true
	}
	if c.Seq < p.ranSeq[c.Term] || p.w.now > c.Deadline {
		p.late[c.Term] = true
	}
	p.ranSeq[c.Term] = max(c.Seq, p.ranSeq[c.Term])
	if c.Kind != core.Enrol {
		return
	}
	for _, e := range c.Entries {
		p.late[e.Term] = p.late[e.Term] || c.Seq < p.ranSeq[e.Term]
	}
	if p.w.now > c.Deadline || c.Seq < p.ranEnrol {
		for _, e := range c.Entries {
			p.ghosts[p.owner(e.Term)], p.stained[e.Term], p.late[e.Term] = true, true, true
		}
	}
	p.ranEnrol = max(c.Seq, p.ranEnrol)
}

// open lists the requests that await an answer, in order.
func (p *process) open() []*request {
	var open []*request
	for _, id := range slices.Sorted(maps.Keys(p.requests)) {
		open = append(open, p.requests[id])
	}
	return open
}

// owner is the field of a term.
func (p *process) owner(term uint64) model.Owner { return model.Owner{Client: p.client, Term: term} }

// term is the present one; it must not be asked for if there is none.
func (p *process) term() uint64 {
	if terms := terms(&p.lock); len(terms) > 0 {
		return terms[0]
	}
	return 0
}

// holding finds the hold with that id.
func (p *process) holding(id uint64) *request {
	for _, h := range p.holds {
		if h.id == id {
			return h
		}
	}
	return nil
}

// some is one of the holders, nil if there is none.
func (p *process) some() *request {
	if len(p.holds) < 2 {
		return p.first()
	}
	return p.holds[p.w.tape.pick(min(len(p.holds), 256))]
}

// releasing reports whether a release of that hold is not answered yet.
func (p *process) releasing(h *request) bool {
	for _, r := range p.requests {
		if r.what == "release" && r.hold == h.id {
			return true
		}
	}
	return false
}

// first is the one that has held the longest.
func (p *process) first() *request {
	if len(p.holds) == 0 {
		return nil
	}
	return p.holds[0]
}
