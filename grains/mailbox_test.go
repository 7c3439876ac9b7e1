package grains

import (
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
)

// invoker records what a grain is to handle.
type invoker struct{ handled []string }

func (i *invoker) InvokeUserMessage(m any)   { i.handled = append(i.handled, fmt.Sprintf("%v", m)) }
func (i *invoker) InvokeSystemMessage(m any) { i.handled = append(i.handled, fmt.Sprintf("%T", m)) }
func (i *invoker) EscalateFailure(any, any)  {}

// A grain handles messages while its term serves, and a crash outside of it ends in a stop. What it does not handle becomes a
// dead letter, also while the mailbox is suspended.
func TestMailbox_HandlesMessagesWhileItsTermServes(t *testing.T) {
	system, serves := quiet.ActorSystem(), true
	defer system.Shutdown()
	var dead []string
	system.EventStream.Subscribe(func(e any) {
		if e, is := e.(*actor.DeadLetterEvent); is {
			dead = append(dead, fmt.Sprint(e.Message))
		}
	})
	post := &delivery.Post{System: system, Host: host.New(system, slog.New(slog.DiscardHandler))}
	i := &invoker{}
	m := &mailbox{
		Mailbox: actor.Unbounded()(), post: post, serves: func() bool { return serves }, end: func() {},
		refused: new(atomic.Int64), it: (&activations[*actor.PID]{}).add("kind/name"),
	}
	m.RegisterHandlers(i, actor.NewSynchronizedDispatcher(300))
	m.PostUserMessage(1)
	m.PostSystemMessage(&actor.Restart{})
	serves = false
	m.PostUserMessage(2)
	serves = true // the lease was renewed
	m.PostUserMessage(3)
	m.PostSystemMessage(&actor.SuspendMailbox{})
	m.PostUserMessage(4)
	serves = false
	m.PostSystemMessage(&actor.Restart{})
	m.PostUserMessage(5)
	m.PostUserMessage(&actor.PoisonPill{})
	if want := []string{"1", "*actor.Restart", "3", "*actor.Stop"}; !slices.Equal(i.handled, want) {
		t.Errorf("it handles %v", i.handled)
	}
	if !post.Host.Flush() {
		t.Error("the dead letters are not published")
	}
	if want := []string{"2", "4", "5"}; !slices.Equal(dead, want) || m.refused.Load() != 3 {
		t.Errorf("dead letters are %v", dead)
	}
}
