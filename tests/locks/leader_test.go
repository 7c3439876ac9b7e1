package locks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
)

// leaderTerm is one run of a leader's child.
type leaderTerm struct {
	term    context.Context
	self    *actor.PID
	ending  chan struct{} // closed when the child is stopping
	mayStop chan struct{} // when it is closed, the child stops
}

// candidate is a leader actor. Its children run the functions that they are sent.
type candidate struct {
	site  *locktest.Site
	pid   *actor.PID
	terms chan leaderTerm
}

func newCandidate(s *locktest.Site, k locktest.Key, options ...actor.PropsOption) *candidate {
	c := &candidate{site: s, terms: make(chan leaderTerm, 10)}
	c.pid = s.Actors.Root.Spawn(s.Lock(k.LockName).LeaderProps(func(term context.Context) *actor.Props {
		var r leaderTerm
		return actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				r = leaderTerm{term, ctx.Self(), make(chan struct{}), make(chan struct{})}
				c.terms <- r
			case func(actor.Context):
				m(ctx)
			case *actor.Stopping:
				close(r.ending)
				<-r.mayStop
			}
		})
	}).Configure(options...))
	return c
}

func (c *candidate) send(r leaderTerm, do func(actor.Context)) { c.site.Actors.Root.Send(r.self, do) }

// standsBy checks that the candidate does not lead, even after a while.
func (c *candidate) standsBy(t *testing.T) {
	t.Helper()
	select {
	case <-c.terms:
		t.Error("a candidate leads while the child of another one lives")
	case <-time.After(100 * time.Millisecond):
	}
}

func (c *candidate) awaitEnd(t *testing.T) {
	t.Helper()
	c.site.AwaitEnd(t, c.pid)
}

// The lock of a leader is released when its child has stopped, and not before. A leader that has lost the lock is a
// candidate again, and a leader whose child has ended is not.
func TestLeaderActor_ReleasesAfterItsChildStops(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	anna := newCandidate(s, k)
	first := locktest.Await(t, "the first leader", anna.terms)
	bert := newCandidate(locktest.Open(t, k.Server.URL(), locktest.NoPolling), k)
	k.AwaitListener(t)

	s.Actors.Root.Stop(anna.pid)
	locktest.Await(t, "the stop of the child", first.ending)
	locktest.Await(t, "the end of the first term", first.term.Done())
	bert.standsBy(t)
	close(first.mayStop)
	second := locktest.Await(t, "the next leader", bert.terms)
	anna.awaitEnd(t)

	term := second.term
	for range 11 { // proto.actor's default strategy gives up after ten
		bert.send(second, func(actor.Context) { panic("crash") })
		second = locktest.Await(t, "the restart of the child", bert.terms)
	}
	if second.term != term || !lockkeeper.HoldFrom(term).Valid() {
		t.Error("crashes of the child have ended its term")
	}

	locktest.ForceRelease(t, bert.site.Lock(k.LockName), true)
	locktest.Await(t, "the stop of the child", second.ending)
	if cause := context.Cause(second.term); !errors.Is(cause, lockkeeper.ErrLost) {
		t.Errorf("the term that was lost ends with %v", cause)
	}
	close(second.mayStop)
	third := locktest.Await(t, "another term", bert.terms)
	close(third.mayStop)
	bert.send(third, func(ctx actor.Context) { ctx.Stop(ctx.Self()) })
	bert.awaitEnd(t)
	k.AwaitFree(t)
}

// A leader actor ends when it no longer has a reason to wait. Its child ends before, and the lock is free.
func TestLeaderActor_EndsWithoutAReasonToWait(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	k.Do(t, "SET", k.Name+" text", "no lock")
	newCandidate(s, locktest.Key{LockName: k.LockName + " text"}).awaitEnd(t)

	// It is notified of its term too late, or crashes on the notification.
	terms, learns := 0, make(chan struct{})
	learning := actor.WithReceiverMiddleware(locktest.Around(func(_ actor.ReceiverContext, m any, pass func()) {
		switch m.(type) {
		case actor.AutoReceiveMessage, actor.SystemMessage:
		default:
			switch terms++; terms {
			case 1:
				close(learns)
				return
			case 2, 3, 5:
				panic("crash")
			}
		}
		pass()
	}))
	late := newCandidate(s, k, learning)
	locktest.Await(t, "the first term", learns)
	s.Actors.Root.Stop(late.pid)
	late.awaitEnd(t)
	crashing := newCandidate(s, k, learning)
	fourth := locktest.Await(t, "a leader after two crashes", crashing.terms)
	s.Actors.Root.Send(crashing.pid, "another crash")
	locktest.Await(t, "the stop of the child", fourth.ending)
	crashing.standsBy(t)
	k.HeldBy(t, s, "1")
	close(fourth.mayStop)
	last := locktest.Await(t, "another term", crashing.terms)

	close(last.mayStop)
	locktest.Stop(t, s)
	locktest.Await(t, "the stop of the child", last.ending)
	crashing.awaitEnd(t)
	k.AwaitFree(t)
}

// A leader that crashes after it was granted the lock does not know of the grant afterwards: it waits for the lock
// again.
func TestLeaderActor_WaitsAgainAfterACrash(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	hold, crash := s.Acquire(t, k), make(chan struct{})
	c := newCandidate(s, k, actor.WithReceiverMiddleware(locktest.Around(func(_ actor.ReceiverContext, m any, pass func()) {
		if _, ok := m.(string); ok {
			<-crash
			panic("crash")
		}
		pass()
	})))
	s.AwaitWaiters(t, k, 1)
	s.Actors.Root.Send(c.pid, "crash")
	s.Release(t, hold)
	s.AwaitWaiters(t, k, 0)
	close(crash)
	r := locktest.Await(t, "a term", c.terms)
	close(r.mayStop)
	if err := r.term.Err(); err != nil {
		t.Errorf("it leads in a term that has ended: %v", err)
	}
	locktest.Check(t, s.Actors.Root.StopFuture(c.pid).Wait())
	k.IsFree(t)
	if cause := context.Cause(r.term); cause == nil || errors.Is(cause, context.Canceled) {
		t.Errorf("the term has ended with %v", cause)
	}
}
