package actors

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Of an actor on another node nothing is known for certain: proto.actor takes a connection
// that breaks for its death, says nothing of a node that has frozen, and a process that is
// born again at the same address has actors with the PIDs of the old ones. So such an owner
// is not watched. It has a fixed lease, which ends its hold whatever became of it, and it
// neither re-enters nor releases a hold in the name of its PID.

// foreign reports whether a PID is that of a process on another node.
func (r *Runtime) foreign(pid *actor.PID) bool {
	return pid != nil && pid.Address != r.actor.Address() && pid.Address != "nonhost"
}

var (
	errForNobody = errors.New("the request has no sender and names no owner: nobody could be told of the lock, or release it")
	errNoEnd     = errors.New("the request has no owner, since a future owns nothing, and nobody's death would release the lock: name an actor as its owner, or give a lease or a max_hold")
	errNoHoldID  = errors.New("an owner on another node must name the hold_id: its PID may have been another's before")
)

const reentryFromAfar = "an owner on another node cannot re-enter its hold, which an actor of the same PID may have had before: release it first, or wait for the end of its lease"

// checkOwner says what is wrong with a request because of whoever it is for.
func (r *Runtime) checkOwner(m any, sender *actor.PID) error {
	switch m := m.(type) {
	case *messages.Acquire:
		return r.checkEnd(m, requestOwner(m.Owner, sender), sender)
	case *messages.Release:
		if m.HoldId == "" && r.foreign(requestOwner(m.Owner, sender)) {
			return errNoHoldID
		}
	}
	return nil
}

// checkEnd says what is wrong with an Acquire whose hold might never end.
func (r *Runtime) checkEnd(m *messages.Acquire, owner, sender *actor.PID) error {
	if owner == nil && sender == nil {
		return errForNobody
	}
	for _, pid := range []*actor.PID{owner, sender} {
		if r.foreign(pid) && m.Lease == nil {
			return fmt.Errorf("the request comes from another node, or is for an owner there (%s), whose death cannot be told from a broken connection: give a lease, or run a Lockkeeper System on that node and ask that", pid.Address)
		}
	}
	switch {
	case owner == nil && m.Lease == nil && m.MaxHold == nil:
		return errNoEnd
	case owner != nil && !r.foreign(owner) && r.localProcess(owner) == nil:
		return fmt.Errorf("the owner %s is not alive", owner.Id)
	}
	return nil
}

// validity is how long a lease is good for, as its owner is told. Who counts it on another
// node, from when the request was sent, has a clock of its own, as Redis has.
func (l *letter) validity(rt *Runtime, until core.Instant) core.Instant {
	left := max(until-rt.Now(), 0)
	if rt.foreign(l.ownerPID()) || rt.foreign(l.replyTo) {
		left = max(left-core.Margin(left), 0)
	}
	return left
}
