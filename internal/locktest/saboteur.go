package locktest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
)

// Saboteur makes actors crash: it is receiver middleware that panics before or
// after the handler of the messages that it is told to hit.
type FaultInjector struct {
	mu            sync.Mutex
	before, after func(m any) bool
	// spared are the lock actors, by the id of their PID, that it leaves alone: those of
	// locks whose names end so.
	spared map[string]bool
	Count  atomic.Int64
}

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
		if before != nil && before(e.Message) {
			s.Count.Add(1)
			panic(fmt.Sprintf("sabotage before %v", faultinject.TypeOf(e.Message)))
		}
		next(c, e)
		if after != nil && after(e.Message) {
			s.Count.Add(1)
			panic(fmt.Sprintf("sabotage after %v", faultinject.TypeOf(e.Message)))
		}
	}
}

func isSpared(r faultinject.Request) bool {
	_, lock := r.Requested()
	return strings.HasSuffix(lock, "spared")
}

func (s *FaultInjector) Hit(before, after func(m any) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// Once hits the first message of a type that fmt prints like this.
func Once(typeName string) func(any) bool { return InTurn(typeName) }

// Sabotaged is New with actors that can be made to crash, until the test ends.
func NewFaultInjector(t testing.TB, cfg lockkeeper.Config) (*FaultInjector, *Site, Key) {
	t.Helper()
	saboteur := &FaultInjector{}
	s, k := New(t, cfg, saboteur.Middleware)
	t.Cleanup(func() { saboteur.Hit(nil, nil) })
	return saboteur, s, k
}

// InTurn hits a message of each of these types, one after the other.
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

// Stall stops an actor before the next message of a type, until goOn is called.
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
