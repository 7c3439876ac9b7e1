// Package shell lets lock actors use the same PID, registration and mailbox one after another: spawning and stopping an
// actor for each lock takes longer than a grant.
package shell

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
)

// Tenant handles the messages of a shell until it leaves.
type Tenant interface {
	actor.Actor
	delivery.CrashHandler
	// IsFor reports whether a message is for this tenant, and not for a tenant that has left the shell.
	IsFor(message any) bool
}

// Shell is the actor that proto.actor knows. It has one tenant after another, and a message for one tenant never
// reaches another.
type Shell struct {
	// PID is set before the first tenant.
	PID *actor.PID
	// Process is set before the first tenant. Goroutines send to the Process without looking it up.
	Process actor.Process
	pool    *Pool
	// entered has the tenant; nil if there is none. Only the mailbox of the shell changes it.
	entered atomic.Pointer[Entering]
	stopped atomic.Bool
	// handling says that the tenant has begun to handle the message.
	handling bool
}

// Entering is a message to a shell: the shell has this tenant from now on; no tenant if Tenant is nil.
type Entering struct{ Tenant }

// Tenant returns the tenant; nil if there is none, or if the shell is nil.
func (s *Shell) Tenant() Tenant {
	if s == nil {
		return nil
	}
	if e := s.entered.Load(); e != nil {
		return e.Tenant
	}
	return nil
}

// Enter makes t the tenant of a shell that was taken from the pool, before the shell handles messages that are sent to
// it afterwards. It reports false if the pool is closed by then: t may have missed a message to all shells.
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

// Crashed implements delivery.CrashHandler. The crash may have come before Receive. After Receive has begun, the
// message is not read: if it was answered, its memory may have another message by now.
func (s *Shell) Crashed(message any, sender *actor.PID, reason any) {
	if e, ok := message.(*Entering); ok {
		s.entered.Store(e)
	}
	if t := s.Tenant(); t != nil && (s.handling || t.IsFor(message)) {
		t.Crashed(message, sender, reason)
	}
}
