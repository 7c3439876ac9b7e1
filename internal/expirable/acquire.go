package expirable

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// acquireBatch bounds how many requests one command serves; together they want at most machine.MaxTogether permits.
const acquireBatch = 100

// nextAcquire asks for permits for the first waiting requests or, without any, ends the reservation for one that left.
func (s *Semaphore) nextAcquire() bool {
	if !s.mayTry() {
		return false
	}
	s.wait.RefusalIsStale, s.wait.defers = false, false
	first := s.queue.Front(acquireBatch)
	o := op{kind: Acquire, requests: first[:fits(len(first), func(i int) int { return first[i].Count })], until: s.now + machine.RepeatTime}
	for _, req := range o.requests {
		o.until = min(o.until, machine.TrustedUntil(s.now, s.lease(req)))
	}
	o.newest, o.before = s.queue.LastID(), s.reserved
	if s.reserved = 0; len(o.requests) > 0 && o.requests[0].reserves() {
		s.reserved = o.requests[0].ID
		o.reserved = s.reserved == o.before
	}
	s.start(o)
	return true
}

func (s *Semaphore) acquireCommand(o *op, c *Command) {
	for _, req := range o.requests {
		c.add(o.permits(req))
		c.Leases = append(c.Leases, s.lease(req))
	}
	if len(o.requests) > 0 && o.requests[0].reserves() {
		c.Reserve = s.cfg.TransferTTL()
		s.reservedUntil = s.now + c.Reserve
	}
}

// acquireReplied grants the permits to the requests that were served. The permits of a request that has left go back.
// After permits were reserved for a request, other processes go first.
func (s *Semaphore) acquireReplied(o op, r Result) {
	s.wait.CarriedOut()
	if r.Missing {
		s.refuseUnset(o.newest)
		return
	}
	if r.Served > 0 {
		s.startTurn()
		s.reserved = 0
	}
	for _, req := range o.requests[:min(r.Served, len(o.requests))] {
		h := hold{permits: o.permits(req), fixed: req.Lease > 0, sentAt: o.sentAt, until: machine.TrustedUntil(o.sentAt, s.lease(req))}
		late := s.now >= h.until
		if _, waits := s.queue.Find(req.ID); !waits || late {
			s.giveBack(permitReturn{permits: h.permits, until: h.until})
			if waits && o.Tries == 0 { // another try would be late as well, and hold up the requests behind it
				s.queue.Take(req.ID)
				s.refuse(req, machine.Unavailable, fmt.Sprintf("Redis took %v to answer, too long for a lease of %v", s.now-o.sentAt, s.lease(req)))
			}
			continue
		}
		s.queue.Take(req.ID)
		s.grant(req, h, false)
		if !h.fixed {
			s.renewBy(h.sentAt + s.cfg.Renewal)
		}
	}
	if r.Served > 0 && o.reserved {
		s.wait.defers = true
		s.wait.NextAt = s.now + s.cfg.OpenTime()
	} else if r.Served >= len(o.requests) {
		s.wait.NextAt = s.now
	}
	if r.Served >= len(o.requests) {
		return
	}
	s.refuseTries(o.requests)
	tries := s.queue.Len() > 0 && s.queue.Head().Try // they have come since
	s.wait.Refused = !tries
	next := s.now + s.jitter(min(s.cfg.Poll, s.cfg.Watchdog/2))
	if r.Wait >= 0 {
		next = min(next, s.now+r.Wait+time.Millisecond) // Redis's time is rounded down
	}
	if s.wait.RefusalIsStale || tries {
		next = s.now
	}
	if !s.wait.defers {
		s.wait.NextAt = next
	}
	if s.sub.State == machine.Requested {
		// Not confirmed since the last try: ask again, in case the first got lost.
		s.effects.Add(machine.Effect{Kind: machine.Subscribe})
	}
}

// refuseUnset refuses the requests up to newest that do not say the number of permits, and queues a Restore if the
// first that is left says it. When later requests came, another process may have set the number.
func (s *Semaphore) refuseUnset(newest uint64) {
	s.wait.unset = newest
	for _, req := range s.queue.Remove(func(req *Request) bool { return req.Total == 0 && req.ID <= newest }) {
		s.refuse(req, machine.NoPermits, machine.NoNumber)
	}
	if s.queue.Len() == 0 {
		return
	}
	if total := s.queue.Head().Total; total > 0 {
		restore := set{mode: Restore, count: total, until: s.now + s.cfg.TryTime()}
		s.sets = slices.Insert(slices.Clone(s.sets), 0, restore)
		s.nextEnd.Add(restore.until)
	}
	s.wait.NextAt = s.now
}

// acquireFailed schedules another try, or refuses all requests if that has no use. It reports whether the
// command is over: a command that may have been carried out is repeated.
func (s *Semaphore) acquireFailed(o *op, r Result) (over bool) {
	reason, detail := r.Why()
	for _, req := range s.queue.Remove(func(req *Request) bool { return req.Try || !r.Transient }) {
		s.refuse(req, reason, detail)
	}
	s.wait.Failed(detail, s.now+s.backoff(s.wait.Tries))
	if r.Transient && s.reserved == 0 && s.now < s.reservedUntil && !s.closing {
		s.reserved = o.before // Redis may still keep permits
	}
	if !o.Unsure {
		return true
	}
	waits := func(req *Request) bool {
		_, found := s.queue.Find(req.ID)
		return found
	}
	if slices.ContainsFunc(o.requests, waits) && s.now < o.until {
		return false
	}
	// What it may have taken goes back, which also keeps a late copy from taking it.
	for _, req := range o.requests {
		s.giveBack(permitReturn{permits: o.permits(req), until: s.now + s.lease(req)})
	}
	return true
}
