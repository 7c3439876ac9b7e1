package locktest

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
)

// FaultInjector makes actors crash: it is receiver middleware that panics before or
// after the handler of chosen messages.
type FaultInjector struct {
	mu            sync.Mutex
	before, after func(m any) bool
	// spared are the ids of lock actors that never crash: of locks whose names end in "spared".
	spared map[string]bool
	Count  atomic.Int64
}

// Middleware is the receiver middleware to inject.
func (s *FaultInjector) Middleware(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
		s.mu.Lock()
		before, after := s.before, s.after
		if m, ok := e.Message.(faultinject.Request); ok && isSpared(m) {
			if s.spared == nil {
				s.spared = map[string]bool{}
			}
			s.spared[c.Self().Id] = true
		}
		if s.spared[c.Self().Id] {
			before, after = nil, nil
		}
		s.mu.Unlock()
		what := faultinject.TypeOf(e.Message)
		if before != nil && before(e.Message) {
			s.Count.Add(1)
			panic("injected fault before " + what)
		}
		crashes := after != nil && after(e.Message) // afterwards another request may use its memory
		next(c, e)
		if crashes {
			s.Count.Add(1)
			panic("injected fault after " + what)
		}
	}
}

// Around is middleware that handles each message, and decides whether it passes.
func Around(do func(c actor.ReceiverContext, m any, pass func())) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) { do(c, e.Message, func() { next(c, e) }) }
	}
}

func isSpared(r faultinject.Request) bool {
	_, lock := r.Requested()
	return strings.HasSuffix(lock, "spared")
}

// Hit sets which messages cause a panic before and after their handler; nil for none.
func (s *FaultInjector) Hit(before, after func(m any) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// Once matches the first message of a type, named as %T prints it.
func Once(typeName string) func(any) bool { return InTurn(typeName) }

// NewFaultInjector is New, with a FaultInjector that works until the test ends.
func NewFaultInjector(t testing.TB, cfg lockkeeper.Config) (*FaultInjector, *Site, Key) {
	t.Helper()
	injector := &FaultInjector{}
	s, k := New(t, cfg, injector.Middleware)
	t.Cleanup(func() { injector.Hit(nil, nil) })
	return injector, s, k
}

// InTurn matches a message of each of these types, one after the other.
func InTurn(typeNames ...string) func(any) bool {
	var mu sync.Mutex
	return func(m any) bool {
		mu.Lock()
		defer mu.Unlock()
		if len(typeNames) == 0 || faultinject.TypeOf(m) != typeNames[0] {
			return false
		}
		typeNames = typeNames[1:]
		return true
	}
}

// Stall blocks an actor before its next message of a type, until goOn is called.
func (s *FaultInjector) Stall(typeName string) (stalled <-chan struct{}, goOn func()) {
	stuck, free, hit := make(chan struct{}), make(chan struct{}), Once(typeName)
	s.Hit(func(m any) bool {
		if hit(m) {
			close(stuck)
			<-free
		}
		return false
	}, nil)
	return stuck, sync.OnceFunc(func() { close(free) })
}
