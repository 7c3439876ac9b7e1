package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// owner is an actor that holds or wants a lock, and is watched for that time unless it is on another node.
type owner struct {
	// id is fresh whenever the owner begins to use the lock.
	id  machine.Owner
	pid *actor.PID
	// process tells two lives of a local PID apart, since PIDs are equal by name; nil for one on another node, or dead.
	process actor.Process
	// uses counts the requests and holds that need the watch.
	uses int
	// lost is its last hold, if that was lost: a release that names no hold is about that one.
	lost uint64
}

// owners are the owners of one lock.
type owners struct {
	byPID map[pidKey]*owner
	// resting are the owners that use the lock no more, the longest first. They stay watched for a while: an actor that
	// has used a lock often uses it again, and each watch costs both actors a message.
	resting []*owner
	// former are owners whose PID another actor has by now, and whose Terminated has not come.
	former []*owner
}

// maxIdleWatches bounds the owners that are watched without need.
const maxIdleWatches = 64

// inUse reports whether any owner holds or wants the lock.
func (o *owners) inUse() bool { return len(o.byPID) > len(o.resting) }

type pidKey struct{ address, id string }

func pidKeyOf(pid *actor.PID) pidKey { return pidKey{pid.GetAddress(), pid.GetId()} }

// newOwner numbers an owner that no request has named before. Numbers are used once in a system: one from a lock
// actor's earlier life fits no owner in a later one.
func (r *Runtime) newOwner() machine.Owner { return machine.Owner(r.owners.Add(1)) }

// acquire finds or begins the record of an owner that makes a request, counts this use, and watches the owner unless it
// is on another node.
func (o *owners) acquire(s *lockState, pid *actor.PID, process actor.Process) *owner {
	known := o.byPID[pidKeyOf(pid)]
	if known != nil && known.process != process {
		// A new life under an old name. The old one may still handle its Stopped, and its Terminated comes after that.
		o.wake(known)
		o.former = append(o.former, known)
		known = nil
	}
	switch {
	case known == nil:
		known = &owner{id: s.rt.newOwner(), pid: pid, process: process}
		if o.byPID == nil {
			o.byPID = map[pidKey]*owner{}
		}
		o.byPID[pidKeyOf(pid)] = known
		if process != nil { // by its PID, another life could be watched
			s.rt.post.SendSystem(process, pid, &actor.Watch{Watcher: s.pid})
		} else if !s.rt.rules.Foreign(pid) {
			s.rt.post.DeliverSystem(s.pid, &actor.Terminated{Who: pid, Why: actor.TerminatedReason_NotFound})
		}
	case known.uses == 0:
		known.id = s.rt.newOwner()
		o.wake(known)
	}
	known.uses++
	return known
}

// wake takes an owner out of the resting ones.
func (o *owners) wake(w *owner) {
	if i := slices.Index(o.resting, w); i >= 0 {
		o.resting = slices.Delete(o.resting, i, i+1)
	}
}

// find returns the record of the owner of a call that may have requests here; nil if there is none, or if it is that of
// another life.
func (o *owners) find(call *request.Call) *owner {
	pid, life := call.OwnerLife()
	if w := o.byPID[pidKeyOf(pid)]; w != nil && (life == nil || life == w.process) {
		return w
	}
	return nil
}

// done ends one use of an owner.
func (o *owners) done(s *lockState, w *owner) {
	if w == nil || s.ctx == nil {
		return // without a context the actor is being given up, and its watches with it
	}
	if w.uses--; w.uses > 0 || o.byPID[pidKeyOf(w.pid)] != w {
		return
	}
	if w.process == nil { // it is not watched
		delete(o.byPID, pidKeyOf(w.pid))
		return
	}
	o.resting = append(o.resting, w)
	o.forget(s, len(o.resting)-maxIdleWatches)
}

// ownerOf returns the record of the owner of a request; nil if it has none.
func ownerOf(call *request.Call) *owner {
	w, _ := call.Record.(*owner)
	return w
}

// ownerAnswered records that a request of an owner is answered. A re-entry is part of the hold that it joined, and
// permits of a semaphore are no hold.
func (s *lockState) ownerAnswered(call *request.Call, a *machine.Answer) {
	w := ownerOf(call)
	if w == nil {
		return
	}
	if a.Kind == machine.Granted {
		w.lost = 0
	}
	if a.Kind == machine.NotGranted || a.Kind == machine.Granted && a.FirstRef != any(call) {
		s.owners.done(s, w)
	}
}

// forget ends the watch of the first n of the resting ones.
func (o *owners) forget(s *lockState, n int) {
	for range n {
		w := o.resting[0]
		o.resting = slices.Delete(o.resting, 0, 1)
		delete(o.byPID, pidKeyOf(w.pid))
		s.rt.post.SendSystem(w.process, w.pid, &actor.Unwatch{Watcher: s.pid})
	}
}

// terminated handles the death of an owner, unless it is that of an earlier life, or is yet to come.
func (o *owners) terminated(s *lockState, pid *actor.PID) {
	w := o.byPID[pidKeyOf(pid)]
	if i := slices.IndexFunc(o.former, func(f *owner) bool { return f.pid.Equal(pid) }); i >= 0 {
		w = o.former[i]
		o.former = slices.Delete(o.former, i, i+1)
	} else if w == nil || s.rt.rules.Foreign(pid) {
		return
	} else if w.process != nil && s.rt.rules.Process(pid) == w.process { // it is stopping, or has said so of an earlier life
		s.rt.post.WatchAgain(w.process, pid, s.pid)
		return
	}
	o.gone(s, w)
}

func (o *owners) gone(s *lockState, w *owner) {
	o.wake(w)
	if o.byPID[pidKeyOf(w.pid)] == w {
		delete(o.byPID, pidKeyOf(w.pid))
	}
	s.step(func(on machine.Machine, now machine.Instant) { on.OwnerGone(now, w.id) })
}
