package expirable

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Acquire asks for permits. The request joins the queue, unless it does not wait and others do.
func (s *Semaphore) Acquire(now Instant, req Request) {
	s.begin(now)
	defer s.settle()
	if req.Try {
		req.Deadline = now + s.cfg.TryTime()
	}
	switch {
	case s.closing:
		s.refuse(&req, machine.Closed, machine.Closing)
	case req.Try && s.queue.Len() > 0 && s.wait.refused:
		s.refuse(&req, machine.Held, noneFree)
	case s.queue.Len() >= s.cfg.QueueLimit:
		s.refuse(&req, machine.QueueFull, fmt.Sprintf("%d requests wait for a permit already, and the limit is %d", s.queue.Len(), s.cfg.QueueLimit))
	default:
		s.queue.Push(&req)
		if req.Deadline > 0 {
			s.wakeAt.sooner(req.Deadline)
		}
	}
}

const noneFree = "no permit is free"

// Release gives back the permit of a hold. shown says that its id was shown since it was granted.
func (s *Semaphore) Release(now Instant, id uint64, shown bool, ref any) {
	s.begin(now)
	defer s.settle()
	h := s.holdByID(id)
	switch {
	case h != nil:
		s.release(h, h.shown || shown, ref)
	case s.lost.Why(id) != 0:
		s.effects.Answer(ref, machine.Answer{Kind: machine.NotFreed, Reason: machine.Lost, Detail: "the permit was lost before: " + s.lost.Why(id).String()})
	default:
		s.effects.Answer(ref, machine.Answer{Kind: machine.NotFreed, Reason: machine.NotHeld, Detail: "there is no such permit: it was never granted, or was released before"})
	}
}

// ReleaseID gives back a permit by its id, also one that another process holds. A holder here is notified, and all of its
// permits go back.
func (s *Semaphore) ReleaseID(now Instant, permit machine.PermitID, ref any) {
	s.begin(now)
	defer s.settle()
	if s.closing {
		s.effects.Answer(ref, machine.Answer{Kind: machine.NotFreed, Reason: machine.Closed, Detail: machine.Closing})
		return
	}
	b := giveBack{permits: machine.Permits{First: permit, N: 1}, ref: ref, unknown: true, until: now + s.cfg.TryTime()}
	if i := slices.IndexFunc(s.holds, func(h *hold) bool { return h.permits.Has(permit) }); i >= 0 {
		b.unknown, b.until, b.permits = false, s.holds[i].takenUntil(), s.holds[i].permits
		s.end(s.holds[i], machine.Forced, "it was released by its id")
	}
	s.giveBack(b)
}

// Cancel withdraws the waiting requests of an owner, or the request with that id.
func (s *Semaphore) Cancel(now Instant, id uint64, owner machine.Owner, ref any) {
	s.begin(now)
	defer s.settle()
	withdrawn := s.queue.Withdraw(id, uint64(owner))
	for _, req := range withdrawn {
		s.refuse(req, machine.CancelledByRequest, "the request was withdrawn")
	}
	s.effects.Answer(ref, machine.Answer{Kind: machine.Withdrawn, Count: len(withdrawn)})
}

// OwnerGone refuses the requests of an owner that has died, and gives its permits back. Another actor may have sent the
// requests.
func (s *Semaphore) OwnerGone(now Instant, owner machine.Owner) {
	s.begin(now)
	defer s.settle()
	for _, req := range s.queue.RemoveOwner(uint64(owner)) {
		s.refuse(req, machine.CancelledByRequest, machine.OwnerDied)
	}
	for _, h := range s.holds {
		if owner != 0 && h.owner == owner {
			s.release(h, h.shown, nil)
		}
	}
}

// Set sets how many permits there are.
func (s *Semaphore) Set(now Instant, mode SetMode, count int, ref any) {
	s.begin(now)
	defer s.settle()
	if s.closing {
		s.effects.Answer(ref, machine.Answer{Kind: machine.NotDone, Reason: machine.Closed, Detail: machine.Closing})
		return
	}
	s.sets = append(s.sets, set{mode: mode, count: count, ref: ref, until: now + s.cfg.TryTime()})
	s.wakeAt.sooner(now + s.cfg.TryTime())
}

// Tick lets time pass.
func (s *Semaphore) Tick(now Instant) {
	s.begin(now)
	s.settle()
}

// Close refuses the waiters, takes the permits from their holders, and gives them back.
func (s *Semaphore) Close(now Instant) {
	s.begin(now)
	defer s.settle()
	s.closing = true
	for _, req := range s.queue.Remove(func(*Request) bool { return true }) {
		s.refuse(req, machine.Closed, machine.Closing)
	}
	for _, h := range s.holds {
		s.lose(h, machine.Closed, machine.Closing)
	}
}

// Signal says that permits may have become free.
func (s *Semaphore) Signal(now Instant) {
	s.begin(now)
	defer s.settle()
	if s.main.kind == Acquire {
		s.wait.again = true
	} else if !s.wait.defers && s.queue.Len() > 0 {
		s.tryAt(s.now)
	}
}

// Subscribed says that from now on no message of the channel is missed; earlier ones may have been.
func (s *Semaphore) Subscribed(now Instant) {
	if s.sub.Confirm() {
		s.Signal(now)
	}
}

// Idle reports whether there is nothing to do and no state to keep.
func (s *Semaphore) Idle() bool {
	return len(s.holds)+s.queue.Len()+len(s.back)+len(s.sets) == 0 && s.main.kind == 0 && s.renewal.kind == 0 &&
		s.kept == 0 && s.sub == machine.Unsubscribed && s.effects.Len() == 0
}

// Sent returns the number of the last numbered command, 0 before the first; certain: none that was sent is still on
// its way.
func (s *Semaphore) Sent() (number uint64, certain bool) {
	return s.number, !s.mayArrive && s.main.kind == 0
}

// Snapshot is what this process knows without asking Redis: how many permits it holds, how many
// requests wait, and until when the first of the permits is valid if it is not renewed.
func (s *Semaphore) Snapshot() (held, waiters int, until Instant) {
	for _, h := range s.holds {
		if held += h.permits.N; until == 0 || h.end() < until {
			until = h.end()
		}
	}
	return held, s.queue.Len(), until
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
	for _, b := range s.back {
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

// First returns the first hold of an owner; 0 if it has none.
func (s *Semaphore) First(owner machine.Owner) uint64 {
	for _, h := range s.holds {
		if owner != 0 && h.owner == owner {
			return h.id
		}
	}
	return 0
}

// Cleanup returns the commands that give back everything of this process, and for how long from now
// they have a use. It is for a Semaphore that is given up.
func (s *Semaphore) Cleanup(now Instant) (all []Command, ttl time.Duration) {
	var taken []machine.Permits
	until := now + s.cfg.Watchdog
	for _, req := range s.main.requests {
		taken, until = append(taken, s.main.permits(req)), max(until, now+s.lease(req))
	}
	for _, h := range s.holds {
		taken, until = append(taken, h.permits), max(until, h.takenUntil())
	}
	for _, b := range s.back {
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
