package expirable

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Idle reports whether there is nothing to do and no state to keep.
func (s *Semaphore) Idle() bool {
	return len(s.holds)+s.queue.Len()+len(s.pendingReturns)+len(s.sets) == 0 && s.main.kind == 0 && s.renewal.kind == 0 &&
		s.reserved == 0 && s.sub.State == machine.Unsubscribed && s.effects.Len() == 0
}

// Sent returns the number of the last numbered command, 0 before the first; certain: none that was sent is still on
// its way.
func (s *Semaphore) Sent() (number uint64, certain bool) {
	return s.number, !s.mayArrive && s.main.kind == 0
}

// Snapshot returns the state in this process, for users. Count is the number of permits that are held, and Until the
// end of the first of them without a renewal.
func (s *Semaphore) Snapshot() machine.Snapshot {
	now := machine.Snapshot{HeldHere: len(s.holds) > 0, Waiters: s.queue.Len()}
	for _, h := range s.holds {
		if now.Count += h.permits.N; now.Until == 0 || h.end() < now.Until {
			now.Until = h.end()
		}
	}
	return now
}

// Outstanding returns the holders, and the requests that await an answer. It is for a Semaphore
// that is given up.
func (s *Semaphore) Outstanding() (holders []machine.Holder, pending []any) {
	for _, h := range s.holds {
		holders = append(holders, machine.Holder{Ref: h.ref, ID: h.id})
	}
	var refs machine.Refs
	for req := range s.queue.All() {
		refs.Add(req.Ref)
	}
	for _, b := range s.pendingReturns {
		refs.Add(b.ref)
	}
	for _, one := range s.sets {
		refs.Add(one.ref)
	}
	for _, e := range s.extensions {
		refs.Add(e.ref)
	}
	refs.AddReplies(&s.effects)
	return holders, refs
}

// FirstWaiter returns the Ref of the first request that waits, or nil.
func (s *Semaphore) FirstWaiter() any {
	if s.queue.Len() == 0 {
		return nil
	}
	return s.queue.Head().Ref
}

// Summary returns what the actor reads after each event.
func (s *Semaphore) Summary() machine.Summary {
	first := s.FirstWaiter()
	if len(s.holds) > 0 {
		first = s.holds[0].ref
	}
	return machine.Summary{Holds: len(s.holds), Waiters: s.queue.Len(), FirstRef: first}
}

// Cleanup returns the commands that give back everything of this process, and the time for which they have a use. It
// is for a Semaphore that is given up.
func (s *Semaphore) Cleanup(now Instant) (all []Command, ttl time.Duration) {
	var taken []machine.Permits
	until := now + s.cfg.Watchdog
	for _, req := range s.main.requests {
		taken, until = append(taken, s.main.permits(req)), max(until, now+s.lease(req))
	}
	for _, h := range s.holds {
		taken, until = append(taken, h.permits), max(until, h.takenUntil())
	}
	for _, b := range s.pendingReturns {
		taken, until = append(taken, b.permits), max(until, b.until)
	}
	for n := 0; len(taken) > 0; taken = taken[n:] {
		n = fits(min(len(taken), releaseBatch), func(i int) int { return taken[i].N })
		s.takeNumber(now)
		c := Command{Kind: Release, Number: s.number}
		for _, p := range taken[:n] {
			c.add(p)
		}
		all = append(all, c)
	}
	return all, until - now + s.cfg.CallTimeout
}
