// Package middleware runs the host's middleware: each request by message passes the middleware before its lock actor
// gets the request.
package middleware

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// Config has the functions and settings of a system that its middleware needs.
type Config struct {
	Middleware []actor.ReceiverMiddleware
	Post       *delivery.Post
	// Root spawns the middleware actors. They are not children of the guardian, which could not stop while a middleware
	// actor is held up.
	Root *actor.RootContext
	// ToGuardian sends Admitted and Emptied to the guardian, and reports whether the guardian is there.
	ToGuardian func(message any) (taken bool)
	// Frees reports whether a request gives something back. Such a request passes although the middleware panics over
	// it: otherwise the lock would be kept for as long as the owner lives.
	Frees func(message any, sender *actor.PID) bool
	// Refuse answers any other request over which the middleware has panicked. It also answers a request whose guardian
	// has stopped; panicked is nil then.
	Refuse func(message any, sender *actor.PID, panicked any)
}

// Actors are the middleware actors of a system, by the key of their lock. The guardian alone uses them.
type Actors[K comparable] struct {
	Config
	byKey map[K]*middlewareActor
}

// New returns Actors without a middleware actor.
func New[K comparable](cfg Config) *Actors[K] {
	return &Actors[K]{Config: cfg, byKey: map[K]*middlewareActor{}}
}

// middlewareActor handles the requests for one lock that come by message, on their way to the lock actor: the
// middleware runs in it. It is a separate actor, with a mailbox of proto.actor and so its own goroutine: middleware
// that blocks or panics can harm only such requests for that lock. The lock actor, with its timers, the replies of
// Redis and the requests of goroutines, runs no code of the host.
type middlewareActor struct {
	cfg *Config
	key any
	pid *actor.PID
	// sent counts the requests that the guardian has sent to the actor.
	sent atomic.Int64
	// handled counts the requests from which the middleware has returned.
	handled atomic.Int64
	// leaving: the lock no longer has a lock actor, and the guardian stops this actor as soon as no request is on its way
	// to it.
	leaving atomic.Bool
	// last: the guardian sends no further requests.
	last atomic.Bool
	// passed: the middleware has let the present request pass.
	passed bool
}

// Admitted is a request that the middleware has let pass, on its way to the guardian.
type Admitted struct {
	Key     any
	Message any
	Sender  *actor.PID
	Header  actor.ReadonlyMessageHeader
}

// Emptied says to the guardian that a middleware actor may have handled all its requests.
type Emptied struct{ Key any }

// IgnoreDeadLetterLogging implements a marker of proto.actor.
func (*Admitted) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging implements a marker of proto.actor.
func (*Emptied) IgnoreDeadLetterLogging() {}

// Pass passes the message that the guardian is handling to the middleware actor of its lock, and reports whether an
// actor takes it.
func (all *Actors[K]) Pass(ctx actor.Context, key K) (taken bool) {
	a := all.byKey[key]
	if a == nil || !a.alive() {
		a = all.spawn(key)
		all.byKey[key] = a
	}
	a.leaving.Store(false)
	a.sent.Add(1)
	if all.Post.Forward(ctx, a.pid) {
		return true
	}
	delete(all.byKey, key) // the middleware actor was stopped at this very moment
	return false
}

func (all *Actors[K]) spawn(key K) *middlewareActor {
	a := &middlewareActor{cfg: &all.Config, key: key}
	props := actor.PropsFromProducer(func() actor.Actor { return a }, all.Post.WithMailbox(actor.Unbounded(), nil),
		actor.WithReceiverMiddleware(append([]actor.ReceiverMiddleware{a.around}, all.Middleware...)...))
	a.pid = all.Root.Spawn(props)
	return a
}

// Release stops the middleware actor of a lock that has no lock actor, now or when no request is on its way to the
// middleware actor.
func (all *Actors[K]) Release(key K) {
	a := all.byKey[key]
	if a == nil {
		return
	}
	a.leaving.Store(true) // before the look: either the actor sees leaving, or Release sees its last request
	if a.idle() || !a.alive() {
		delete(all.byKey, key)
		a.stop()
	}
}

// ReleaseAll stops all middleware actors, at the end of the guardian.
func (all *Actors[K]) ReleaseAll() {
	for key, a := range all.byKey {
		a.last.Store(true)
		all.Release(key)
	}
}

func (a *middlewareActor) idle() bool { return a.handled.Load() == a.sent.Load() }

// alive reports whether the actor was not stopped from outside: after that it handles no further requests.
func (a *middlewareActor) alive() bool {
	_, is := a.cfg.Post.System.ProcessRegistry.GetLocal(a.pid.GetId())
	return is
}

func (a *middlewareActor) stop() { a.cfg.Post.DeliverSystem(a.pid, &actor.Stop{}) }

// around is the outermost middleware. It keeps the host's middleware from the life cycle of the actor, and runs that
// middleware on a separate goroutine. If the middleware ends the goroutine or panics, the request is refused, unless it
// has passed already, or frees something.
func (a *middlewareActor) around(host actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		if !request.IsMessage(envelope.Message) {
			ctx.Receive(envelope)
			return
		}
		a.passed = false
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			returned := false
			defer a.end(envelope, &returned)
			host(ctx, envelope)
			returned = true
		}()
		<-ended
	}
}

// end, deferred, ends the handling of a request by the middleware, whether the middleware has returned or not.
func (a *middlewareActor) end(envelope *actor.MessageEnvelope, returned *bool) {
	if !*returned {
		panicked := recover()
		if panicked == nil {
			panicked = "runtime.Goexit"
		}
		a.cfg.Post.Host.Error("middleware panicked", "lock", fmt.Sprint(a.key), "panic", panicked)
		switch m, sender := envelope.Message, envelope.Sender; {
		case a.passed:
		case a.cfg.Frees(m, sender):
			a.admit(m, sender, envelope.Header)
		default:
			a.cfg.Refuse(m, sender, panicked)
		}
	}
	a.handled.Add(1)
	switch {
	case a.last.Load():
		if a.idle() {
			a.stop()
		}
	case a.leaving.Load() || !a.passed:
		a.cfg.ToGuardian(&Emptied{a.key})
	}
}

// Receive implements actor.Actor: the messages that arrive here have passed the middleware.
func (a *middlewareActor) Receive(ctx actor.Context) {
	m := ctx.Message()
	if _, stopped := m.(*actor.Stopped); stopped {
		a.cfg.ToGuardian(&Emptied{a.key}) // the guardian may not know, if something else has stopped this actor
	}
	if !request.IsMessage(m) {
		return
	}
	a.admit(m, ctx.Sender(), ctx.MessageHeader())
}

// admit sends a request back to the guardian.
func (a *middlewareActor) admit(m any, sender *actor.PID, header actor.ReadonlyMessageHeader) {
	a.passed = true
	if !a.cfg.ToGuardian(&Admitted{Key: a.key, Message: m, Sender: sender, Header: header}) {
		a.cfg.Refuse(m, sender, nil)
	}
}
