package locktest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Saboteur makes actors crash: it is receiver middleware that panics before or
// after the handler of the messages that it is told to hit.
type Saboteur struct {
	mu            sync.Mutex
	before, after func(m any) bool
	// spared are the lock actors, by the id of their PID, that it leaves alone.
	Spared map[string]bool
	Count  atomic.Int64
}

func (s *Saboteur) Middleware(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
		s.mu.Lock()
		before, after := s.before, s.after
		if m, ok := e.Message.(*messages.Acquire); ok && strings.HasSuffix(m.Lock.Name, "spared") {
			s.Spared[c.Self().Id] = true
		}
		if s.Spared[c.Self().Id] {
			before, after = nil, nil
		}
		s.mu.Unlock()
		if before != nil && before(e.Message) {
			s.Count.Add(1)
			panic(fmt.Sprintf("sabotage before %T", e.Message))
		}
		next(c, e)
		if after != nil && after(e.Message) {
			s.Count.Add(1)
			panic(fmt.Sprintf("sabotage after %T", e.Message))
		}
	}
}

func (s *Saboteur) Hit(before, after func(m any) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// Once hits the first message of a type that fmt prints like this.
func Once(typeName string) func(any) bool {
	var done atomic.Bool
	return func(m any) bool { return fmt.Sprintf("%T", m) == typeName && done.CompareAndSwap(false, true) }
}
