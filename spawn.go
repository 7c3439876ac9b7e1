package lockkeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Done is sent to an actor when the work of a Spawn has ended and the lock is released.
type Done struct {
	// Work is the PID that Spawn has returned.
	Work *actor.PID
	// Lock is the lock's name.
	Lock string
	// Err is the error of Do, or describes that the work has panicked or called [runtime.Goexit].
	Err error
}

// ErrStopped: the actor of a Spawn or a Respond was stopped or restarted, or its child was stopped. An *Error that
// wraps it is the cause of the context of the work.
var ErrStopped = errors.New("the actor that does the work is stopped")

// Spawn runs work under the lock for an actor, without blocking the actor. It spawns a child that runs Do in a
// goroutine, sends the actor a *[Done], and stops. The context of the work is the context of Do, with the span of the
// message that the actor is handling. It ends when the lock is lost, and with ErrStopped as a cause when the child is
// stopped or the actor is stopped or restarted. The work must return then, since the child stops only when the work has
// returned and the lock is released. An actor that stops may not receive the Done, and while it handles its Stopped, no
// work is done.
//
// Each Spawn has a new owner. To withdraw a Spawn, stop the child. With a nil ctx Spawn does nothing, and the PID does
// not belong to an actor.
func (l *Lock) Spawn(ctx actor.Context, work func(ctx context.Context) error, options ...WorkOption) *actor.PID {
	return l.spawn(ctx, work, options, actor.Context.Self, func(child *actor.PID, err error) any {
		return &Done{Work: child, Lock: l.Name(), Err: err}
	})
}

// Respond is like Spawn, but sends the result to the sender of the message that the actor is handling. The function
// answer returns the result, given the error of Do (see [Done.Err]). The result is sent even if the actor stops. If
// answer panics, calls [runtime.Goexit] or returns nil, the result is a *messages.Failed.
func (l *Lock) Respond(ctx actor.Context, work func(ctx context.Context) error, answer func(err error) any,
	options ...WorkOption) *actor.PID {
	if answer == nil {
		work = nil // the work is not done
		answer = func(error) any {
			const detail = "the function that makes the answer is nil"
			return &messages.Failed{Lock: &messages.Lock{Name: l.Name()}, Reason: messages.Reason_REASON_INVALID, Detail: detail}
		}
	}
	return l.spawn(ctx, work, options, actor.Context.Sender, func(_ *actor.PID, err error) any { return answer(err) })
}

// spawn implements Spawn and Respond. to chooses the receiver of the result, which answer returns.
func (l *Lock) spawn(ctx actor.Context, work func(context.Context) error, options []WorkOption,
	to func(actor.Context) *actor.PID, answer func(*actor.PID, error) any) *actor.PID {
	if ctx == nil {
		return actor.NewPID("nonhost", "no work")
	}
	within, cancel := context.WithCancelCause(TraceOf(ctx))
	w := &worker{lock: l, ctx: within, cancel: cancel, to: to(ctx), answer: answer}
	if work != nil {
		safe := work
		work = func(ctx context.Context) error { return l.unpanicked(ctx, safe) }
	}
	w.perform = func(_ *actor.PID, o *outcome) { l.do(within, work, options, o) }
	return w.spawn(ctx)
}

// worker is the child of a Spawn, a Respond or a Follow.
type worker struct {
	lock *Lock
	// perform does the work until ctx ends.
	perform func(self *actor.PID, o *outcome)
	ctx     context.Context
	cancel  context.CancelCauseFunc
	// to receives the result; nil if the request had no sender.
	to     *actor.PID
	answer func(child *actor.PID, err error) any

	// ended is closed when perform has returned and result is set; nil if perform was not called.
	ended  chan struct{}
	result any
}

// spawn starts the worker. While the actor handles its Stopped, the worker gets no parent, and stops at once:
// proto.actor would turn the worker's messages to the parent into dead letters.
func (w *worker) spawn(ctx actor.Context) *actor.PID {
	props := actor.PropsFromProducer(func() actor.Actor { return w })
	if isStopped(ctx) {
		return ctx.ActorSystem().Root.Spawn(props)
	}
	return ctx.Spawn(props)
}

