package locks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// reign is a life of a leader's child.
type reign struct {
	term    context.Context
	self    *actor.PID
	ending  chan struct{} // closed when it is told to stop
	mayStop chan struct{} // which it does when this is closed
}

// candidate is a leader actor. Its children do what they are sent.
type candidate struct {
	site   *locktest.Site
	pid    *actor.PID
	reigns chan reign
}

func campaign(s *locktest.Site, k locktest.Key, options ...actor.PropsOption) *candidate {
	c := &candidate{site: s, reigns: make(chan reign, 10)}
	c.pid = s.Actors.Root.Spawn(s.Lock(k.LockName).LeaderProps(func(term context.Context) *actor.Props {
		var r reign
		return actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				r = reign{term, ctx.Self(), make(chan struct{}), make(chan struct{})}
				c.reigns <- r
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

func (c *candidate) tell(r reign, what func(actor.Context)) { c.site.Actors.Root.Send(r.self, what) }

// standsBy checks that it does not lead, in spite of some time.
func (c *candidate) standsBy(t *testing.T) {
	t.Helper()
	select {
	case <-c.reigns:
		t.Error("a candidate leads while the child of another one lives")
	case <-time.After(100 * time.Millisecond):
	}
}

func (c *candidate) awaitEnd(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, "the end of the leader", func() bool {
		_, lives := c.site.Actors.ProcessRegistry.Get(c.pid)
		return !lives
	})
}

// The lock of a leader is free when its child has stopped, and no sooner. A leader that has lost the lock is a
// candidate again, and one whose child has ended is none any more.
func TestLeaderActor(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	anna := campaign(s, k)
	first := locktest.Await(t, "the first leader", anna.reigns)
	bert := campaign(locktest.Open(t, k.Server.URL(), locktest.NoPolling), k)
	k.AwaitListener(t)

	s.Actors.Root.Stop(anna.pid)
	locktest.Await(t, "the child to be told to stop", first.ending)
	locktest.Await(t, "the end of the first term", first.term.Done())
	bert.standsBy(t)
	close(first.mayStop)
	second := locktest.Await(t, "the next leader", bert.reigns)
	anna.awaitEnd(t)

	term := second.term
	for range 11 { // proto.actor's default strategy gives up after ten
		bert.tell(second, func(actor.Context) { panic("crash") })
		second = locktest.Await(t, "the restart of the child", bert.reigns)
	}
	if second.term != term || !lockkeeper.HoldFrom(term).Valid() {
		t.Error("crashes of the child have ended its term")
	}

	locktest.ForceRelease(t, bert.site.Lock(k.LockName), true)
	locktest.Await(t, "the child to be told to stop", second.ending)
	if cause := context.Cause(second.term); !errors.Is(cause, lockkeeper.ErrLost) {
		t.Errorf("the term that was lost ends with %v", cause)
	}
	close(second.mayStop)
	third := locktest.Await(t, "another term", bert.reigns)
	close(third.mayStop)
	bert.tell(third, func(ctx actor.Context) { ctx.Stop(ctx.Self()) })
	bert.awaitEnd(t)
	k.AwaitFree(t)
}

// A leader ends when there is nothing more to wait for. Whatever it has ends before, and the lock is free.
func TestLeaderActorGivesUp(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	k.Do(t, "SET", k.Name+" text", "no lock")
	campaign(s, locktest.Key{LockName: k.LockName + " text"}).awaitEnd(t)

	// It learns of its term too late, or crashes over it.
	terms, learns := 0, make(chan struct{})
	learning := actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			switch envelope.Message.(type) {
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
			next(ctx, envelope)
		}
	})
	late := campaign(s, k, learning)
	locktest.Await(t, "the first term", learns)
	s.Actors.Root.Stop(late.pid)
	late.awaitEnd(t)
	crashing := campaign(s, k, learning)
	fourth := locktest.Await(t, "a leader after two crashes", crashing.reigns)
	s.Actors.Root.Send(crashing.pid, "another crash")
	locktest.Await(t, "the child to be told to stop", fourth.ending)
	crashing.standsBy(t)
	k.HeldBy(t, s, "1")
	close(fourth.mayStop)
	last := locktest.Await(t, "another term", crashing.reigns)

	close(last.mayStop)
	locktest.Stop(t, s)
	locktest.Await(t, "the child to be told to stop", last.ending)
	crashing.awaitEnd(t)
	k.AwaitFree(t)
}

// A leader that was granted the lock before a crash knows nothing of it afterwards: it waits for the lock again.
func TestLeaderActorThatCrashesWhenItWins(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	hold, crash := s.Acquire(t, k), make(chan struct{})
	c := campaign(s, k, actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			if _, ok := envelope.Message.(string); ok {
				<-crash
				panic("crash")
			}
			next(ctx, envelope)
		}
	}))
	s.AwaitWaiters(t, k, 1)
	s.Actors.Root.Send(c.pid, "crash")
	s.Release(t, hold)
	s.AwaitWaiters(t, k, 0)
	close(crash)
	r := locktest.Await(t, "a term", c.reigns)
	close(r.mayStop)
	if err := r.term.Err(); err != nil {
		t.Errorf("it leads in a term that is over: %v", err)
	}
	if err := s.Actors.Root.StopFuture(c.pid).Wait(); err != nil {
		t.Error(err)
	}
	k.IsFree(t)
	if cause := context.Cause(r.term); cause == nil || errors.Is(cause, context.Canceled) {
		t.Errorf("the term has ended with %v", cause)
	}
}
