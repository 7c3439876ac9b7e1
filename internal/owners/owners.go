// Package owners keeps the actors that hold or want a lock. Each actor is watched for that time, unless it is on
// another node.
package owners

import (
	"slices"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// Owner is an actor that holds or wants a lock.
type Owner struct {
	// ID is fresh whenever the owner begins to use the lock.
	ID machine.Owner
	// Lost is the owner's last hold, if it was lost: a release that names no hold is about this hold.
	Lost uint64
	PID  *actor.PID
	// process tells two lives of a local PID apart, since PIDs are equal by name; nil for an owner on another node, or
	// a dead owner.
	process actor.Process
	// uses counts the requests and holds that need the watch.
	uses int
	// missingSince is the time at which the owner's process was first found to be no longer registered; 0 if it is
	// registered.
	missingSince machine.Instant
	// marker is the PID of a notice that the lock actor sends itself: it comes after all notices that were sent before.
	// Once the owner was asked, marker is the PID of the answer.
	marker *actor.PID
	// asker is the PID of the question whether the owner's process has stopped; nil if it was not asked.
	asker *actor.PID
}

// question watches a process in place of the lock actor, so that no other notice can be mistaken for the answer.
type question struct {
	by     Watcher
	marker *actor.PID
}

// SendSystemMessage implements actor.Process. The answer is a second notice about the marker. It ends the question,
// since the lock actor may no longer exist.
func (q *question) SendSystemMessage(self *actor.PID, message any) {
	if _, is := message.(*actor.Terminated); is {
		q.by.Rules.Actors.ProcessRegistry.Remove(self)
		q.by.Post.DeliverSystem(q.by.PID, &actor.Terminated{Who: q.marker})
	}
}

// SendUserMessage implements actor.Process.
func (q *question) SendUserMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (q *question) Stop(*actor.PID) {}

// withdraw removes the question to an owner, if it was asked.
func (by Watcher) withdraw(owner *Owner) {
	if owner.asker != nil {
		by.Rules.Actors.ProcessRegistry.Remove(owner.asker)
	}
}

// Set contains the owners of one lock. A nil Set is empty.
type Set struct {
	byPID map[pidKey]*Owner
	// idle are the owners that no longer use the lock, the longest idle first. They stay watched for a while, since an
	// actor that has used a lock often uses it again, and each watch costs both actors a message.
	idle []*Owner
	// replaced are owners whose PID another actor has by now, and whose Terminated has not come; the earliest first.
	replaced map[pidKey][]*Owner
	// checkAt is the time at which RemoveMissing looks for the processes again.
	checkAt machine.Instant
}

// maxIdleWatches bounds the owners that are watched without need.
const maxIdleWatches = 64

type pidKey struct{ address, id string }

func pidKeyOf(pid *actor.PID) pidKey { return pidKey{pid.GetAddress(), pid.GetId()} }

// Watcher is the lock actor that watches the owners.
type Watcher struct {
	Post  *delivery.Post
	Rules *request.Rules
	PID   *actor.PID
	// Numbers counts the owners in the system. A number is used once: the number of an owner of an earlier lock actor
	// matches no owner of a later lock actor.
	Numbers *atomic.Uint64
}

// NewOwner numbers an owner that no request has named before.
func (by Watcher) NewOwner() machine.Owner { return machine.Owner(by.Numbers.Add(1)) }

// watch watches the process of an owner, since a watch by its PID could reach another life.
func (by Watcher) watch(owner *Owner) {
	by.Post.SendSystem(owner.process, owner.PID, &actor.Watch{Watcher: by.PID})
}

// hasStopped reports whether a notice says that an actor that is no longer registered has stopped: the actor may still
// be handling its Stopped. The notice may date from the time when the actor waited for its children. Or it may be about
// an earlier life of its name that did not learn in time that it is no longer watched; such a notice may come while
// this life handles its Stopped. So the actor is asked once more when all earlier notices have been read, and only its
// answer counts: an actor that has stopped answers at once. Another kind of process cannot be asked.
func (by Watcher) hasStopped(owner *Owner, notice *actor.PID) bool {
	if _, is := owner.process.(*actor.ActorProcess); !is {
		return true
	}
	switch {
	case owner.marker == nil:
		owner.marker = actor.NewPID(owner.PID.GetAddress(), owner.PID.GetId())
		by.Post.DeliverSystem(by.PID, &actor.Terminated{Who: owner.marker})
	case notice == owner.marker && owner.asker == nil:
		registry := by.Rules.Actors.ProcessRegistry
		// Another marker: after a crash the lock actor gets the last notice again, which is no answer.
		owner.marker = actor.NewPID(owner.PID.GetAddress(), owner.PID.GetId())
		owner.asker, _ = registry.Add(&question{by, owner.marker}, "lockkeeper-question-"+registry.NextId())
		by.Post.SendSystem(owner.process, owner.PID, &actor.Watch{Watcher: owner.asker})
	default:
		return notice == owner.marker
	}
	return false
}

// registered reports whether the PID of an owner still has the owner's process.
func (by Watcher) registered(owner *Owner) bool {
	return owner.process != nil && request.SameLife(by.Rules.Process(owner.PID), owner.process)
}

// InUse reports whether any owner holds or wants the lock.
func (s *Set) InUse() bool { return s != nil && len(s.byPID) > len(s.idle) }

// Acquire finds or begins the record of an owner that makes a request, counts this use, and watches the owner unless it
// is on another node.
func (s *Set) Acquire(by Watcher, pid *actor.PID, process actor.Process) *Owner {
	known := s.byPID[pidKeyOf(pid)]
	if known != nil && !request.SameLife(known.process, process) {
		// A new life under an old name. The old life may still handle its Stopped, and its Terminated comes after that.
		s.reuse(known)
		if s.replaced == nil {
			s.replaced = map[pidKey][]*Owner{}
		}
		s.replaced[pidKeyOf(pid)] = append(s.replaced[pidKeyOf(pid)], known)
		known = nil
	}
	switch {
	case known == nil:
		known = &Owner{ID: by.NewOwner(), PID: pid, process: process}
		if s.byPID == nil {
			s.byPID = map[pidKey]*Owner{}
		}
		s.byPID[pidKeyOf(pid)] = known
		if process != nil {
			by.watch(known)
		} else if !by.Rules.Foreign(pid) {
			by.Post.DeliverSystem(by.PID, &actor.Terminated{Who: pid, Why: actor.TerminatedReason_NotFound})
		}
	case known.uses == 0:
		known.ID = by.NewOwner()
		s.reuse(known)
	}
	known.uses++
	return known
}

// reuse takes an owner out of the idle owners.
func (s *Set) reuse(owner *Owner) {
	if i := slices.Index(s.idle, owner); i >= 0 {
		s.idle = slices.Delete(s.idle, i, i+1)
	}
}

// Find returns the record of an actor that may have requests here; nil if there is no record, or if the record belongs
// to another life. A nil life stands for any life.
func (s *Set) Find(pid *actor.PID, life actor.Process) *Owner {
	if s == nil {
		return nil
	}
	if owner := s.byPID[pidKeyOf(pid)]; owner != nil && (life == nil || request.SameLife(life, owner.process)) {
		return owner
	}
	return nil
}

// EndUse ends one use of an owner.
func (s *Set) EndUse(by Watcher, owner *Owner) {
	if owner.uses--; owner.uses > 0 || s.byPID[pidKeyOf(owner.PID)] != owner {
		return
	}
	if owner.process == nil { // the owner is not watched
		delete(s.byPID, pidKeyOf(owner.PID))
		return
	}
	s.idle = append(s.idle, owner)
	s.forget(by, len(s.idle)-maxIdleWatches)
}

// Forget ends the watch of the owners that no longer use the lock.
func (s *Set) Forget(by Watcher) {
	if s != nil {
		s.forget(by, len(s.idle))
	}
}

// forget ends the watch of the first n idle owners.
func (s *Set) forget(by Watcher, n int) {
	for range n {
		owner := s.idle[0]
		s.idle = slices.Delete(s.idle, 0, 1)
		delete(s.byPID, pidKeyOf(owner.PID))
		by.Post.SendSystem(owner.process, owner.PID, &actor.Unwatch{Watcher: by.PID})
		by.withdraw(owner)
	}
}

// RemoveTerminated removes and returns the owner that has stopped, as proto.actor says. It returns nil if the notice is
// about an earlier life, or if the owner has not stopped yet: then the owner is watched again, and another notice
// follows.
func (s *Set) RemoveTerminated(by Watcher, pid *actor.PID) (gone *Owner) {
	if s == nil {
		return nil
	}
	owner := s.byPID[pidKeyOf(pid)]
	if replaced := s.replacedOwner(pid); replaced != nil {
		owner = replaced
	} else if owner == nil || by.Rules.Foreign(pid) {
		return nil
	} else if by.registered(owner) { // the owner is stopping, or the notice is about an earlier life
		by.Post.WatchAgain(owner.process, pid, by.PID)
		return nil
	}
	if !by.hasStopped(owner, pid) {
		return nil
	}
	s.drop(by, owner)
	return owner
}

// replacedOwner returns the replaced owner that a notice is about: the owner with the same pointer, since an actor
// itself says that it has stopped, or else the earliest owner; nil if there is none.
func (s *Set) replacedOwner(pid *actor.PID) *Owner {
	replaced := s.replaced[pidKeyOf(pid)]
	is := func(owner *Owner) bool { return owner.PID == pid || owner.marker == pid }
	if i := slices.IndexFunc(replaced, is); i >= 0 {
		return replaced[i]
	}
	if owner := s.byPID[pidKeyOf(pid)]; len(replaced) == 0 || owner != nil && is(owner) {
		return nil
	}
	return replaced[0]
}

// drop removes an owner that has gone.
func (s *Set) drop(by Watcher, owner *Owner) {
	by.withdraw(owner)
	s.reuse(owner)
	key := pidKeyOf(owner.PID)
	if others := slices.DeleteFunc(s.replaced[key], func(other *Owner) bool { return other == owner }); len(others) > 0 {
		s.replaced[key] = others
	} else {
		delete(s.replaced, key)
	}
	if s.byPID[key] == owner {
		delete(s.byPID, key)
	}
}

// NextCheck returns the time at which RemoveMissing is to be called next. With a fixed lease, which is not renewed,
// nothing else wakes the lock actor.
func (s *Set) NextCheck(now, timeout machine.Instant) (at machine.Instant, wanted bool) {
	if !s.InUse() && (s == nil || len(s.replaced) == 0) {
		return 0, false
	}
	if s.checkAt == 0 {
		s.checkAt = now + timeout/3
	}
	return s.checkAt, true
}

// RemoveMissing removes and returns owners that have gone without a notice, such as an actor that panicked while it
// handled its Stopped. An actor that has left the registry may still be handling its Stopped, so it counts as gone
// after timeout. RemoveMissing checks the processes three times in that time, however often it is called.
func (s *Set) RemoveMissing(by Watcher, now, timeout machine.Instant) (gone []*Owner) {
	if s == nil || now < s.checkAt {
		return nil
	}
	s.checkAt = now + timeout/3
	check := func(owner *Owner) {
		switch {
		case owner.process == nil || by.registered(owner):
		case owner.missingSince == 0:
			owner.missingSince = now
			by.watch(owner) // once it has stopped, it answers at once
		case now-owner.missingSince >= timeout:
			gone = append(gone, owner)
		}
	}
	for _, owner := range s.byPID {
		check(owner)
	}
	for _, owners := range s.replaced {
		for _, owner := range owners {
			check(owner)
		}
	}
	for _, owner := range gone {
		s.drop(by, owner)
	}
	return gone
}
