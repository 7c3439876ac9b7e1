package expirable

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

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
		if len(o.requests) > 0 && o.requests[0].reserves() {
			c.Reserve = s.cfg.TransferTTL()
			s.reservedUntil = s.now + c.Reserve
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
			c.IDs, c.Leases = s.restored()
		}
	}
	c.Deadline = s.now + timeout
	o.Sent(c.Deadline)
	c.Latest = max(c.Latest, c.Deadline)
	s.wakeAt.sooner(o.Due)
	s.effects.Add(machine.Effect{Kind: machine.Send, Ref: &c})
}

// restored returns the permits that this process holds, for a Restore, and for how long each is trusted, or may be once an
// extension under way is confirmed.
func (s *Semaphore) restored() (ids []machine.PermitID, rests []time.Duration) {
	s.holds = slices.Clone(s.holds)
	for i, h := range s.holds {
		until := h.until
		if s.extends(h) {
			until = h.takenUntil()
		}
		if rest := until - s.now; rest > 0 {
			ids, rests = h.permits.AppendTo(ids), append(rests, slices.Repeat([]time.Duration{rest}, h.permits.N)...)
			again := *h
			again.restored = true
			s.holds[i] = &again
		}
	}
	return ids, rests
}

// fits returns how many of the first of n elements have, together, not more permits than one command may be about.
func fits(n int, permits func(i int) int) (first int) {
	for all := 0; first < n; first++ {
		if all += permits(first); all > machine.MaxTogether && first > 0 {
			break
		}
	}
	return first
}

// add adds the permits of a request or a hold.
func (c *Command) add(p machine.Permits) { c.IDs, c.Counts = p.AppendTo(c.IDs), append(c.Counts, p.N) }

// retryLater schedules another try after a failure.
func (s *Semaphore) retryLater(o *op, f machine.Failure) {
	o.Failed(s.now, f, s.backoff(o.Tries))
	s.wakeAt.sooner(o.Due)
}

func (s *Semaphore) backoff(tries int) time.Duration {
	return machine.Backoff(tries, s.cfg.Watchdog, s.cfg.Watchdog/6)
}
