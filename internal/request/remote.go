package request

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Owners on another node are remote owners. proto.actor reports a broken connection as a death, does
// not report a frozen node, and a restarted process reuses PIDs. So remote owners are not watched and
// need a fixed lease, and a PID is not enough to re-enter or release the hold of a remote owner.

// GuardianName is documented in package lockkeeper.
const GuardianName = "lockkeeper"

// Foreign reports whether a PID belongs to a process on another node.
func (r *Rules) Foreign(pid *actor.PID) bool {
	return pid != nil && pid.Address != r.Actors.Address() && pid.Address != "nonhost"
}

// Process returns the process of a local PID; nil for a dead or a remote actor.
func (r *Rules) Process(pid *actor.PID) actor.Process {
	if r.Foreign(pid) {
		return nil
	}
	process, ok := r.Actors.ProcessRegistry.GetLocal(pid.GetId())
	if !ok {
		return nil
	}
	return process
}

// SameLife reports whether two processes of one PID are the same. The host's own processes may have a type that cannot
// be compared: then they count as the same.
func SameLife(a, b actor.Process) bool {
	if a, is := a.(*actor.ActorProcess); is {
		b, is := b.(*actor.ActorProcess)
		return is && a == b
	}
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if !reflect.ValueOf(a).Comparable() || !reflect.ValueOf(b).Comparable() {
		return reflect.TypeOf(a) == reflect.TypeOf(b)
	}
	return a == b
}

var (
	errNoReader = errors.New("the request has no sender and names no owner: no actor would receive the grant, or release the lock")
	errNoEnd    = errors.New("the request has no owner, since a future cannot be one, so no death would release the lock: " +
		"name an actor as its owner, or give a lease or a max_hold")
	errNoHoldID = errors.New("an owner on another node must name the hold_id: an earlier actor may have had its PID")
)

const remoteReentryDetail = "an owner on another node cannot re-enter its hold, which may belong to an earlier actor with the same PID: " +
	"release it first, or wait for the end of its lease"

// checkEnd returns an error for an Acquire whose hold might never end.
func (r *Rules) checkEnd(m *messages.Acquire, by *ByMessage) error {
	owner, sender := by.ownerPID, by.replyTo
	if owner == nil && sender == nil {
		return errNoReader
	}
	for _, pid := range []*actor.PID{owner, sender} {
		if r.Foreign(pid) && m.Lease == nil {
			return fmt.Errorf("the request comes from another node, or is for an owner there (%s), whose death looks like "+
				"a broken connection: give a lease, or run a Lockkeeper System on that node and send the request to its guardian", pid.Address)
		}
	}
	switch {
	case owner == nil && m.Lease == nil && m.MaxHold == nil:
		return errNoEnd
	case owner != nil && !r.Foreign(owner) && r.Process(owner) == nil:
		return fmt.Errorf("the owner %s is not alive", owner.Id)
	}
	return nil
}

// IsFuture reports whether a PID belongs to a future, which must never be watched: any system message completes it.
func IsFuture(pid *actor.PID) bool { return strings.HasPrefix(pid.GetId(), "future$") }
