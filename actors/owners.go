package actors

import (
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/owners"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// registerOwner returns the owner number for an Acquire; 0 for none. It watches an owner that is an actor, and counts
// this use. A goroutine's first Acquire of a lock gets a new number; a re-entry names the number of its hold.
func (s *lockActor) registerOwner(call *request.Call) machine.Owner {
	if pid, life := call.OwnerLife(); pid != nil {
		if s.owners == nil {
			s.owners = new(owners.Set)
		}
		w := s.owners.Acquire(s.watcher(), pid, life)
		call.Record = w
		return w.ID
	}
	if call.By == nil && call.Owner == 0 && call.Count == nil { // a goroutine's first hold
		call.Owner = s.watcher().NewOwner()
	}
	return call.Owner
}

// watcher watches the owners that are actors.
func (s *lockActor) watcher() owners.Watcher {
	return owners.Watcher{Post: &s.rt.post, Rules: &s.rt.rules, PID: s.pid, Numbers: &s.rt.owners}
}

// ownerOf returns the record of the owner of a request; nil if it has none.
func ownerOf(call *request.Call) *owners.Owner {
	w, _ := call.Record.(*owners.Owner)
	return w
}

// ownerAnswered records that a request of an owner is answered. A re-entry is part of the hold that it joined, and
// permits of a semaphore are no hold.
func (s *lockActor) ownerAnswered(call *request.Call, a *machine.Answer) {
	w := ownerOf(call)
	if w == nil {
		return
	}
	if a.Kind == machine.Granted {
		w.Lost = 0
	}
	if a.Kind == machine.NotGranted || a.Kind == machine.Granted && !call.BeganHold(a) {
		s.ownerDone(w)
	}
}

// ownerDone ends one use of an owner, which may be nil.
func (s *lockActor) ownerDone(w *owners.Owner) {
	if w != nil && s.ctx != nil { // without a context the actor is being given up, and its watches with it
		s.owners.EndUse(s.watcher(), w)
	}
}

// ownerGone handles the death of an owner, which may be nil.
func (s *lockActor) ownerGone(w *owners.Owner) {
	if w != nil {
		s.step(func(on machine.Machine, now machine.Instant) { on.OwnerGone(now, w.ID) })
	}
}
