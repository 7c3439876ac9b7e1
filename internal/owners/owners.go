// Package owners keeps the actors that hold or want a lock. Each is watched for that time, unless it is on another
// node.
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
	// Lost is its last hold, if that was lost: a release that names no hold is about that one.
	Lost uint64
	PID  *actor.PID
	// process tells two lives of a local PID apart, since PIDs are equal by name; nil for one on another node, or dead.
	process actor.Process
	// uses counts the requests and holds that need the watch.
	uses int
	// missingSince is the time at which its process was first found to be registered no more; 0 if it is registered.
	missingSince machine.Instant
	// marker is a PID of its own for the owner: the notice about it comes after those that were sent before. asked: its
	// process was asked whether it has stopped.
	marker *actor.PID
	asked  bool
}

// Set has the owners of one lock. A nil Set has none.
type Set struct {
	byPID map[pidKey]*Owner
	// idle are the owners that use the lock no more, the longest first. They stay watched for a while: an actor that
	// has used a lock often uses it again, and each watch costs both actors a message.
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
	// Numbers counts the owners in the system. A number is used once: that of an owner of a lock actor's earlier life fits
	// no owner in a later one.
	Numbers *atomic.Uint64
}

// NewOwner numbers an owner that no request has named before.
func (by Watcher) NewOwner() machine.Owner { return machine.Owner(by.Numbers.Add(1)) }

// watch watches the process of an owner. By its PID, another life could be watched.
func (by Watcher) watch(w *Owner) {
	by.Post.SendSystem(w.process, w.PID, &actor.Watch{Watcher: by.PID})
}

// hasStopped reports whether a notice says that an actor that is registered no more has stopped: it may still be handling
// its Stopped. The notice may be from the time before, when it waited for its children, or that of an earlier life of its
// name, which has not heard in time that it is watched no more. So the actor is asked once more when all notices of that
// time have been read: one that has stopped answers at once. Another kind of process cannot be asked.
func (by Watcher) hasStopped(w *Owner, notice *actor.PID) bool {
	if _, is := w.process.(*actor.ActorProcess); !is {
		return true
	}
	switch {
	case w.marker == nil:
		w.marker = actor.NewPID(w.PID.GetAddress(), w.PID.GetId())
		by.Post.DeliverSystem(by.PID, &actor.Terminated{Who: w.marker})
	case notice == w.marker:
		w.asked = true
		by.watch(w)
	default:
		return w.asked
	}
	return false
}

// registered reports whether the PID of an owner still has the owner's process.
func (by Watcher) registered(w *Owner) bool {
	return w.process != nil && request.SameLife(by.Rules.Process(w.PID), w.process)
}

// InUse reports whether any owner holds or wants the lock.
func (o *Set) InUse() bool { return o != nil && len(o.byPID) > len(o.idle) }

// Acquire finds or begins the record of an owner that makes a request, counts this use, and watches the owner unless it
// is on another node.
func (o *Set) Acquire(by Watcher, pid *actor.PID, process actor.Process) *Owner {
	known := o.byPID[pidKeyOf(pid)]
	if known != nil && !request.SameLife(known.process, process) {
		// A new life under an old name. The old one may still handle its Stopped, and its Terminated comes after that.
		o.reuse(known)
		if o.replaced == nil {
			o.replaced = map[pidKey][]*Owner{}
		}
		o.replaced[pidKeyOf(pid)] = append(o.replaced[pidKeyOf(pid)], known)
		known = nil
	}
	switch {
	case known == nil:
		known = &Owner{ID: by.NewOwner(), PID: pid, process: process}
		if o.byPID == nil {
			o.byPID = map[pidKey]*Owner{}
		}
		o.byPID[pidKeyOf(pid)] = known
		if process != nil {
			by.watch(known)
		} else if !by.Rules.Foreign(pid) {
			by.Post.DeliverSystem(by.PID, &actor.Terminated{Who: pid, Why: actor.TerminatedReason_NotFound})
		}
	case known.uses == 0:
		known.ID = by.NewOwner()
		o.reuse(known)
	}
	known.uses++
	return known
}

// reuse takes an owner out of the idle ones.
func (o *Set) reuse(w *Owner) {
	if i := slices.Index(o.idle, w); i >= 0 {
		o.idle = slices.Delete(o.idle, i, i+1)
	}
}

