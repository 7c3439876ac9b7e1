package expirable

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// op is a command under way: it is sent, and sent again, until its outcome is known or does not
// matter any more.
type op struct {
	// kind is 0 if there is none.
	kind CommandKind
	seq  uint64
	// inFlight: it was sent, and there is no reply yet. unsure: an earlier try may have been, or may
	// be, carried out.
	inFlight, unsure bool
	tries            int
	// sentAt is when the first try was sent that may count, and due when the command wants
	// attention again: the reply is late, or it is to be sent again.
	sentAt, due Instant
	// until ends the tries, except those of a Release, which frees no permit twice.
	until Instant
	// last is why the last try failed.
	last Result

	// number is 0 for a renewal.
	number uint64
	// requests are those of an Acquire; holds those of a Renew; count is how many of back a Release
	// is for. yields: a Release is to let others have a turn.
	requests []*Request
	holds    []*hold
	count    int
	yields   bool
}

// permit is the id of the permit that an Acquire may take for one of its requests. Each command has
// ids of its own: a permit that a late copy of one has taken would be lost if another took it again.
func (o *op) permit(req *Request) machine.PermitID {
	id := req.Random
	binary.BigEndian.PutUint64(id[8:], binary.BigEndian.Uint64(id[8:])^o.number)
	return id
}

// ids are those of all its requests.
func (o *op) ids() (all []machine.PermitID) {
	for _, req := range o.requests {
		all = append(all, o.permit(req))
	}
	return all
}

// begin opens an event: time may have ended something before it.
func (p *Semaphore) begin(now Instant) {
	p.now = max(p.now, now)
	if p.wakeAt == 0 || p.now < Instant(p.wakeAt) {
		return
	}
	p.wakeAt = 0
	p.lapse()
	p.expire()
	p.overdue()
	p.wakeUp()
}

// settle closes an event: what can be done next is begun.
func (p *Semaphore) settle() {
	if p.main.kind == 0 {
		p.next()
	}
	if !p.renewal.inFlight {
		p.renew()
	}
	p.listen()
}

// next begins the next numbered command, if there is one.
func (p *Semaphore) next() {
	switch {
	case len(p.back) > 0 && p.now >= p.backAt:
		p.startRelease()
	case len(p.sets) > 0:
		p.start(op{kind: Set, until: p.sets[0].until})
	case p.queue.Len() > 0 && p.now >= p.wait.nextAt:
		p.wait.again, p.wait.defers = false, false
		p.startAcquire()
	}
}

// numbered takes the next number. Numbers grow over the lives of the actor, too, since they follow
// the clock.
func (p *Semaphore) numbered(now Instant) {
	p.number = max(p.number+1, uint64(now/time.Microsecond))
}

// start makes a command the numbered one, and sends it.
func (p *Semaphore) start(o op) {
	p.numbered(p.now)
	o.number = p.number
	p.main = o
	p.send(&p.main)
}

// send issues the op's command, for the first time or again.
func (p *Semaphore) send(o *op) {
	p.seq++
	if !o.unsure {
		o.sentAt = p.now
	}
	o.seq, o.inFlight = p.seq, true
	c := Command{Kind: o.kind, Seq: o.seq, Number: o.number}
	timeout := p.cfg.CallTimeout // also for shorter leases: else Redis might be too far away for every try
	switch o.kind {
	case Acquire:
		c.IDs, c.Leases = o.ids(), p.leases(o)
	case Release:
		for _, b := range p.back[:o.count] {
			c.IDs = append(c.IDs, b.permit)
		}
	case Renew:
		c.Lease = p.cfg.Watchdog
		until := o.holds[0].until
		for _, h := range o.holds {
			c.IDs = append(c.IDs, h.permit)
			until, c.Latest = min(until, h.until), max(c.Latest, h.until)
		}
		timeout = p.cfg.Timeout(max(until-p.now, 0)) // another try must fit into what is left
	case Set:
		if c.How, c.Count = p.sets[0].how, p.sets[0].count; c.How == Restore {
			c.Lease = p.cfg.Watchdog
			c.IDs, c.Leases = p.trusted()
		}
	}
	c.Deadline, o.due = p.now+timeout, p.now+timeout+machine.ReplyGrace
	c.Latest = max(c.Latest, c.Deadline)
	p.wakeAt.sooner(o.due)
	p.effect(machine.Effect{Kind: machine.Send, Ref: &c})
}

// again schedules another try after a failure.
func (p *Semaphore) again(o *op, r Result) {
	o.inFlight, o.unsure, o.last = false, o.unsure || r.Unsure, r
	o.due = p.now + p.backoff(o.tries)
	o.tries++
	p.wakeAt.sooner(o.due)
}

func (p *Semaphore) backoff(tries int) time.Duration {
	return machine.Backoff(tries, p.cfg.Watchdog, p.cfg.Watchdog/6)
}

// noReply is the outcome of a command whose reply was lost between Redis and here.
var noReply = Result{Err: errors.New("no reply from Redis in time"), Transient: true, Unsure: true}

