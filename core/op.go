package core

import (
	"slices"
	"time"
)

type opKind uint8

const (
	opNone opKind = iota
	// opAcquire contends for a new term.
	opAcquire
	// opGrant sets count and lease for the next local waiter, before it is granted.
	opGrant
	// opCount sets the hold count: a re-entry or a partial release.
	opCount
	// opYield ends a tenure.
	opYield
	// opRelease frees the lock.
	opRelease
	// opRenew renews the lease.
	opRenew
	// opForce frees the lock, whichever client holds it.
	opForce
	// opLook asks whether others wait.
	opLook
	// opEnrol brings the queue in Redis up to date.
	opEnrol
)

// op is a command that is being carried out: sent, and sent again until its
// outcome is known or does not matter any more.
type op struct {
	kind opKind
	// What to set, besides term, counts and lease.
	mode  Mode
	fixed bool
	// inFlight: it was sent, and there is no reply yet.
	inFlight bool
	// hurry sends a renewal without waiting for company.
	hurry bool
	// unsure says that an earlier try may have been carried out.
	unsure bool
	// stale says of a grant that its refusal, if it is refused, may be out of date.
	stale bool
	// heldHere says that a forced release hit a holder here.
	heldHere bool

	term   uint64
	counts counts
	lease  time.Duration
	// hold is whose counts change; reserved is how many tokens are drawn.
	hold     uint64
	reserved int64
	// listed are the waiters that Redis was told of.
	listed []Entry
	// ticket is whom an acquire, a grant or a re-entry is for; ref is who awaits a release.
	ticket *Ticket
	ref    any

	seq    uint64
	sentAt Instant
	// due is when it wants attention again: the reply is late, or it is to be sent again.
	due   Instant
	tries int
	// until ends the tries of a side op, or the wait for a partial release.
	until Instant
}

// joins reports whether the op lets one more share the lease.
func (o *op) joins() bool { return o.kind == opCount && o.ticket != nil && o.hold == 0 }

// start makes a command the main one and sends it.
func (l *Lock) start(o op) {
	o.term = l.lease.term
	l.main = o
	l.send(&l.main)
}

// side starts a command beside the main one.
func (l *Lock) side(o op) {
	l.sides = append(slices.Clone(l.sides), o)
	l.send(&l.sides[len(l.sides)-1])
}

// send issues the op's command, for the first time or again.
func (l *Lock) send(o *op) {
	switch o.kind {
	case opCount:
		o.lease = l.countLease(o.ticket, o.joins())
	case opRenew:
		o.lease = l.countLease(nil, false)
		l.suspected = false
	case opAcquire, opGrant, opYield:
		l.suspected = false
	}
	if o.term != 0 && o.term == l.lease.term {
		l.lease.longest = max(l.lease.longest, o.lease)
	}
	l.seq++
	o.seq, o.sentAt, o.inFlight = l.seq, l.now, true
	timeout := l.cfg.timeout(o.lease)
	o.due = l.now + timeout + replyGrace
	c := Command{
		Seq: o.seq, Term: o.term, Count: o.counts.exclusive, Shared: o.counts.shared, Mode: o.mode, Lease: o.lease, Deadline: l.now + timeout,
		MaxTTL: l.maxTTL(),
	}
	switch o.kind {
	case opAcquire, opGrant:
		c.Kind = Acquire
		// A term that is over after a refusal would leave its announcement behind.
		c.Announce = o.kind == opAcquire && o.ticket != nil && o.mode == Exclusive && !o.ticket.Try
		o.reserved = l.reserve()
		c.Tokens = o.reserved
	case opCount:
		if c.Kind = Release; o.ticket != nil {
			c.Kind, c.Tokens = Acquire, o.reserved
		}
	case opYield:
		c.Kind = Yield
		c.Subscribed = l.sub.state == listening
		c.Open = l.now >= l.lease.openAt
	case opRelease:
		c.Kind = Release
		c.MaxTTL = max(c.MaxTTL, o.until-l.now)
	case opRenew:
		c.Kind = Renew
		c.Hurry = o.hurry || o.tries > 0
	case opForce:
		c.Kind = ForceRelease
	case opLook:
		c.Kind = Look
		c.Subscribed = l.sub.state == listening
	}
	if l.kind.Queued && o.lists(l) {
		l.list(o, &c)
	}
	l.effects = append(l.effects, Effect{Kind: Send, Command: c})
}

// again schedules another try after a failure.
func (l *Lock) again(o *op, r Result) {
	o.inFlight = false
	if r.Unsure {
		o.unsure = true
		l.givenUp(o)
	}
	o.due = l.now + l.backoff(o.tries, o.lease)
	o.tries++
}

// noReply is the outcome of a command whose reply got lost between Redis and the lock.
var noReply = Result{Outcome: Failed, Err: errNoReply, Transient: true, Unsure: true}

