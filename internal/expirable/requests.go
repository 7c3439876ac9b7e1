package expirable

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Acquire asks for permits. The request joins the queue, unless it does not wait and others do.
func (s *Semaphore) Acquire(now Instant, req Request) {
	defer s.begin(now).settle()
	if req.Try {
		req.Deadline = now + s.cfg.TryTime()
	}
	switch {
	case s.closing:
		s.refuse(&req, machine.Closed, machine.Closing)
	case req.Try && s.queue.Len() > 0 && s.wait.Refused && s.wait.LastErr == beingSet:
		s.refuse(&req, machine.NoPermits, machine.NoNumber+"; "+beingSet)
	case req.Try && s.queue.Len() > 0 && s.wait.Refused:
		s.refuse(&req, machine.Held, tooFew)
	case s.queue.Len() >= s.cfg.QueueLimit:
		s.refuse(&req, machine.QueueFull,
			fmt.Sprintf("%d requests wait for a permit already, and the limit is %d", s.queue.Len(), s.cfg.QueueLimit))
	default:
		if s.queue.Len() == 0 {
			s.wait = waiting{}
		}
		s.queue.Push(&req)
	}
}

// Release gives back the permit of a hold.
func (s *Semaphore) Release(now Instant, r machine.Release) {
	id := s.meant(r.ID, r.Owner)
	defer s.begin(now).settle()
	if h := s.holdByID(id); h != nil {
		s.release(h, h.shown || r.Shown, r.Ref)
	} else {
		s.refuseOver(id, r.Ref, machine.NotFreed)
	}
}

// meant returns the hold that a request is about: the first hold of the owner or, if the owner is 0 or has none, the
// hold with that id. It comes before begin, which may grant the owner another hold.
func (s *Semaphore) meant(id uint64, owner machine.Owner) uint64 {
	for _, h := range s.holds {
		if owner != 0 && h.owner == owner {
			return h.id
		}
	}
	return id
}

// ReleaseID gives back a permit by its id, also one that another process holds. A holder here is notified, and all of
// its permits go back.
func (s *Semaphore) ReleaseID(now Instant, permit machine.PermitID, ref any) {
	defer s.begin(now).settle()
	if s.closing {
		s.effects.Refuse(ref, machine.NotFreed, machine.Closed, machine.Closing)
		return
	}
	b := permitReturn{permits: machine.Permits{First: permit, N: 1}, ref: ref, unknown: true, until: now + s.cfg.TryTime()}
	if i := slices.IndexFunc(s.holds, func(h *hold) bool { return h.permits.Has(permit) }); i >= 0 {
		b.unknown, b.until, b.permits = false, s.holds[i].takenUntil(), s.holds[i].permits
		s.end(s.holds[i], machine.Forced, "it was released by its id")
	}
	s.giveBack(b)
}

// Extend gives the permit of a hold a fixed lease that begins now, or for 0 the lease of the watchdog.
func (s *Semaphore) Extend(now Instant, id uint64, owner machine.Owner, lease time.Duration, ref any) {
	id = s.meant(id, owner)
	defer s.begin(now).settle()
	h := s.holdByID(id)
	if h == nil {
		s.refuseOver(id, ref, machine.NotDone)
		return
	}
	if why := machine.CannotExtend(lease, s.now, h.maxEnd, h.unwatched); why != "" {
		s.effects.Refuse(ref, machine.NotDone, machine.Invalid, why)
		return
	}
	s.addExtension(extension{hold: id, lease: lease, ref: ref})
}

// Cancel withdraws the waiting requests of an owner, or the request with that id.
func (s *Semaphore) Cancel(now Instant, id uint64, owner machine.Owner, ref any) {
	defer s.begin(now).settle()
	withdrawn := s.queue.Withdraw(id, uint64(owner))
	for _, req := range withdrawn {
		s.refuse(req, machine.CancelledByRequest, machine.WasWithdrawn)
	}
	s.effects.Answer(ref, machine.Answer{Kind: machine.Withdrawn, Count: len(withdrawn)})
}

// OwnerGone refuses the requests of an owner that has died, and gives its permits back. Another actor may have sent the
// requests.
func (s *Semaphore) OwnerGone(now Instant, owner machine.Owner) {
	defer s.begin(now).settle()
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
	defer s.begin(now).settle()
	if s.closing {
		s.effects.Refuse(ref, machine.NotDone, machine.Closed, machine.Closing)
		return
	}
	until := now + s.cfg.TryTime()
	s.sets = append(s.sets, set{mode: mode, count: count, ref: ref, until: until})
	s.nextEnd.Add(until)
}

// Close refuses the waiters, takes the permits from their holders, and gives them back.
func (s *Semaphore) Close(now Instant) {
	defer s.begin(now).settle()
	s.closing = true
	for _, req := range s.queue.Remove(func(*Request) bool { return true }) {
		s.refuse(req, machine.Closed, machine.Closing)
	}
	for _, h := range s.holds {
		s.lose(h, machine.Closed, machine.Closing)
	}
}