// Receive implements actor.Actor.
func (w *worker) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		// A restart, by the host's supervision or middleware, has ended the work, which must not run twice.
		if w.ended != nil || ctx.Parent() == nil {
			ctx.Stop(ctx.Self())
			return
		}
		ctx.Watch(ctx.Parent())
		w.ended = make(chan struct{})
		go w.run(ctx.ActorSystem().Root, ctx.Self())
	case *actor.Terminated: // the parent was stopping already, and does not stop new children
		ctx.Stop(ctx.Self())
	case *actor.Stopping, *actor.Restarting:
		if ctx.Parent() != nil {
			ctx.Unwatch(ctx.Parent())
		}
		w.cancel(w.stopped())
	case *actor.Stopped:
		if w.ended == nil {
			w.ended = make(chan struct{})
			go func() { // not on the goroutine of the actor: answer may end its goroutine
				defer close(w.ended)
				w.setResult(ctx.Self(), w.stopped())
			}()
		}
		<-w.ended
		if w.to != nil {
			w.lock.tell(ctx.ActorSystem(), w.to, w.result)
			w.to = nil // a strategy that restarts all children may start a stopped one again, to be stopped again
		}
	}
}

func (w *worker) stopped() error { return &Error{Op: "work", Lock: w.lock.Name(), Err: ErrStopped} }

// run does the work, sets the result, and stops the worker.
func (w *worker) run(root *actor.RootContext, self *actor.PID) {
	defer func() {
		close(w.ended)
		if w.ctx.Err() == nil { // otherwise the worker is being stopped
			root.Stop(self)
		}
	}()
	var o outcome
	defer func() { w.setResult(self, o.err()) }() // even if the work ends the goroutine
	w.perform(self, &o)
}

// unpanicked does the work, and returns a panic as an error. The stack is logged: the error may be sent to a client.
func (l *Lock) unpanicked(ctx context.Context, work func(ctx context.Context) error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			l.runtime.Log(slog.LevelError, "the work has panicked", "lock", l.Name(), "panic", panicked, "stack", string(debug.Stack()))
			err = fmt.Errorf("the work has panicked: %v", panicked)
		}
	}()
	return work(ctx)
}

// setResult sets the result. The result is a Failed if the function answer panics, ends the goroutine or returns nil.
// nil is no message: the recipient's mailbox would take nil for the end of the mailbox, and look for a message again
// and again.
func (w *worker) setResult(self *actor.PID, err error) {
	detail := "the function that makes the answer has ended its goroutine (runtime.Goexit)"
	defer func() {
		if w.result != nil {
			return
		}
		if panicked := recover(); panicked != nil {
			detail = fmt.Sprintf("the function that makes the answer has panicked: %v", panicked)
		}
		w.result = &messages.Failed{Lock: &messages.Lock{Name: w.lock.Name()}, Reason: messages.Reason_REASON_CRASHED, Detail: detail}
	}()
	w.result = w.answer(self, err)
	detail = "the function that makes the answer has returned nil, which is no message"
}

// tell sends a message from an actor or a goroutine of Lockkeeper, which the host must not hold up: proto.actor's Send
// to an actor that has stopped runs the host's subscribers to the event stream.
func (l *Lock) tell(system *actor.ActorSystem, to *actor.PID, message any) {
	if l.checkUsable() != nil { // no lock is held
		system.Root.Send(to, message)
		return
	}
	process, there := system.ProcessRegistry.Get(to)
	if !there {
		l.runtime.CallHost("a subscriber of the event stream", func() {
			system.EventStream.Publish(&actor.DeadLetterEvent{PID: to, Message: message})
		})
		return
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			l.runtime.Log(slog.LevelError, "a recipient panicked", "panic", panicked)
		}
	}()
	process.SendUserMessage(to, message)
}
