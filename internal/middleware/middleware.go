// Package middleware runs the host's middleware: each request by message passes it before its lock actor gets it.
package middleware

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// Config is what the middleware of a system needs.
type Config struct {
	Middleware []actor.ReceiverMiddleware
	Post       *delivery.Post
	// Root spawns the actors, which are no children of the guardian: it could not stop while one of them is held up.
	Root *actor.RootContext
	// ToGuardian sends it Admitted and Emptied, and reports whether it is there.
	ToGuardian func(message any) (taken bool)
	// Frees reports whether a request gives back what its sender has: it passes although the middleware panics over it,
	// since the lock would be kept for as long as the owner lives.
	Frees func(message any, sender *actor.PID) bool
	// Refuse answers another request that the middleware has panicked over, or one whose guardian has stopped. panicked is
	// nil then.
	Refuse func(message any, sender *actor.PID, panicked any)
}

// Actors are the middleware actors of a system, by the key of their lock. The guardian alone uses them.
type Actors[K comparable] struct {
	Config
	byKey map[K]*middlewareActor
}

// New returns Actors of which none runs.
func New[K comparable](cfg Config) *Actors[K] {
	return &Actors[K]{Config: cfg, byKey: map[K]*middlewareActor{}}
}

// middlewareActor is where the middleware handles the requests for one lock that come by message, on their way to the
// lock actor. It is an actor of its own, with a mailbox of proto.actor's and so a goroutine of its own: middleware that
// blocks or panics can harm nothing but such requests for that lock. The lock actor itself, with its timers, the
// replies of Redis and the requests of goroutines, runs no code of the host's.
type middlewareActor struct {
	cfg *Config
	key any
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

// Admitted is a request that the middleware has let pass, on its way to the guardian.
type Admitted struct {
	Key     any
	Message any
	Sender  *actor.PID
	Header  actor.ReadonlyMessageHeader
}

// Emptied says to the guardian that a middleware actor may have handled all that was sent to it.
type Emptied struct{ Key any }

// IgnoreDeadLetterLogging implements a marker of proto.actor.
func (*Admitted) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging implements a marker of proto.actor.
func (*Emptied) IgnoreDeadLetterLogging() {}

// Pass hands the message that the guardian is handling to the middleware actor of its lock, and reports whether there is
// one that takes it.
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
	delete(all.byKey, key) // something has stopped it at this very moment
	return false
}

func (all *Actors[K]) spawn(key K) *middlewareActor {
	a := &middlewareActor{cfg: &all.Config, key: key}
	props := actor.PropsFromProducer(func() actor.Actor { return a }, all.Post.WithMailbox(actor.Unbounded(), nil),
		actor.WithReceiverMiddleware(append([]actor.ReceiverMiddleware{a.around}, all.Middleware...)...))
	a.pid = all.Root.Spawn(props)
	return a
}

// Release stops the middleware actor of a lock that has no lock actor, now or when nothing is on its way to it.
func (all *Actors[K]) Release(key K) {
	a := all.byKey[key]
	if a == nil {
		return
	}
	a.leaving.Store(true) // before the look, so that either the actor sees it or we see its last request
	if a.idle() || !a.alive() {
		delete(all.byKey, key)
		a.stop()
	}
}

// ReleaseAll is for the end of the guardian.
func (all *Actors[K]) ReleaseAll() {
	for key, a := range all.byKey {
		a.last.Store(true)
		all.Release(key)
	}
}

func (a *middlewareActor) idle() bool { return a.handled.Load() == a.sent.Load() }

// alive reports whether the actor was not stopped from outside, which then handles no more.
func (a *middlewareActor) alive() bool {
	_, is := a.cfg.Post.System.ProcessRegistry.GetLocal(a.pid.GetId())
	return is
}

func (a *middlewareActor) stop() { a.cfg.Post.DeliverSystem(a.pid, &actor.Stop{}) }

// around is the outermost middleware. It keeps the host's from the life cycle of the actor,
// and runs it on a goroutine of its own, which it may end. If it does, or panics, the request
// is refused, unless it has passed already, or frees something.
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

// end, deferred, ends the handling of a request by the middleware, which has returned or not.
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

// Receive implements actor.Actor: what arrives here has passed the middleware.
func (a *middlewareActor) Receive(ctx actor.Context) {
	m := ctx.Message()
	if _, stopped := m.(*actor.Stopped); stopped {
		a.cfg.ToGuardian(&Emptied{a.key}) // which may not know, if something else has stopped it
	}
	if !request.IsMessage(m) {
		return
	}
	a.admit(m, ctx.Sender(), ctx.MessageHeader())
}

// admit hands a request on to the guardian.
func (a *middlewareActor) admit(m any, sender *actor.PID, header actor.ReadonlyMessageHeader) {
	a.passed = true
	if !a.cfg.ToGuardian(&Admitted{Key: a.key, Message: m, Sender: sender, Header: header}) {
		a.cfg.Refuse(m, sender, nil)
	}
}
