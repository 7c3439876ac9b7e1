package lockkeeper_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
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
	s := open(t, server.URL(), lockkeeper.Config{Idle: 50 * time.Millisecond, Watchdog: time.Second, Middleware: wrap(func(m any, pass func()) {
		what := fmt.Sprintf("%T", m)
		if release, ok := m.(*messages.Release); ok {
			what = release.HoldId
		}
		mu.Lock()
		seen = append(seen, what)
		mu.Unlock()
		pass()
	})})
	k, p := newKey(t, server), s.probe(t)
	before := s.processes()
	release(t, s.acquire(t, k))
	ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.message(), Owner: p.pid})
	want := []string{"*messages.Acquire"}
	for i := range 100 {
		id := fmt.Sprint(i)
		p.send(&messages.Release{Lock: k.message(), HoldId: id})
		want = append(want, id)
	}
	for range 100 {
		next[*messages.NotReleased](t, p)
	}
	p.send(&messages.Release{Lock: k.message(), Owner: p.pid})
	next[*messages.Released](t, p)
	want = append(want, "")
	mu.Lock()
	if !slices.Equal(seen, want) {
		t.Errorf("the middleware saw %v, want %v", seen, want)
	}
	mu.Unlock()
	redistest.Eventually(t, "nothing is left of the lock, or of its middleware", func() bool { return s.processes() == before })
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
			s := open(t, server.URL(), lockkeeper.Config{Idle: 50 * time.Millisecond, Middleware: wrap(func(_ any, pass func()) { test.do(pass) })})
			k, p := newKey(t, server), s.probe(t)
			before := s.processes()
			p.send(&messages.Release{Lock: k.message(), HoldId: "z"})
			if test.answer != 0 {
				if refused := next[*messages.NotReleased](t, p); refused.Reason != test.answer {
					t.Errorf("answered with %v", refused)
				}
			}
			redistest.Eventually(t, "nothing is left", func() bool { return s.processes() == before })
			s.passes(t, k)
		})
	}
}

// Middleware that blocks holds up what came by message for its lock. A Close gives up
// nothing for it, and what it lets go later is refused.
func TestCloseWhileMiddlewareBlocks(t *testing.T) {
	entered, gate := make(chan struct{}, 1), make(chan struct{})
	server := redistest.Shared(t)
	s := open(t, server.URL(), lockkeeper.Config{Middleware: wrap(func(_ any, pass func()) {
		entered <- struct{}{}
		<-gate
		pass()
	})})
	k, other, p := newKey(t, server), newKey(t, server), s.probe(t)
	hold := s.acquire(t, k)
	p.send(&messages.Acquire{Lock: k.message(), Owner: p.pid})
	await(t, "the middleware", entered)
	release(t, hold)
	s.passes(t, k)
	s.acquire(t, other)
	if err := s.Close(within(t)); err != nil {
		t.Error(err)
	}
	other.isFree(t)
	left := s.processes()
	close(gate)
	if refused := next[*messages.NotAcquired](t, p); refused.Reason != messages.Reason_REASON_CLOSED {
		t.Errorf("answered with %v", refused)
	}
	redistest.Eventually(t, "the middleware's actor has gone", func() bool { return s.processes() == left-1 })
	if _, err := s.Lock(k.lock).Acquire(context.Background()); err == nil {
		t.Error("a closed system has granted a lock")
	}
}
