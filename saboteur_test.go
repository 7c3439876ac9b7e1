package lockkeeper_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// saboteur makes actors crash: it is receiver middleware that panics before or
// after the handler of the messages that it is told to hit.
type saboteur struct {
	mu            sync.Mutex
	before, after func(m any) bool
	// spared are the lock actors, by the id of their PID, that it leaves alone.
	spared  map[string]bool
	crashes atomic.Int64
}

func (s *saboteur) middleware(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
		s.mu.Lock()
		before, after := s.before, s.after
		if m, ok := e.Message.(*messages.Acquire); ok && strings.HasSuffix(m.Lock.Name, "spared") {
			s.spared[c.Self().Id] = true
		}
		if s.spared[c.Self().Id] {
			before, after = nil, nil
		}
		s.mu.Unlock()
		if before != nil && before(e.Message) {
			s.crashes.Add(1)
			panic(fmt.Sprintf("sabotage before %T", e.Message))
		}
		next(c, e)
		if after != nil && after(e.Message) {
			s.crashes.Add(1)
			panic(fmt.Sprintf("sabotage after %T", e.Message))
		}
	}
}

func (s *saboteur) hit(before, after func(m any) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// once hits the first message of a type that fmt prints like this.
func once(typeName string) func(any) bool {
	var done atomic.Bool
	return func(m any) bool { return fmt.Sprintf("%T", m) == typeName && done.CompareAndSwap(false, true) }
}