// overdue gives up waiting for replies that should be here by now, and sends again what is to be
// sent again. A renewal is made anew.
func (p *Semaphore) overdue() {
	switch {
	case p.main.kind == 0 || p.now < p.main.due:
	case p.main.inFlight:
		p.mainReplied(noReply)
	case p.main.kind != Release && p.now >= p.main.until: // the process was stopped, or the machine slept
		p.mainReplied(p.main.last)
	default:
		p.send(&p.main)
	}
	if p.renewal.inFlight && p.now >= p.renewal.due {
		p.renewalOverdue()
	}
}

// Replied delivers the outcome of a command. A command that is no longer under way is ignored.
func (p *Semaphore) Replied(now Instant, seq uint64, r Result) {
	p.begin(now)
	defer p.settle()
	switch {
	case p.main.inFlight && p.main.seq == seq:
		p.mainReplied(r)
	case p.renewal.inFlight && p.renewal.seq == seq:
		p.renewalReplied(r)
	default:
		if i := slices.IndexFunc(p.late, func(o op) bool { return o.seq == seq }); i >= 0 {
			p.renewalLate(i, r)
		}
	}
}

// mainReplied handles the reply to the numbered command. A command that failed is sent again under
// its number, as long as it matters what becomes of it.
func (p *Semaphore) mainReplied(r Result) {
	o := p.main
	p.mayArrive = p.mayArrive || r.Unsure
	if r.Err != nil {
		p.again(&p.main, r)
		p.wait.lastReason, p.wait.lastErr = failure(r)
		if o = p.main; p.failed(&o, r) {
			p.main = op{}
		}
		return
	}
	p.main = op{}
	switch o.kind {
	case Acquire:
		p.acquired(o, r)
	case Release:
		p.released(o, r)
	case Set:
		if p.sets[0].how == Restore {
			p.restored(r)
		}
		p.answerSet(machine.Answer{Kind: machine.Changed, Done: r.Done})
	}
}

// failed handles a failure, and reports whether the command is over.
func (p *Semaphore) failed(o *op, r Result) (over bool) {
	reason, detail := failure(r)
	switch {
	case o.kind == Acquire:
		return p.acquireFailed(o, r)
	case r.Transient && (o.kind == Release || p.now < o.until):
		return false
	case o.kind == Release:
		p.releaseRefused(o, reason, detail)
	default:
		if p.sets[0].how == Restore {
			p.restoreFailed(r, reason, detail)
		}
		if o.unsure {
			reason, detail = machine.Unavailable, "it may have been carried out: "+detail
		}
		p.answerSet(machine.Answer{Kind: machine.NotDone, Reason: reason, Detail: detail})
	}
	return true
}

// NextWake returns when the next Tick is needed, unless another event comes first.
func (p *Semaphore) NextWake() (at Instant, ok bool) { return Instant(p.wakeAt), p.wakeAt != 0 }

// wakeUp sets the alarm to what time brings next.
func (p *Semaphore) wakeUp() {
	wake := func(at Instant, wanted bool) {
		if wanted {
			p.wakeAt.sooner(at)
		}
	}
	wake(p.main.due, p.main.kind != 0)
	wake(p.renewal.due, p.renewal.inFlight)
	wake(p.renewAt, p.renewAt > p.now)
	wake(p.backAt, p.backAt > p.now)
	wake(p.wait.nextAt, p.queue.Len() > 0 && p.wait.nextAt > p.now)
	wake(p.queue.NextDeadline(), p.queue.NextDeadline() > 0)
	for _, h := range p.holds {
		wake(h.end(), true)
	}
	for i, b := range p.back {
		wake(b.answerBy, b.ref != nil)
		wake(b.until, i >= p.releasing())
	}
	for _, s := range p.sets {
		wake(s.until, p.main.kind != Set)
	}
}

// expire ends what has waited for too long.
func (p *Semaphore) expire() {
	for _, req := range p.queue.RemoveExpired(p.now, machine.MaxExpired) {
		switch {
		case p.wait.lastErr != "":
			p.refuse(req, p.wait.lastReason, p.wait.lastErr)
		case req.Try, !p.wait.refused && len(p.holds) == 0:
			p.refuse(req, machine.Unavailable, "Redis has not answered within the wait")
		default:
			p.refuse(req, machine.TimedOut, noneFree)
		}
	}
	p.expireBack()
	p.expireSets()
}

// listen subscribes as long as waiters are refused.
func (p *Semaphore) listen() {
	switch {
	case p.queue.Len() > 0 && p.wait.refused && p.sub == unsubscribed:
		p.sub = requested
		p.effect(machine.Effect{Kind: machine.Subscribe})
	case p.queue.Len() == 0:
		if p.sub != unsubscribed {
			p.effect(machine.Effect{Kind: machine.Unsubscribe})
		}
		p.sub, p.wait = unsubscribed, waiting{}
	}
}
