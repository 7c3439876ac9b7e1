package lockkeeper

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
)

// Done tells an actor that the work of a Spawn has ended, and that the lock is released.
type Done struct {
	// Work is what Spawn has returned.
	Work *actor.PID
	// Lock is the lock's name.
	Lock string
	// Err is the error of Do. It says so if the work has panicked.
	Err error
}

var errWorkStopped = errors.New("the actor that does the work is stopped")

// Spawn has work done under the lock for an actor, which must not block: it spawns a child that runs Do in a
// goroutine, sends the actor a *[Done], and stops. The context of the work is that of Do. It has the span that
// the message carries which the actor is handling, and ends when the lock is lost, or when the child or the
// actor is stopped or restarted. The work must return then: the child has stopped only when it has, and the
// lock is released. An actor that stops may not receive the Done.
//
// Each Spawn is a holder of its own. To withdraw one, stop the child.
func (l *Lock) Spawn(ctx actor.Context, work func(ctx context.Context) error, options ...Option) *actor.PID {
	within, cancel := context.WithCancelCause(TraceOf(ctx))
	w := &worker{lock: l, work: work, options: options, ctx: within, cancel: cancel, err: errWorkStopped}
	return ctx.Spawn(actor.PropsFromProducer(func() actor.Actor { return w }))
}

// worker is the child of a Spawn.
type worker struct {
	lock    *Lock
	work    func(ctx context.Context) error
	options []Option
	ctx     context.Context
	cancel  context.CancelCauseFunc

	ended chan struct{} // closed when Do has returned err; nil if it has not begun
	err   error
}

// Receive implements actor.Actor.
func (w *worker) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		if w.ended == nil { // else middleware of the host's has crashed: the work is not done twice
			w.ended = make(chan struct{})
			go w.do(ctx.ActorSystem().Root, ctx.Self())
		}
	case *actor.Stopping, *actor.Restarting:
		w.cancel(errWorkStopped)
	case *actor.Stopped:
		if w.ended != nil {
			<-w.ended
		}
		ctx.Send(ctx.Parent(), &Done{Work: ctx.Self(), Lock: w.lock.Name(), Err: w.err})
	}
}

// do runs Do, and stops the worker.
func (w *worker) do(root *actor.RootContext, self *actor.PID) {
	defer func() {
		if panicked := recover(); panicked != nil {
			w.err = fmt.Errorf("the work has panicked: %v\n%s", panicked, debug.Stack())
		}
		close(w.ended)
		if w.ctx.Err() == nil { // else it is being stopped
			root.Stop(self)
		}
	}()
	w.err = w.lock.Do(w.ctx, w.work, w.options...)
}
