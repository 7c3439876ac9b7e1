package locks_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func correlationOf(m any) string {
	return m.(interface{ GetCorrelationId() string }).GetCorrelationId()
}

// Each answer has the correlation id of its request: also a refusal, and the refusal of a request that is not valid.
func TestCorrelation_IsInEachAnswer(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	of := map[protoreflect.Name]proto.Message{
		"lock": k.Message(), "semaphore": &messages.Semaphore{Name: k.LockName + " s"}, "latch": &messages.Latch{Name: k.LockName + " l"},
	}
	requests := locktest.RequestTypes()
	for _, kind := range requests {
		name, fields := kind.Descriptor().Name(), kind.Descriptor().Fields()
		for _, valid := range []bool{true, false} {
			m := kind.New()
			m.Set(fields.ByName("correlation_id"), protoreflect.ValueOfString(string(name)))
			for field, about := range of {
				if f := fields.ByName(field); f != nil && valid {
					m.Set(f, protoreflect.ValueOfMessage(about.ProtoReflect()))
				}
			}
			answer := locktest.Must(lockkeeper.Ask(locktest.Within(t), s.Actors.Root, s.Guardian(), m.Interface()))(t)
			if got := correlationOf(answer); got != string(name) {
				t.Errorf("%s, valid: %v: %T has %q", name, valid, answer, got)
			}
		}
	}
	if len(requests) < 22 {
		t.Errorf("there are only %d requests", len(requests))
	}
}

// A loss, which answers nothing, has the id of the Acquire.
func TestCorrelation_OfALossIsThatOfTheAcquire(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{Renewal: 100 * time.Millisecond})
	received := make(chan proto.Message, 2)
	s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(s.Guardian(), &messages.Acquire{Lock: k.Message(), CorrelationId: "job 7"})
		case proto.Message:
			received <- m
		}
	}))
	for _, what := range []string{"the grant", "the loss"} {
		if m := locktest.Await(t, what, received); correlationOf(m) != "job 7" {
			t.Errorf("%s is %v", what, m)
		}
		k.Do(t, "DEL", k.Name)
	}
}
