package boottime

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// Suspendable is a clock for tests and for the robustness suite: Suspend simulates a sleep
// of the machine.
type Suspendable struct {
	Clock
	slept atomic.Int64

	mu    sync.Mutex // guards the field below
	beats map[*func()]struct{}
}

// NewSuspendable starts a Suspendable.
func NewSuspendable() *Suspendable {
	return &Suspendable{Clock: New(), beats: map[*func()]struct{}{}}
}

// Now implements Clock.
func (s *Suspendable) Now() time.Duration { return s.Clock.Now() + time.Duration(s.slept.Load()) }

// Beat implements Clock.
func (s *Suspendable) Beat(f func()) (stop func()) {
	end := s.Clock.Beat(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats[&f] = struct{}{}
	return func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.beats, &f)
	}
}

// Sleep adds d as if the machine had been asleep, but without the beat on waking: timers of
// package time and the next beat are not affected.
func (s *Suspendable) Sleep(d time.Duration) { s.slept.Add(int64(d)) }

// Suspend is Sleep, followed by the beat on waking.
func (s *Suspendable) Suspend(d time.Duration) {
	s.Sleep(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.beats {
		(*f)()
	}
}

var extensionID = extensions.NextExtensionID()

// ExtensionID implements extensions.Extension.
func (s *Suspendable) ExtensionID() extensions.ExtensionID { return extensionID }

// Install makes the Systems that are started in the actor system from now on use a clock
// that can be suspended.
func Install(system *actor.ActorSystem) *Suspendable {
	s := NewSuspendable()
	system.Extensions.Register(s)
	return s
}

// For returns the clock for a System in an actor system: the clock of Install, or otherwise a new clock.
func For(system *actor.ActorSystem) Clock {
	if s, ok := system.Extensions.Get(extensionID).(*Suspendable); ok {
		return s
	}
	return New()
}
