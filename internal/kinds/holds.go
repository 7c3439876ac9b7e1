package kinds

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// holding is the part that the adapters of locks and of expirable semaphores share, since their grants are holds.
type holding struct{ simple }

// holdMachine lists the events that the machines of these adapters take in addition to the events of machine.Machine.
type holdMachine interface {
	Release(now machine.Instant, r machine.Release)
	Ensure(now machine.Instant, id uint64, d time.Duration, ref any)
	Extend(now machine.Instant, id uint64, owner machine.Owner, lease time.Duration, ref any)
}

// Event returns the event of a request about a hold; nil for any other request.
func (holding) Event(call *request.Call, hold uint64, owner machine.Owner) Event {
	switch call.Op {
	case request.OpRelease:
		return func(m machine.Machine, now machine.Instant) {
			call.Since = now
			m.(holdMachine).Release(now, machine.Release{
				ID: hold, Owner: owner, Mode: machine.Mode(call.Mode), Shown: call.ShowsPermit(), DropsMinimum: call.DropsMinimum, Ref: call,
			})
		}
	case request.OpEnsure:
		return func(m machine.Machine, now machine.Instant) {
			m.(holdMachine).Ensure(now, call.HoldID, call.Within, call)
		}
	case request.OpExtend:
		return func(m machine.Machine, now machine.Instant) {
			m.(holdMachine).Extend(now, hold, owner, call.Lease, call)
		}
	}
	return nil
}

func (holding) Perform(e *machine.Effect, _ machine.Instant) {
	call := e.Ref.(*request.Call)
	switch {
	case e.Kind == machine.Bounded && call.Holder != nil:
		call.Holder.Bounded(e.Answer.Bound)
	case e.Kind == machine.Renewed && call.Permit != nil:
		call.Permit.Until.Store(int64(e.Answer.Until))
	}
}
