package lockkeeper

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Done tells an actor that the work of a Spawn has ended, and that the lock is released.
type Done struct {
	// Work is what Spawn has returned.
	Work *actor.PID
	// Lock is the lock's name.
	Lock string
	// Err is the error of Do. If the work has panicked or called [runtime.Goexit], it says so.
	Err error
}

// ErrStopped: the actor of a Spawn or a Respond was stopped or restarted, or its child was stopped. The cause of
// the context of the work is an *Error that wraps it.
var ErrStopped = errors.New("the actor that does the work is stopped")

// Spawn has work done under the lock for an actor, which must not block: it spawns a child that runs Do in a
// goroutine, sends the actor a *[Done], and stops. The context of the work is that of Do. It has the span that
// the message carries which the actor is handling, and ends when the lock is lost, or, with ErrStopped for a
// cause, when the child is stopped, or the actor is stopped or restarted. The work must return then: the child
// has stopped only when it has, and the lock is released. An actor that stops may not receive the Done.
//
// Each Spawn is a holder of its own. To withdraw one, stop the child. With a nil ctx nothing is done, and the PID is
// that of no actor.
func (l *Lock) Spawn(ctx actor.Context, work func(ctx context.Context) error, options ...Option) *actor.PID {
	return l.spawn(ctx, work, options, actor.Context.Self, func(child *actor.PID, err error) any {
		return &Done{Work: child, Lock: l.Name(), Err: err}
	})
}

// Respond is Spawn, but responds to the sender of the message that the actor is handling, with what answer
// makes of the error of Do (see [Done.Err]). The sender gets its answer also if the actor stops. If answer
// panics or calls [runtime.Goexit], the sender gets a *messages.Failed.
func (l *Lock) Respond(ctx actor.Context, work func(ctx context.Context) error, answer func(err error) any, options ...Option) *actor.PID {
	return l.spawn(ctx, work, options, actor.Context.Sender, func(_ *actor.PID, err error) any {
		if answer == nil {
			return &messages.Failed{Lock: &messages.Lock{Name: l.Name()}, Reason: messages.Reason_REASON_INVALID, Detail: "the function that makes the answer is nil"}
		}
		return answer(err)
	})
}

func (l *Lock) spawn(ctx actor.Context, work func(context.Context) error, options []Option, to func(actor.Context) *actor.PID, answer func(*actor.PID, error) any) *actor.PID {
	if ctx == nil {
		return actor.NewPID("nonhost", "no work")
	}
	within, cancel := context.WithCancelCause(TraceOf(ctx))
	w := &worker{lock: l, work: work, options: options, ctx: within, cancel: cancel, to: to(ctx), answer: answer}
	return ctx.Spawn(actor.PropsFromProducer(func() actor.Actor { return w }))
}

// worker is the child of a Spawn.
type worker struct {
	lock    *Lock
	work    func(ctx context.Context) error
	options []Option
	ctx     context.Context
	cancel  context.CancelCauseFunc
	// to receives the result; nil if the request had no sender.
	to     *actor.PID
	answer func(child *actor.PID, err error) any

	// ended is closed when Do has returned and result is set; nil if Do was not called.
	ended  chan struct{}
	result any
}

// Receive implements actor.Actor.
func (w *worker) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		if w.ended == nil { // else middleware of the host's has crashed: the work is not done twice
			ctx.Watch(ctx.Parent())
			w.ended = make(chan struct{})
			go w.run(ctx.ActorSystem().Root, ctx.Self())
		}
	case *actor.Terminated: // the actor was stopping already, and does not stop its new children
		ctx.Stop(ctx.Self())
	case *actor.Stopping, *actor.Restarting:
		ctx.Unwatch(ctx.Parent())
		w.cancel(w.stopped())
	case *actor.Stopped:
		if w.ended == nil {
			w.ended = make(chan struct{})
			go func() { // answer may end its goroutine, which must not be the actor's
				defer close(w.ended)
				w.conclude(ctx.Self(), w.stopped())
			}()
		}
		<-w.ended
		if w.to != nil {
			ctx.Send(w.to, w.result)
		}
	}
}

func (w *worker) stopped() error { return &Error{Op: "work", Lock: w.lock.Name(), Err: ErrStopped} }

// run does the work, sets the result, and stops the worker.
func (w *worker) run(root *actor.RootContext, self *actor.PID) {
	defer func() {
		close(w.ended)
		if w.ctx.Err() == nil { // else it is being stopped
			root.Stop(self)
		}
	}()
	var o outcome
	defer func() { w.conclude(self, o.err()) }() // also if the work ends the goroutine
	work := w.surviving
	if w.work == nil {
		work = nil
	}
	w.lock.do(w.ctx, work, w.options, &o)
}

// surviving is the work, which returns what it panics with.
func (w *worker) surviving(ctx context.Context) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the work has panicked: %v\n%s", panicked, debug.Stack())
		}
	}()
	return w.work(ctx)
}

// conclude sets the result.
func (w *worker) conclude(self *actor.PID, err error) {
	answered := false
	defer func() {
		if answered {
			return
		}
		detail := "the function that makes the answer has ended its goroutine (runtime.Goexit)"
		if panicked := recover(); panicked != nil {
			detail = fmt.Sprintf("the function that makes the answer has panicked: %v", panicked)
		}
		w.result = &messages.Failed{Lock: &messages.Lock{Name: w.lock.Name()}, Reason: messages.Reason_REASON_CRASHED, Detail: detail}
	}()
	w.result = w.answer(self, err)
	answered = true
}
