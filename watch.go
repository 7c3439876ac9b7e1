package lockkeeper

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/watch"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Change is the state of a lock that [Lock.Watch] yields.
type Change struct {
	// Status is the Status that Inspect returns, as of the last read.
	Status
	// Since is a time since which the lock has certainly had its present owners, or has been free. It is the time of
	// the grant, if this process or the record of the owner's process knows it, and otherwise the time at which this
	// System first saw the state.
	Since time.Time
}

// Watch yields the state of the lock, and then the new state each time that its owners or the note of [WithNote] have
// changed, in any process:
//
//	for change, err := range sys.Lock("leader").Watch(ctx) {
//
// A slow loop misses states in between, but always gets the latest state. A state that lasts for less than Config.Poll
// may be missed. A note may appear after its hold has begun and disappear before the hold ends; each is a Change.
//
// Watch yields ErrUnavailable once when Redis does not answer, and the state again when Redis answers. A loop may go on
// after such an error, and after ErrCrashed. Any other error is the last: the cause of ctx, ErrClosed, ErrRejected or
// ErrInvalid.
//
// For an actor, use [Lock.Follow].
//
// The cost: a System with any number of watchers of a lock has one goroutine for the lock. This goroutine reads the
// lock with one or two scripts every Config.Poll, and at once when a message says that the lock was released, at most
// ten times a second. A transfer to a waiter in another process, an expired lease and the grant of a free lock cause no
// message, and are seen within 1.1 times Poll. The System is subscribed to these messages, so Status.Subscribers counts
// it.
func (l *Lock) Watch(ctx context.Context) iter.Seq2[Change, error] {
	const op = "watch"
	return func(yield func(Change, error) bool) {
		if err := l.checkCall(ctx); err != nil {
			yield(Change{}, invalidError(op, l.Name(), err))
			return
		}
		watcher := l.runtime.Watches().Join(l.watched(), watch.How{
			Read: l.read, Poll: l.runtime.Rules().Config.Poll,
			Listen: func(notify func()) (stop func()) { return l.runtime.Listen(l.kind, l.name, l.members, notify) },
		})
		defer watcher.Leave()
		for goesOn := true; goesOn; {
			var change Change
			state, err := watcher.Next(ctx)
			switch {
			case err == nil:
				change = Change{statusOf(state.Status), state.Since}
				change.Owners = slices.Clone(change.Owners) // other watchers get them, too
			case ctx.Err() != nil:
				err = &Error{Op: op, Lock: l.Name(), Err: context.Cause(ctx)}
			case errors.Is(err, watch.ErrClosed):
				err = failedError(op, l.Name(), messages.Reason_REASON_CLOSED, "", true)
			}
			goesOn = yield(change, err) && (err == nil || mayPass(err) && ctx.Err() == nil)
		}
	}
}

// watched identifies the lock among those that are watched.
func (l *Lock) watched() any {
	type key struct {
		kind messages.Kind
		name string
	}
	if l.members != nil {
		return key{messages.Kind_KIND_MULTI, l.members.ID()}
	}
	return key{l.kind, l.name}
}

// read asks Redis for the state.
func (l *Lock) read(ctx context.Context) (status *messages.Status, final bool, err error) {
	out, err := l.ask(ctx, "watch", request.OpInspect)
	return out.Status, err != nil && !mayPass(err), err
}

// Changed is sent to an actor that follows a lock; see [Lock.Follow].
type Changed struct {
	// Change is the state of the lock, the zero value with an Err.
	Change
	// Lock is the lock's name.
	Lock string
	// Err is the error that [Lock.Watch] yields instead of a state.
	Err error
	// Follow is the PID that Follow has returned.
	Follow *actor.PID
}

// Follow sends the actor a *[Changed] with the state of the lock, and another for each state that [Lock.Watch] yields.
// So an actor knows the leader, and hears of the next leader. The latest Changed has the latest state that the System
// has seen, which may be out of date. Follow sends at most about ten a second, however long the actor takes to handle
// them.
//
// Follow spawns a child, which stops when the actor stops or is restarted: call Follow in Started. To follow no longer,
// stop the child. Follow sends nothing after the child has stopped. After an error that is final (see Watch), the child
// stops. With a nil ctx Follow does nothing, and the PID does not belong to an actor.
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
