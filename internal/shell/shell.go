// Package shell lets lock actors use one PID, registration and mailbox after another: to spawn and stop these for each
// lock takes longer than a grant.
package shell

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
)

// Tenant is what the actor of a shell does until it leaves.
type Tenant interface {
	actor.Actor
	delivery.CrashHandler
	// IsFor reports whether a message is for this tenant, and not for one that has left the shell.
	IsFor(message any) bool
}

// Shell is what proto.actor knows of an actor. It has one tenant after another, and a message for one of them never
// reaches another.
type Shell struct {
	// PID and Process are set before the first tenant. Goroutines send to the Process without looking it up.
	PID     *actor.PID
	Process actor.Process
	pool    *Pool
	// entered has the tenant; nil if there is none. Only the mailbox of the shell changes it.
	entered atomic.Pointer[Entering]
	stopped atomic.Bool
	// handling says that the tenant has begun to handle the message.
	handling bool
}

// Entering is a message to a shell: it has this tenant from now on; none if that is nil.
type Entering struct{ Tenant }

// Tenant returns the tenant; nil if there is none, or no shell.
func (s *Shell) Tenant() Tenant {
	if s == nil {
		return nil
	}
	if e := s.entered.Load(); e != nil {
		return e.Tenant
	}
	return nil
}

// Enter makes t the tenant of a shell that was taken from the pool, before it handles what is sent to it afterwards. It
// reports false if the pool is closed by then: t may have missed what was sent to all shells afterwards.
func (s *Shell) Enter(t Tenant) (open bool) {
	s.Process.SendUserMessage(s.PID, &Entering{t})
	return !s.pool.closed.Load()
}

// PutBack puts a shell that was taken from the pool there again, without the tenant that has entered.
func (s *Shell) PutBack() {
	s.Enter(nil)
	s.pool.Put(s)
}

// Leave gives the shell back. Only its tenant may call it, while it handles a message.
func (s *Shell) Leave() {
	s.entered.Store(nil)
	s.pool.Put(s)
}

// Receive implements actor.Actor.
func (s *Shell) Receive(ctx actor.Context) {
	m := ctx.Message()
	if _, stops := m.(*actor.Stopping); stops {
		s.stopped.Store(true)
	}
	if e, ok := m.(*Entering); ok {
		s.entered.Store(e)
	} else if t := s.Tenant(); t != nil && t.IsFor(m) {
		s.handling = true
		t.Receive(ctx)
	} else {
		s.pool.Stray(ctx)
	}
}

// Begins implements delivery.CrashHandler.
func (s *Shell) Begins() {
	s.handling = false
	if t := s.Tenant(); t != nil {
		t.Begins()
	}
}

// Crashed implements delivery.CrashHandler. The crash may have come before Receive. After it has begun, the message is
// not read: if it was answered, it may be another one by now.
func (s *Shell) Crashed(message any, sender *actor.PID, reason any) {
	if e, ok := message.(*Entering); ok {
		s.entered.Store(e)
	}
	if t := s.Tenant(); t != nil && (s.handling || t.IsFor(message)) {
		t.Crashed(message, sender, reason)
	}
}
