// See node_test.go.

//go:build !race

package grains

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
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

// subscribe makes the host's subscribers to the event stream block over events of a type, or panic.
func subscribe[T any](t *testing.T, n *node, how string) {
	gate := make(chan struct{})
	t.Cleanup(func() { close(gate) })
	n.ActorSystem.EventStream.Subscribe(func(e any) {
		if _, is := e.(T); !is {
			return
		}
		if how == "panics" {
			panic("the host misbehaves")
		}
		<-gate
	})
}

// A member notices others, and leaves, although a subscriber to the event stream blocks or panics when members change.
func TestMember_HostCallbacksDelayNoLook(t *testing.T) {
	for _, how := range []string{"blocks", "panics"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, redistest.Start(t))
			a := f.member(Config{})
			subscribe[*cluster.ClusterTopology](t, a, how)
			b := f.member(Config{Place: func(members []Member, _, _ string) Member {
				for _, m := range members {
					if m.Address != a.ActorSystem.Address() {
						return m
					}
				}
				return members[0]
			}})
			at, _ := b.mustAsk(t, "x", "where")
			if at != b.ActorSystem.Address() {
				t.Fatalf("the grain is at %s", at)
			}
			if from, _ := a.mustAsk(t, "x", "where"); from != at {
				t.Errorf("the grain is at %s for one, and at %s for the other", at, from)
			}
			ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
			defer cancel()
			left := make(chan error, 1)
			go func() { left <- a.d.Leave(ctx) }()
			select {
			case err := <-left:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(2 * redistest.Limit):
				t.Error("Leave outlasts its context")
			}
		})
	}
}

// A grain that crashes is restarted although a subscriber to the event stream blocks or panics over that.
func TestGrain_HostCallbacksDelayNoRestart(t *testing.T) {
	for _, how := range []string{"blocks", "panics"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, redistest.Start(t))
			a := f.member(Config{Activation: time.Second})
			subscribe[*actor.SupervisorEvent](t, a, how)
			_, token := a.mustAsk(t, "x", "where")
			a.ActorSystem.Root.Send(a.Get("x", "account"), wrapperspb.String("panic"))
			redistest.Eventually(t, "the restart", func() bool { return f.count("x", "starts") == 2 })
			if _, same := a.mustAsk(t, "x", "where"); same != token {
				t.Errorf("the token %d is followed by %d", token, same)
			}
			a.mustAsk(t, "y", "where")
		})
	}
}

// A member leaves although a grain is handling its Stopped then, and a subscriber to the event stream blocks over
// letters to actors that are no longer registered.
func TestMember_HostCallbacksDelayNoLeave(t *testing.T) {
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{})
	for _, name := range []string{"x", "y"} {
		a.mustAsk(t, name, "where")
	}
	subscribe[*actor.DeadLetterEvent](t, a, "blocks")
	a.mustAsk(t, "x", "stop-late")
	redistest.Eventually(t, "the end of x", func() bool { return f.count("x", "stops") == 1 })
	left := make(chan error, 1)
	go func() { left <- a.d.Leave(t.Context()) }()
	redistest.Eventually(t, "the stop of y", func() bool { return f.count("y", "stops") == 1 })
	close(f.gate)
	select {
	case err := <-left:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(redistest.Limit):
		t.Error("the member does not leave")
	}
}

// The sender middleware of the host does not see the messages within a member: it knows only the host's own messages.
func TestMember_RunsNoSenderMiddleware(t *testing.T) {
	f := newFleet(t, redistest.Start(t))
	a := f.node(Config{})
	a.ActorSystem.Root.WithSenderMiddleware(func(next actor.SenderFunc) actor.SenderFunc {
		return func(ctx actor.SenderContext, to *actor.PID, e *actor.MessageEnvelope) {
			if _, is := e.Message.(proto.Message); !is && to.Id == activatorName {
				panic("the host misbehaves")
			}
			next(ctx, to, e)
		}
	})
	a.StartMember()
	a.mustAsk(t, "x", "where")
}
