package expirable

import (
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
	machine.Sending
	// sentAt is the time of the first try that may count. until ends the tries; it is 0 for a Release, which frees no
	// permit twice.
	sentAt, until Instant

	// number is 0 for a renewal.
	number uint64
	// requests are for an Acquire, and holds for a Renew. A Release is for the first count of back; yields: it lets
	// other processes have a turn.
	requests []*Request
	holds    []*hold
	count    int
	yields   bool
	// kept: free permits may have been kept for the first of requests.
	kept bool
}

// permits returns the permits that an Acquire may take for one of its requests. Each command has ids of its own: a permit
// that a late copy of one has taken would be lost if another took it again.
func (o *op) permits(req *Request) machine.Permits {
	return machine.Permits{First: req.Random.Numbered(o.number), N: req.Count}
}

// add adds the permits of a request or a hold.
func (c *Command) add(p machine.Permits) { c.IDs, c.Counts = p.AppendTo(c.IDs), append(c.Counts, p.N) }

// begin opens an event: time may have ended something before it.
func (s *Semaphore) begin(now Instant) {
	s.now = max(s.now, now)
	if s.wakeAt == 0 || s.now < Instant(s.wakeAt) {
		return
	}
	s.wakeAt = 0
	s.endExpiredHolds()
	s.expire()
	s.overdue()
	s.setAlarm()
}

// settle closes an event: it begins what can be done next.
func (s *Semaphore) settle() {
	if s.main.kind == 0 {
		s.tryUnkept()
		s.next()
	}
	s.extend()
	if !s.renewal.InFlight {
		s.renew()
	}
	if s.queue.Len() == 0 {
		s.wait = waiting{}
	}
	s.sub.Follow(s.queue.Len() > 0, s.wait.refused, &s.effects)
}

// turns is the order in which the numbered commands take turns: there may always be more of each.
var turns = []CommandKind{Release, Set, Acquire}

// next begins the next numbered command, if there is one.
func (s *Semaphore) next() {
	first := slices.Index(turns, s.after) + 1
	for i := range turns {
		switch kind := turns[(first+i)%len(turns)]; {
		case kind == Release && len(s.back) > 0 && s.now >= s.backAt:
			s.startRelease()
			return
		case kind == Set && len(s.sets) > 0:
			s.start(op{kind: Set, until: s.sets[0].until})
			return
		case kind == Acquire && (s.queue.Len() > 0 && s.now >= s.wait.nextAt || s.queue.Len() == 0 && s.kept != 0):
			s.wait.again, s.wait.defers = false, false
			s.startAcquire()
			return
		}
	}
}

// takeNumber takes the next number. Numbers grow over the lives of the actor, too, since they follow
// the clock.
func (s *Semaphore) takeNumber(now Instant) {
	s.number = max(s.number+1, uint64(now/time.Microsecond))
}

// start makes a command the numbered one, and sends it.
func (s *Semaphore) start(o op) {
	s.takeNumber(s.now)
	o.number = s.number
	s.main, s.after = o, o.kind
	s.send(&s.main)
}

// send issues the op's command, for the first time or again.
func (s *Semaphore) send(o *op) {
	s.seq++
	if !o.Unsure {
		o.sentAt = s.now
	}
	o.seq = s.seq
	c := Command{Kind: o.kind, Seq: o.seq, Number: o.number}
	timeout := s.cfg.CallTimeout // not shortened for short leases: over a slow link every try would time out
	switch o.kind {
	case Acquire:
		for _, req := range o.requests {
			c.add(o.permits(req))
			c.Leases = append(c.Leases, s.lease(req))
		}
		if len(o.requests) > 0 && o.requests[0].keeps() {
			c.Keep = s.cfg.TransferTTL()
		}
	case Release:
		for _, b := range s.back[:o.count] {
			c.add(b.permits)
		}
	case Renew:
		c.Lease = s.cfg.Watchdog
		until := o.holds[0].until
		for _, h := range o.holds {
			c.IDs = h.permits.AppendTo(c.IDs)
			until, c.Latest = min(until, h.until), max(c.Latest, h.until)
		}
		timeout = s.cfg.Timeout(max(until-s.now, 0)) // another try must fit into what is left
	case Set:
		if c.Mode, c.Count = s.sets[0].mode, s.sets[0].count; c.Mode == Restore {
			c.Lease = s.cfg.Watchdog
			c.IDs, c.Leases = s.trusted()
		}
	}
	c.Deadline = s.now + timeout
	o.Sent(c.Deadline)
	c.Latest = max(c.Latest, c.Deadline)
	s.wakeAt.sooner(o.Due)
	s.effects.Add(machine.Effect{Kind: machine.Send, Ref: &c})
}

// retryLater schedules another try after a failure.
func (s *Semaphore) retryLater(o *op, f machine.Failure) {
	o.Failed(s.now, f, s.backoff(o.Tries))
	s.wakeAt.sooner(o.Due)
}