// Replied delivers the outcome of a command. One that is not under way any more is ignored.
func (l *Lock) Replied(now Instant, seq uint64, r Result) {
	l.begin(now)
	defer l.settle()
	switch {
	case l.main.inFlight && l.main.seq == seq:
		l.mainReplied(r)
	case l.renewal.inFlight && l.renewal.seq == seq:
		l.renewalReplied(r)
	case l.kind.Queued && l.enrolment.op.inFlight && l.enrolment.op.seq == seq:
		l.enrolReplied(r)
	default:
		for i := range l.sides {
			if l.sides[i].inFlight && l.sides[i].seq == seq {
				l.sideReplied(i, r)
				return
			}
		}
	}
}

func (l *Lock) mainReplied(r Result) {
	o := l.main
	switch o.kind {
	case opAcquire:
		l.acquireReplied(o, r)
	case opGrant:
		l.grantReplied(o, r)
	case opCount:
		l.countReplied(o, r)
	case opYield:
		l.yieldReplied(o, r)
	case opRelease:
		if l.kind.Queued && r.Outcome != Failed {
			l.emptied(&o, len(o.listed))
			l.takenForNobody(r)
			if r.Outcome = Absent; r.Freed {
				r.Outcome = Done
			}
		}
		l.releaseReplied(o, r)
	case opLook:
		l.lookReplied(r)
	}
}

// sideReplied ends a side op, or tries it again as long as that has a use.
func (l *Lock) sideReplied(i int, r Result) {
	l.sides = slices.Clone(l.sides)
	o := &l.sides[i]
	// A forced release that may have been carried out is not sent again: it would hit
	// whoever has got the lock since.
	if r.Outcome == Failed && r.Transient && l.now < o.until && (o.kind != opForce || !r.Unsure) {
		l.again(o, r)
		return
	}
	ended := *o
	l.sides = slices.Delete(l.sides, i, i+1)
	if ended.kind == opRelease && r.Outcome == Failed && l.now < ended.until {
		l.leaveBehind(ended.until)
	}
	if ended.kind == opForce {
		if r.Outcome == Failed {
			reason := Unavailable
			if !r.Transient {
				reason = Rejected
			}
			l.answer(ended.ref, Answer{Kind: NotDone, Reason: reason, Detail: r.Err.Error()})
		} else {
			n := 0
			if r.WasHeld || ended.heldHere {
				n = 1
			}
			l.answer(ended.ref, Answer{Kind: Forced, Count: n})
		}
		if ended.heldHere && !r.WasHeld {
			// It failed, or a change of mode came before it: then it found the other mode.
			l.cleanUp(ended.term)
		}
		l.suspect() // it may have hit a term that began meanwhile
	}
	if l.phase == contending && l.now >= l.wait.deferUntil {
		l.attemptSoon()
	}
}

// cleanUp makes sure that a term that is over leaves nothing behind in Redis.
func (l *Lock) cleanUp(term uint64) {
	l.side(op{kind: opRelease, term: term, lease: l.cfg.Lease, until: l.longestTTL()})
}

// longestTTL is until when a key of this lease may be in Redis, whatever arrives late.
func (l *Lock) longestTTL() Instant { return l.now + l.maxTTL() }

func (l *Lock) maxTTL() time.Duration {
	longest := max(l.cfg.Lease, l.lease.length, l.lease.longest)
	if l.kind.Queued {
		longest = max(longest, l.enrolment.longest)
	}
	return longest
}

// leaveBehind gives up releasing a key.
func (l *Lock) leaveBehind(until Instant) {
	l.effects = append(l.effects, Effect{Kind: LeaveBehind, Answer: Answer{Until: until}})
}

// cleaning reports whether the release of an earlier term is on its way.
func (l *Lock) cleaning() bool {
	return slices.ContainsFunc(l.sides, func(o op) bool { return o.inFlight })
}

// overdue gives up waiting for replies that should be here by now, and sends again
// what is to be sent again.
func (l *Lock) overdue() {
	late := func(o *op, replied func()) {
		switch {
		case o.kind == opNone || l.now < o.due:
		case o.inFlight:
			replied()
		default:
			l.send(o)
		}
	}
	late(&l.main, func() { l.mainReplied(noReply) })
	late(&l.renewal, func() { l.renewalReplied(noReply) })
	if l.kind.Queued {
		late(&l.enrolment.op, func() { l.enrolReplied(noReply) })
	}
	for i := 0; i < len(l.sides); {
		switch o := &l.sides[i]; {
		case l.now < o.due:
			i++
		case o.inFlight:
			l.sideReplied(i, noReply)
		default:
			l.sides = slices.Clone(l.sides)
			l.send(&l.sides[i])
		}
	}
}
