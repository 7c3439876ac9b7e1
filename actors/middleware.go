package actors

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// middlewareActor is where the host's middleware handles the requests for one lock that come by
// message, on their way to the lock actor. It is an actor of its own, with a mailbox of
// proto.actor's and so a goroutine of its own: middleware that blocks or panics can harm
// nothing but such requests for that lock. The lock actor itself, with its timers, the
// replies of Redis and the requests of goroutines, runs no code of the host's.
type middlewareActor struct {
	rt  *Runtime
	key lockKey
	pid *actor.PID
	// sent counts the requests for it, by the guardian; handled those that the middleware
	// has returned from.
	sent, handled atomic.Int64
	// leaving: the lock has no lock actor any more, and the guardian stops this actor as
	// soon as nothing is on its way to it. last: it is sent nothing any more.
	leaving, last atomic.Bool
	// passed: the middleware has let the present request pass.
	passed bool
}

// admitted is a request that the middleware has let pass, on its way to the guardian.
type admitted struct {
	key     lockKey
	message any
	sender  *actor.PID
	header  actor.ReadonlyMessageHeader
}

// drained says to the guardian that a middlewareActor may have handled all that was sent to it.
type drained struct{ key lockKey }

// IgnoreDeadLetterLogging implements a marker of proto.actor.
func (*admitted) IgnoreDeadLetterLogging() {}
func (*drained) IgnoreDeadLetterLogging()  {}

// middlewareActors are those of a guardian.
type middlewareActors map[lockKey]*middlewareActor

// request hands the message that the guardian is handling to the middleware actor of its lock.
func (all middlewareActors) request(rt *Runtime, call *request.Call, ctx actor.Context) {
	key := keyFor(call)
	f := all[key]
	if f == nil || !f.alive() {
		f = rt.newMiddlewareActor(key)
		all[key] = f
	}
	f.leaving.Store(false)
	f.sent.Add(1)
	if !rt.post.Forward(ctx, f.pid) { // something has stopped it at this very moment
		delete(all, key)
		rt.tooLate(call)
	}
}

func (r *Runtime) newMiddlewareActor(key lockKey) *middlewareActor {
	f := &middlewareActor{rt: r, key: key}
	props := actor.PropsFromProducer(func() actor.Actor { return f }, r.post.WithMailbox(actor.Unbounded(), nil),
		actor.WithReceiverMiddleware(append([]actor.ReceiverMiddleware{f.around}, r.cfg.Middleware...)...))
	// It is no child of the guardian's, which could not stop while this actor is held up.
	f.pid = r.root.Spawn(props)
	return f
}

// release stops the middleware actor of a lock that has no lock actor, now or when nothing is on its
// way to it.
func (all middlewareActors) release(key lockKey) {
	f := all[key]
	if f == nil {
		return
	}
	f.leaving.Store(true) // before the look, so that either the actor sees it or we see its last request
	if f.idle() || !f.alive() {
		delete(all, key)
		f.stop()
	}
}

// releaseAll is for the end of the guardian.
func (all middlewareActors) releaseAll() {
	for key, f := range all {
		f.last.Store(true)
		all.release(key)
	}
}

func (f *middlewareActor) idle() bool { return f.handled.Load() == f.sent.Load() }

// alive reports whether the actor was not stopped from outside, which then handles no more.
func (f *middlewareActor) alive() bool { return f.rt.rules.Process(f.pid) != nil }

func (f *middlewareActor) stop() { f.rt.post.DeliverSystem(f.pid, &actor.Stop{}) }

// around is the outermost middleware. It keeps the host's from the life cycle of the actor,
// and runs it on a goroutine of its own, which it may end. If it does, or panics, the request
// is refused, unless it has passed already.
func (f *middlewareActor) around(host actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		if !request.IsMessage(envelope.Message) {
			ctx.Receive(envelope)
			return
		}
		f.passed = false
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			returned := false
			defer f.end(envelope.Message, envelope.Sender, &returned)
			host(ctx, envelope)
			returned = true
		}()
		<-ended
	}
}

// end, deferred, ends the handling of a request by the middleware, which has returned or not.
func (f *middlewareActor) end(m any, sender *actor.PID, returned *bool) {
	if !*returned {
		panicked := recover()
		if panicked == nil {
			panicked = "runtime.Goexit"
		}
		f.rt.host.Error("middleware panicked", "lock", f.key.name, "panic", panicked)
		if !f.passed {
			f.rt.refuseAny(m, sender, machine.Crashed, fmt.Sprintf("the middleware panicked while handling the request: %v", panicked))
		}
	}
	f.handled.Add(1)
	switch {
	case f.last.Load():
		if f.idle() {
			f.stop()
		}
	case f.leaving.Load() || !f.passed:
		f.rt.Deliver(f.rt.guardian, &drained{f.key})
	}
}

// Receive implements actor.Actor: what arrives here has passed the middleware.
func (f *middlewareActor) Receive(ctx actor.Context) {
	m := ctx.Message()
	if _, stopped := m.(*actor.Stopped); stopped {
		f.rt.Deliver(f.rt.guardian, &drained{f.key}) // which may not know, if something else has stopped it
	}
	if !request.IsMessage(m) {
		return
	}
	f.passed = true
	if !f.rt.Deliver(f.rt.guardian, &admitted{key: f.key, message: m, sender: ctx.Sender(), header: ctx.MessageHeader()}) {
		f.rt.refuseAny(m, ctx.Sender(), machine.Closed, closedText)
	}
}
