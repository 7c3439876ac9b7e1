package expirable

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Signal says that permits may have become free.
func (s *Semaphore) Signal(now Instant) {
	defer s.begin(now).settle()
	if s.main.kind == Acquire {
		s.wait.RefusalIsStale = true
	} else if !s.wait.defers && s.queue.Len() > 0 {
		s.wait.NextAt = s.now
	}
}

// Subscribed says that from now on no message of the channel is missed; earlier ones may have been.
func (s *Semaphore) Subscribed(now Instant, term uint64) {
	if s.sub.Confirm(term) {
		s.Signal(now)
	}
}

// Transferred does nothing: the permits have no wait queue.
func (s *Semaphore) Transferred(Instant, machine.Transfer) {}

// Asked does nothing, like Transferred.
func (s *Semaphore) Asked(Instant, uint64) {}

// Suspect does nothing: each renewal says which permits are gone.
func (s *Semaphore) Suspect(Instant) {}

// Tick lets time pass.
func (s *Semaphore) Tick(now Instant) {
	s.begin(now).settle()
}

// Replied delivers the outcome of a command. A command that is no longer under way is ignored.
func (s *Semaphore) Replied(now Instant, seq uint64, r Result) {
	defer s.begin(now).settle()
	switch {
	case s.main.InFlight && s.main.seq == seq:
		s.mainReplied(r)
	case s.renewal.InFlight && s.renewal.seq == seq:
		s.renewReplied(r)
	case s.extensionReplied(seq, r):
	default:
		if i := slices.IndexFunc(s.earlier, func(o op) bool { return o.seq == seq }); i >= 0 {
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
		if o.kind == Acquire || o.kind == Set && s.sets[0].mode == Restore {
			s.wait.lastReason, s.wait.LastErr = r.Why()
		}
		if o = s.main; ops[o.kind].failed(s, &o, r) {
			s.main = op{}
		}
		return
	}
	s.main = op{}
	ops[o.kind].replied(s, o, r)
}

// begin opens an event: time may have ended something before it. An event is a method that begins with
//
//	defer s.begin(now).settle()
func (s *Semaphore) begin(now Instant) *Semaphore {
	s.now = max(s.now, now)
	if at, ok := s.NextWake(); !ok || s.now < at {
		return s
	}
	ends := s.nextEnd.Reached(s.now)
	if ends {
		s.endExpiredHolds()
	}
	s.expire()
	s.overdue()
	if ends {
		s.findNextEnd()
	}
	return s
}

// overdue stops waiting for replies that are late, or sends the numbered command again if that is due. A renewal is
// made anew.
func (s *Semaphore) overdue() {
	if failure, due := s.main.Overdue(s.now, s.main.until); failure != nil {
		s.mainReplied(Result{Failure: *failure})
	} else if due {
		s.send(&s.main)
	}
	if failure, _ := s.renewal.Overdue(s.now, 0); failure != nil {
		s.renewalOverdue(*failure)
	}
	s.extensionsOverdue()
}

// settle closes an event: it begins what can be done next.
func (s *Semaphore) settle() {
	if s.main.kind == 0 {
		s.tryUnreserved()
		s.next()
	}
	s.extend()
	if !s.renewal.InFlight {
		s.renew()
	}
	if s.queue.Len() == 0 && s.reserved == 0 {
		s.wait = waiting{}
	}
	s.sub.Follow(s.now, s.queue.Len() > 0, s.wait.Refused, false, 0, &s.effects)
}

// turns is the order in which the numbered commands take turns: there may always be more of each.
var turns = []CommandKind{Release, Set, Acquire}

// next begins the next numbered command, if there is one.
func (s *Semaphore) next() {
	first := slices.Index(turns, s.after) + 1
	for i := range turns {
		if ops[turns[(first+i)%len(turns)]].next(s) {
			return
		}
	}
}

// NextWake returns when the next Tick is needed, unless another event comes first.
func (s *Semaphore) NextWake() (at Instant, ok bool) {
	due := s.nextEnd
	due.Add(s.queue.NextDeadline())
	if s.main.kind != 0 {
		due.Add(s.main.Due)
	} else {
		if len(s.pendingReturns) > 0 {
			due.Add(s.returnAt)
		}
		if s.queue.Len() > 0 || s.reserved != 0 {
			due.Add(s.wait.NextAt)
		}
	}
	if s.renewal.InFlight {
		due.Add(s.renewal.Due)
	} else {
		due.Add(s.renewAt)
	}
	return due.Get()
}
