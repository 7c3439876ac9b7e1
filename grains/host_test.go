// See node_test.go.

//go:build !race

package grains

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// misbehaving is a log handler that misbehaves.
type misbehaving struct {
	slog.Handler
	misbehave func()
}

func (misbehaving) Enabled(context.Context, slog.Level) bool    { return true }
func (m misbehaving) Handle(context.Context, slog.Record) error { m.misbehave(); return nil }

// Grains start and stop although the host's log handler, and its subscribers to the event stream, block or panic.
func TestGrain_HostCallbacksDoNoHarm(t *testing.T) {
	for _, how := range []string{"blocks", "panics"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, redistest.Start(t))
			gate := make(chan struct{})
			defer close(gate)
			misbehave := func() {
				if how == "panics" {
					panic("the host misbehaves")
				}
				<-gate
			}
			a := f.member(Config{Activation: time.Second, Locks: lockkeeper.Config{Logger: slog.New(misbehaving{slog.DiscardHandler, misbehave})}})
			root := a.ActorSystem.Root
			a.ActorSystem.EventStream.Subscribe(func(e any) {
				dead, is := e.(*actor.DeadLetterEvent)
				if !is {
					return
				}
				if text, is := dead.Message.(*wrapperspb.StringValue); is && text.Value == "behind" {
					misbehave()
				}
			})
			_, token := a.mustAsk(t, "a", "where")
			pid := a.Get("a", "account")
			root.Send(pid, wrapperspb.String("poison 300ms"))
			redistest.Eventually(t, "the stop", func() bool { return f.count("a", "stopping") == 1 })
			for range 3 {
				if _, err := root.RequestFuture(pid, wrapperspb.String("behind"), redistest.Limit).Result(); err != actor.ErrDeadLetter {
					t.Errorf("what is behind the stop: %v", err)
				}
			}
			if _, higher := a.mustAsk(t, "a", "where"); higher <= token {
				t.Errorf("the token %d is followed by %d", token, higher)
			}
			f.crash.Store(true) // which is logged
			if _, err := a.ask("b", "where"); err == nil {
				t.Error("a grain without an actor answers")
			}
			f.crash.Store(false)
			a.mustAsk(t, "b", "where")
		})
	}
}
