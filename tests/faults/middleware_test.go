package faults_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// behind is a site whose requests by message pass middleware.
func behind(t *testing.T, do func(c actor.ReceiverContext, m any, pass func())) (*locktest.Site, locktest.Key) {
	t.Helper()
	return locktest.New(t, lockkeeper.Config{Idle: 50 * time.Millisecond, Middleware: []actor.ReceiverMiddleware{locktest.Around(do)}})
}

// awaitNothingLeft waits until the lock and its middleware have no process left.
func awaitNothingLeft(t *testing.T, s *locktest.Site, before int) {
	t.Helper()
	redistest.Eventually(t, "the processes of the lock and its middleware to end", func() bool { return s.Processes() == before })
}

// Middleware sees the requests that come by message, in their order, and nothing else.
func TestMiddleware_SeesOnlyRequestsByMessage(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	s, k := behind(t, func(_ actor.ReceiverContext, m any, pass func()) {
		what := fmt.Sprintf("%T", m)
		if release, ok := m.(*messages.Release); ok {
			what = release.HoldId
		}
		mu.Lock()
		seen = append(seen, what)
		mu.Unlock()
		pass()
	})
	p := s.Probe(t)
	before := s.Processes()
	locktest.Release(t, s.Acquire(t, k))
	locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message(), Owner: p.Pid})
	want := []string{"*messages.Acquire"}
	for i := range 100 {
		p.Send(&messages.Release{Lock: k.Message(), HoldId: fmt.Sprint(i)})
		want = append(want, fmt.Sprint(i))
	}
	for range 100 {
		locktest.Next[*messages.NotReleased](t, p)
	}
	locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: k.Message(), Owner: p.Pid})
	mu.Lock()
	if want = append(want, ""); !slices.Equal(seen, want) {
		t.Errorf("the middleware saw %v, want %v", seen, want)
	}
	mu.Unlock()
	awaitNothingLeft(t, s, before)
}

// A request on which the middleware panics, or ends its goroutine, is refused, unless it has passed. Middleware may
// keep a request for itself. Neither leaves anything behind.
func TestMiddleware_PanicRefusesTheRequest(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		do     func(pass func())
		answer messages.Reason // to an Extend of a hold that there is not
	}{
		"panics before": {func(func()) { panic("middleware") }, messages.Reason_REASON_CRASHED},
		"panics after":  {func(pass func()) { pass(); panic("middleware") }, messages.Reason_REASON_NOT_HELD},
		"exits before":  {func(func()) { runtime.Goexit() }, messages.Reason_REASON_CRASHED},
		"exits after":   {func(pass func()) { pass(); runtime.Goexit() }, messages.Reason_REASON_NOT_HELD},
		"keeps it":      {func(func()) {}, 0},
	} {
		t.Run(what, func(t *testing.T) {
			s, k := behind(t, func(_ actor.ReceiverContext, _ any, pass func()) { test.do(pass) })
			p := s.Probe(t)
			before := s.Processes()
			if extend := (&messages.Extend{Lock: k.Message(), HoldId: "z", Lease: durationpb.New(time.Second)}); test.answer != 0 {
				locktest.ExpectRefusal(t, p, extend, test.answer)
			} else {
				p.Send(extend)
			}
			awaitNothingLeft(t, s, before)
			s.ExpectGranted(t, k)
		})
	}
}

// A Release or a Cancel passes although the middleware panics over it: nothing else would end the hold of an actor that
// lives on, or its wait.
func TestMiddleware_PanicKeepsNoLock(t *testing.T) {
	t.Parallel()
	s, k := behind(t, func(_ actor.ReceiverContext, m any, pass func()) {
		switch m.(type) {
		case *messages.Acquire, *messages.AcquirePermits:
			pass()
		default:
			panic("middleware")
		}
	})
	p := s.Probe(t)
	locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message(), Owner: p.Pid})
	locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: k.Message(), Owner: p.Pid})
	k.IsFree(t)

	hold := s.Acquire(t, k)
	p.Send(&messages.Acquire{Lock: k.Message(), Owner: p.Pid})
	s.AwaitWaiters(t, k, 1)
	if refusal := locktest.Ask[*messages.NotAcquired](t, p, &messages.Cancel{Lock: k.Message(), Owner: p.Pid}); refusal.Reason != messages.Reason_REASON_CANCELLED {
		t.Errorf("the request ended with %v", refusal)
	}
	locktest.Next[*messages.Cancelled](t, p)
	locktest.Release(t, hold)

	permits, latch := locktest.NewKey(t, k.Server), locktest.NewKey(t, k.Server)
	locktest.Must(s.Semaphore(permits.LockName).TrySetPermits(t.Context(), 1, 0))(t)
	semaphore := &messages.Semaphore{Name: permits.LockName}
	locktest.Ask[*messages.PermitsAcquired](t, p, &messages.AcquirePermits{Semaphore: semaphore})
	locktest.Ask[*messages.PermitsReleased](t, p, &messages.ReleasePermits{Semaphore: semaphore})
	locktest.Must(s.Latch(latch.LockName).TrySetCount(t.Context(), 1))(t)
	locktest.Ask[*messages.LatchChanged](t, p, &messages.CountDown{Latch: &messages.Latch{Name: latch.LockName}})
}

// Middleware that blocks delays requests by message for its lock. Close does not wait for it, and requests that it
// passes later are refused.
func TestMiddleware_BlockedRequestIsRefusedAfterClose(t *testing.T) {
	t.Parallel()
	entered, gate := make(chan struct{}, 1), make(chan struct{})
	s, k := behind(t, func(_ actor.ReceiverContext, _ any, pass func()) {
		entered <- struct{}{}
		<-gate
		pass()
	})
	other, p := locktest.NewKey(t, k.Server), s.Probe(t)
	hold := s.Acquire(t, k)
	p.Send(&messages.Acquire{Lock: k.Message(), Owner: p.Pid})
	locktest.Await(t, "the middleware", entered)
	locktest.Release(t, hold)
	s.ExpectGranted(t, k)
	s.Acquire(t, other)
	locktest.Stop(t, s)
	other.IsFree(t)
	left := s.Processes()
	close(gate)
	if refused := locktest.Next[*messages.NotAcquired](t, p); refused.Reason != messages.Reason_REASON_CLOSED {
		t.Errorf("answered with %v", refused)
	}
	awaitNothingLeft(t, s, left-1)
	if _, err := s.Lock(k.LockName).Acquire(context.Background()); err == nil {
		t.Error("a closed system has granted a lock")
	}
}

// A middleware actor that is stopped from outside refuses its queued requests, and affects nothing else.
func TestMiddleware_StoppedActorRefusesItsQueue(t *testing.T) {
	t.Parallel()
	fronts, goOn, first := make(chan *actor.PID, 10), make(chan struct{}), locktest.Once("*messages.Acquire")
	s, k := behind(t, func(c actor.ReceiverContext, m any, pass func()) {
		if first(m) {
			fronts <- c.Self()
			<-goOn
		}
		pass()
	})
	p := s.Probe(t)
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
	s.AwaitEnd(t, front)
	locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: k.Message(), Owner: p.Pid})
	awaitNothingLeft(t, s, before)
}
