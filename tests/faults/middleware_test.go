package faults_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// wrap is middleware that does something with a request before it lets it pass.
func wrap(before func(m any, pass func())) []actor.ReceiverMiddleware {
	return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) { before(e.Message, func() { next(c, e) }) }
	}}
}

// Middleware sees the requests that come by message, in their order, and nothing else.
func TestMiddlewareSeesRequestsByMessage(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	server := redistest.Shared(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{Idle: 50 * time.Millisecond, Watchdog: time.Second, Middleware: wrap(func(m any, pass func()) {
		what := fmt.Sprintf("%T", m)
		if release, ok := m.(*messages.Release); ok {
			what = release.HoldId
		}
		mu.Lock()
		seen = append(seen, what)
		mu.Unlock()
		pass()
	})})
	k, p := locktest.NewKey(t, server), s.Probe(t)
	before := s.Processes()
	locktest.Release(t, s.Acquire(t, k))
	locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message(), Owner: p.Pid})
	want := []string{"*messages.Acquire"}
	for i := range 100 {
		id := fmt.Sprint(i)
		p.Send(&messages.Release{Lock: k.Message(), HoldId: id})
		want = append(want, id)
	}
	for range 100 {
		locktest.Next[*messages.NotReleased](t, p)
	}
	p.Send(&messages.Release{Lock: k.Message(), Owner: p.Pid})
	locktest.Next[*messages.Released](t, p)
	want = append(want, "")
	mu.Lock()
	if !slices.Equal(seen, want) {
		t.Errorf("the middleware saw %v, want %v", seen, want)
	}
	mu.Unlock()
	redistest.Eventually(t, "nothing is left of the lock, or of its middleware", func() bool { return s.Processes() == before })
}

// A request that the middleware panics over is refused, unless it has passed; one that it
// keeps to itself is its own. Neither leaves anything behind.
func TestMiddlewareThatPanicsOrKeepsARequest(t *testing.T) {
	for what, test := range map[string]struct {
		do     func(pass func())
		answer messages.Reason
	}{
		"panics before": {func(func()) { panic("middleware") }, messages.Reason_REASON_CRASHED},
		"panics after":  {func(pass func()) { pass(); panic("middleware") }, messages.Reason_REASON_NOT_HELD},
		"keeps it":      {func(func()) {}, 0},
	} {
		t.Run(what, func(t *testing.T) {
			server := redistest.Shared(t)
			s := locktest.Open(t, server.URL(), lockkeeper.Config{Idle: 50 * time.Millisecond, Middleware: wrap(func(_ any, pass func()) { test.do(pass) })})
			k, p := locktest.NewKey(t, server), s.Probe(t)
			before := s.Processes()
			p.Send(&messages.Release{Lock: k.Message(), HoldId: "z"})
			if test.answer != 0 {
				if refused := locktest.Next[*messages.NotReleased](t, p); refused.Reason != test.answer {
					t.Errorf("answered with %v", refused)
				}
			}
			redistest.Eventually(t, "nothing is left", func() bool { return s.Processes() == before })
			s.Passes(t, k)
		})
	}
}

// Middleware that blocks holds up what came by message for its lock. A Close gives up
// nothing for it, and what it lets go later is refused.
func TestCloseWhileMiddlewareBlocks(t *testing.T) {
	entered, gate := make(chan struct{}, 1), make(chan struct{})
	server := redistest.Shared(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{Middleware: wrap(func(_ any, pass func()) {
		entered <- struct{}{}
		<-gate
		pass()
	})})
	k, other, p := locktest.NewKey(t, server), locktest.NewKey(t, server), s.Probe(t)
	hold := s.Acquire(t, k)
	p.Send(&messages.Acquire{Lock: k.Message(), Owner: p.Pid})
	locktest.Await(t, "the middleware", entered)
	locktest.Release(t, hold)
	s.Passes(t, k)
	s.Acquire(t, other)
	if err := s.Close(locktest.Within(t)); err != nil {
		t.Error(err)
	}
	other.IsFree(t)
	left := s.Processes()
	close(gate)
	if refused := locktest.Next[*messages.NotAcquired](t, p); refused.Reason != messages.Reason_REASON_CLOSED {
		t.Errorf("answered with %v", refused)
	}
	redistest.Eventually(t, "the middleware's actor has gone", func() bool { return s.Processes() == left-1 })
	if _, err := s.Lock(k.LockName).Acquire(context.Background()); err == nil {
		t.Error("a closed system has granted a lock")
	}
}

// A front that somebody stops refuses what is queued in it, and takes nothing else with it.
func TestMiddlewareStoppedFromOutside(t *testing.T) {
	server := redistest.Shared(t)
	fronts, goOn := make(chan *actor.PID, 10), make(chan struct{})
	first := locktest.Once("*messages.Acquire")
	s := locktest.Open(t, server.URL(), lockkeeper.Config{Idle: 50 * time.Millisecond, Middleware: []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
			if first(e.Message) {
				fronts <- c.Self()
				<-goOn
			}
			next(c, e)
		}
	}}})
	k, p := locktest.NewKey(t, server), s.Probe(t)
	before := s.Processes()
	p.Send(&messages.Acquire{Lock: k.Message()})
	front := locktest.Await(t, "the front", fronts)
	s.Actors.Root.RequestWithCustomSender(front, &messages.Inspect{Lock: k.Message()}, p.Pid)
	s.Actors.Root.Stop(front)
	close(goOn)
	answers := map[string]bool{}
	for range 2 {
		switch m := locktest.Next[any](t, p).(type) {
		case *messages.Acquired:
			answers["granted"] = true
		case *messages.Failed:
			answers[m.Reason.String()] = true
		default:
			t.Errorf("answered %v", m)
		}
	}
	if !answers["granted"] || !answers["REASON_CLOSED"] {
		t.Errorf("answered %v", answers)
	}
	redistest.Eventually(t, "the front to be gone", func() bool { _, there := s.Actors.ProcessRegistry.GetLocal(front.Id); return !there })
	locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: k.Message(), Owner: p.Pid})
	redistest.Eventually(t, "nothing is left of the lock, or of its middleware", func() bool { return s.Processes() == before })
}