// Find returns the record of an actor that may have requests here; nil if there is none, or if it is that of another
// life. A nil life stands for any.
func (o *Set) Find(pid *actor.PID, life actor.Process) *Owner {
	if o == nil {
		return nil
	}
	if w := o.byPID[pidKeyOf(pid)]; w != nil && (life == nil || request.SameLife(life, w.process)) {
		return w
	}
	return nil
}

// EndUse ends one use of an owner.
func (o *Set) EndUse(by Watcher, w *Owner) {
	if w.uses--; w.uses > 0 || o.byPID[pidKeyOf(w.PID)] != w {
		return
	}
	if w.process == nil { // it is not watched
		delete(o.byPID, pidKeyOf(w.PID))
		return
	}
	o.idle = append(o.idle, w)
	o.forget(by, len(o.idle)-maxIdleWatches)
}

// Forget ends the watch of the owners that use the lock no more.
func (o *Set) Forget(by Watcher) {
	if o != nil {
		o.forget(by, len(o.idle))
	}
}

// forget ends the watch of the first n of the idle ones.
func (o *Set) forget(by Watcher, n int) {
	for range n {
		w := o.idle[0]
		o.idle = slices.Delete(o.idle, 0, 1)
		delete(o.byPID, pidKeyOf(w.PID))
		by.Post.SendSystem(w.process, w.PID, &actor.Unwatch{Watcher: by.PID})
	}
}

// RemoveTerminated removes and returns the owner that has stopped, as proto.actor says; nil if the notice is about an
// earlier life, or if the owner is yet to stop: it is watched again then, and says so once more.
func (o *Set) RemoveTerminated(by Watcher, pid *actor.PID) (gone *Owner) {
	if o == nil {
		return nil
	}
	w := o.byPID[pidKeyOf(pid)]
	if r := o.replacedOwner(pid); r != nil {
		w = r
	} else if w == nil || by.Rules.Foreign(pid) {
		return nil
	} else if by.registered(w) { // it is stopping, or has said so of an earlier life
		by.Post.WatchAgain(w.process, pid, by.PID)
		return nil
	}
	if !by.hasStopped(w, pid) {
		return nil
	}
	o.drop(w)
	return w
}

// replacedOwner returns the replaced owner that a notice is about: the one with the same pointer, since an actor says
// itself that it has stopped, or else the earliest; nil if there is none.
func (o *Set) replacedOwner(pid *actor.PID) *Owner {
	replaced := o.replaced[pidKeyOf(pid)]
	is := func(w *Owner) bool { return w.PID == pid || w.marker == pid }
	if i := slices.IndexFunc(replaced, is); i >= 0 {
		return replaced[i]
	}
	if w := o.byPID[pidKeyOf(pid)]; len(replaced) == 0 || w != nil && is(w) {
		return nil
	}
	return replaced[0]
}

// drop removes an owner that has gone.
func (o *Set) drop(w *Owner) {
	o.reuse(w)
	key := pidKeyOf(w.PID)
	if others := slices.DeleteFunc(o.replaced[key], func(r *Owner) bool { return r == w }); len(others) > 0 {
		o.replaced[key] = others
	} else {
		delete(o.replaced, key)
	}
	if o.byPID[key] == w {
		delete(o.byPID, key)
	}
}

// NextCheck returns the time at which RemoveMissing is to be called next. It matters for a fixed lease, which is not
// renewed: nothing else wakes the lock actor.
func (o *Set) NextCheck(now, timeout machine.Instant) (at machine.Instant, wanted bool) {
	if !o.InUse() && (o == nil || len(o.replaced) == 0) {
		return 0, false
	}
	if o.checkAt == 0 {
		o.checkAt = now + timeout/3
	}
	return o.checkAt, true
}

// RemoveMissing removes and returns owners that have gone without a notice: an actor that panics while it handles its
// Stopped sends none. An actor that has left the registry may still be handling it, so it counts as gone after
// timeout. It checks the processes three times in that time, however often it is called.
func (o *Set) RemoveMissing(by Watcher, now, timeout machine.Instant) (gone []*Owner) {
	if o == nil || now < o.checkAt {
		return nil
	}
	o.checkAt = now + timeout/3
	check := func(w *Owner) {
		switch {
		case w.process == nil || by.registered(w):
		case w.missingSince == 0:
			w.missingSince = now
			by.watch(w) // once it has stopped, it answers at once
		case now-w.missingSince >= timeout:
			gone = append(gone, w)
		}
	}
	for _, w := range o.byPID {
		check(w)
	}
	for _, owners := range o.replaced {
		for _, w := range owners {
			check(w)
		}
	}
	for _, w := range gone {
		o.drop(w)
	}
	return gone
}
