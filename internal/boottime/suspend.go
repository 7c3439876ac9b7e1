package boottime

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// Suspendable is a clock for tests and for the robustness suite: Suspend acts as if the
// machine had been asleep.
type Suspendable struct {
	Clock
	slept atomic.Int64

	mu    sync.Mutex // guards what follows
	beats map[*func()]struct{}
}

// NewSuspendable starts such a clock.
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

// Sleep lets d pass as if the machine had been asleep: timers of package time do not
// notice, and the next beat comes when it would have come.
func (s *Suspendable) Sleep(d time.Duration) { s.slept.Add(int64(d)) }

// Suspend is Sleep, followed by the beat that comes when a machine wakes up.
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

// Install has the Systems that are started in an actor system from now on use a clock
// that can be suspended.
func Install(system *actor.ActorSystem) *Suspendable {
	s := NewSuspendable()
	system.Extensions.Register(s)
	return s
}

// For is the clock for a System in an actor system: the one that was installed there, or
// else one of its own.
func For(system *actor.ActorSystem) Clock {
	if s, ok := system.Extensions.Get(extensionID).(*Suspendable); ok {
		return s
	}
	return New()
}