func (s *Semaphore) backoff(tries int) time.Duration {
	return machine.Backoff(tries, s.cfg.Watchdog, s.cfg.Watchdog/6)
}

// overdue stops waiting for replies that are late, or sends the numbered command again if that is due. A renewal is
// made anew.
func (s *Semaphore) overdue() {
	if failure, again := s.main.Overdue(s.now, s.main.until); failure != nil {
		s.mainReplied(Result{Failure: *failure})
	} else if again {
		s.send(&s.main)
	}
	if failure, _ := s.renewal.Overdue(s.now, 0); failure != nil {
		s.renewalOverdue(*failure)
	}
	s.extensionsOverdue()
}

// Replied delivers the outcome of a command. A command that is no longer under way is ignored.
func (s *Semaphore) Replied(now Instant, seq uint64, r Result) {
	s.begin(now)
	defer s.settle()
	switch {
	case s.main.InFlight && s.main.seq == seq:
		s.mainReplied(r)
	case s.renewal.InFlight && s.renewal.seq == seq:
		s.renewReplied(r)
	case s.extensionReplied(seq, r):
	default:
		if i := slices.IndexFunc(s.late, func(o op) bool { return o.seq == seq }); i >= 0 {
			s.renewalLate(i, r)
		}
	}
}

// mainReplied handles the reply to the numbered command. A command that failed is sent again under
// its number, as long as it matters what becomes of it.
func (s *Semaphore) mainReplied(r Result) {
	o := s.main
	s.mayArrive = s.mayArrive || r.Unsure
	if r.Err != nil {
		s.retryLater(&s.main, r.Failure)
		s.wait.lastReason, s.wait.lastErr = r.Why()
		if o = s.main; s.failed(&o, r) {
			s.main = op{}
		}
		return
	}
	s.main = op{}
	switch o.kind {
	case Acquire:
		s.acquireReplied(o, r)
	case Release:
		s.releaseReplied(o, r)
	case Set:
		mode := s.sets[0].mode
		if mode == Restore {
			s.restoreReplied(r)
		}
		s.answerSet(machine.Answer{Kind: machine.Changed, Done: r.Done})
		for mode == SetIfUnset && len(s.sets) > 0 && s.sets[0].mode == SetIfUnset {
			s.answerSet(machine.Answer{Kind: machine.Changed}) // the number is set by now
		}
	}
}

// failed handles a failure, and reports whether the command is over.
func (s *Semaphore) failed(o *op, r Result) (over bool) {
	reason, detail := r.Why()
	switch {
	case o.kind == Acquire:
		return s.acquireFailed(o, r)
	case r.Transient && (o.kind == Release || s.now < o.until):
		return false
	case o.kind == Release:
		s.releaseRefused(o, reason, detail)
	default:
		if s.sets[0].mode == Restore {
			s.restoreFailed(r, reason, detail)
		}
		if o.Unsure {
			reason, detail = machine.Unavailable, "it may have been carried out: "+detail
		}
		s.answerSet(machine.Answer{Kind: machine.NotDone, Reason: reason, Detail: detail})
	}
	return true
}

// NextWake returns when the next Tick is needed, unless another event comes first.
func (s *Semaphore) NextWake() (at Instant, ok bool) { return Instant(s.wakeAt), s.wakeAt != 0 }

// setAlarm sets the alarm to the next change that time brings.
func (s *Semaphore) setAlarm() {
	wake := func(at Instant, wanted bool) {
		if wanted {
			s.wakeAt.sooner(at)
		}
	}
	wake(s.main.Due, s.main.kind != 0)
	wake(s.renewal.Due, s.renewal.InFlight)
	wake(s.renewAt, s.renewAt > s.now)
	wake(s.backAt, s.backAt > s.now)
	wake(s.wait.nextAt, s.queue.Len() > 0 && s.wait.nextAt > s.now)
	wake(s.queue.NextDeadline(), s.queue.NextDeadline() > 0)
	for _, h := range s.holds {
		wake(h.end(), true)
	}
	for _, e := range s.extensions {
		wake(e.by, true)
	}
	for i, b := range s.back {
		wake(b.answerBy, b.ref != nil)
		wake(b.until, i >= s.releasing())
	}
	for _, one := range s.sets {
		wake(one.until, s.main.kind != Set)
	}
}

// expire ends requests that have waited for too long.
func (s *Semaphore) expire() {
	for _, req := range s.queue.RemoveExpired(s.now, machine.MaxExpired) {
		switch {
		case s.wait.lastErr != "":
			s.refuse(req, s.wait.lastReason, s.wait.lastErr)
		case req.Try, !s.wait.refused && len(s.holds) == 0:
			s.refuse(req, machine.Unavailable, "Redis has not answered within the wait")
		default:
			s.refuse(req, machine.TimedOut, noneFree)
		}
	}
	s.expireBack()
	s.expireSets()
}
