package lockkeeper

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
)

// Changed is sent to an actor that follows a lock; see [Lock.Follow].
type Changed struct {
	// Change is the state of the lock, the zero value with an Err.
	Change
	// Lock is the lock's name.
	Lock string
	// Err is what [Lock.Watch] yields instead of a state.
	Err error
	// Follow is the PID that Follow has returned.
	Follow *actor.PID
}

// Follow sends the actor a *[Changed] with the state of the lock, and another one for each that [Lock.Watch] yields. So an
// actor knows the leader, and hears of the next: it has been sent the latest state, which may have been true only when it
// was seen. At most about ten are sent a second, however long the actor takes to handle them.
//
// Follow spawns a child, which ends with the actor, also when that is restarted: call Follow in Started. Nothing is sent
// after that. To follow no longer, stop the child. After an error that is final (see Watch), the child stops. With a nil
// ctx Follow does nothing, and the PID does not belong to an actor.
func (l *Lock) Follow(ctx actor.Context) *actor.PID {
	if ctx == nil {
		return actor.NewPID("nonhost", "no work")
	}
	within, cancel := context.WithCancelCause(context.Background())
	self, system := ctx.Self(), ctx.ActorSystem() // ctx is for the goroutine of the actor
	w := &worker{lock: l, ctx: within, cancel: cancel, answer: func(*actor.PID, error) any { return nil }}
	w.perform = func(child *actor.PID, _ *outcome) {
		for change, err := range l.Watch(within) {
			if within.Err() == nil {
				l.tell(system, self, &Changed{Change: change, Lock: l.Name(), Err: err, Follow: child})
			}
		}
	}
	return w.spawn(ctx)
}
