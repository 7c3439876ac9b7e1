package locks_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
)

// lateStrategy leaves the restart of a child that has crashed to the test.
type lateStrategy chan func()

func (s lateStrategy) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, _, _ any) {
	s <- func() { supervisor.RestartChildren(child) }
}

// frailTerm is the life of one child of a frail leader, whose child has a child of its own.
type frailTerm struct {
	self                       *actor.PID
	ending, mayStop, restarted chan struct{}
	stopped                    chan struct{}
}

// newFrail spawns a leader. Its child crashes on any string, and on the lifecycle message that crashes names. The
// child's own child stops slowly.
func newFrail(s *locktest.Site, k locktest.Key, crashes func(message any) bool, options ...actor.PropsOption) (*candidate, chan frailTerm) {
	terms := make(chan frailTerm, 10)
	grandchild := func(f frailTerm) *actor.Props {
		return actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Stopping); ok {
				close(f.ending)
				<-f.mayStop
			}
		})
	}
	pid := s.Actors.Root.Spawn(s.Lock(k.LockName).LeaderProps(func(context.Context) *actor.Props {
		f := frailTerm{ending: make(chan struct{}), mayStop: make(chan struct{}), restarted: make(chan struct{}, 10), stopped: make(chan struct{})}
		return actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				if f.self != nil {
					f.restarted <- struct{}{}
					return
				}
				f.self = ctx.Self()
				ctx.Spawn(grandchild(f))
				terms <- f
			case *actor.Stopped:
				close(f.stopped)
			case string:
				panic("as planned")
			}
			if crashes(ctx.Message()) {
				panic("as planned")
			}
		})
	}).Configure(options...))
	return &candidate{site: s, pid: pid}, terms
}

func neverCrashes(any) bool { return false }

// The restart of a crashed child comes while the child stops, or after it has stopped: the child is not restarted, and
// the leader stops, or leads again.
func TestLeaderActor_DoesNotRestartAChildThatStops(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"leader is stopped": false, "lock is lost": true} {
		for when, afterwards := range map[string]bool{"while it stops": false, "after it has stopped": true} {
			t.Run(name+"/"+when, func(t *testing.T) {
				t.Parallel()
				s, k := locktest.New(t, lockkeeper.Config{})
				late := make(lateStrategy, 1)
				c, terms := newFrail(s, k, neverCrashes, actor.WithSupervisor(late))
				first := locktest.Await(t, "a term", terms)
				s.Actors.Root.Send(first.self, "crash")
				restart := locktest.Await(t, "the crash", late)
				if lost {
					locktest.ForceRelease(t, s.Lock(k.LockName), true)
				} else {
					s.Actors.Root.Stop(c.pid)
				}
				locktest.Await(t, "the stop", first.ending)
				if !afterwards {
					restart()
				}
				close(first.mayStop)
				locktest.Await(t, "the end of the child", first.stopped)
				if afterwards {
					restart()
				}
				if lost {
					second := locktest.Await(t, "another term", terms)
					close(second.mayStop)
					s.Actors.Root.Stop(c.pid)
				}
				endsWithoutRestart(t, c, k, first)
			})
		}
	}
}

// endsWithoutRestart waits until a leader has stopped and the lock is free, and checks that the child was not
// restarted.
func endsWithoutRestart(t *testing.T, c *candidate, k locktest.Key, child frailTerm) {
	t.Helper()
	c.awaitEnd(t)
	k.AwaitFree(t)
	if len(child.restarted) != 0 {
		t.Error("the child was restarted in a term that has ended, or while it stopped")
	}
}

// A leader stops though its child panics at the messages that tell it to stop.
func TestLeaderActor_StopsThoughItsChildPanics(t *testing.T) {
	t.Parallel()
	for name, crashes := range map[string]func(any) bool{
		"Stopping":   func(m any) bool { _, is := m.(*actor.Stopping); return is },
		"Terminated": func(m any) bool { _, is := m.(*actor.Terminated); return is },
		"Stopped":    func(m any) bool { _, is := m.(*actor.Stopped); return is },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.New(t, lockkeeper.Config{})
			c, terms := newFrail(s, k, crashes)
			first := locktest.Await(t, "a term", terms)
			close(first.mayStop)
			s.Actors.Root.Stop(c.pid)
			endsWithoutRestart(t, c, k, first)
		})
	}
}

// A stopped leader whose child still stops is restarted by its own supervisor: it stops all the same.
func TestLeaderActor_StopsThoughItIsRestarted(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	c, terms := newFrail(s, k, neverCrashes)
	first := locktest.Await(t, "a term", terms)
	s.Actors.Root.Stop(c.pid)
	locktest.Await(t, "the stop", first.ending)
	leader, _ := s.Actors.ProcessRegistry.Get(c.pid)
	leader.SendSystemMessage(c.pid, &actor.Restart{})
	close(first.mayStop)
	c.awaitEnd(t)
	k.AwaitFree(t)
	if len(first.restarted) != 0 || len(terms) != 0 {
		t.Error("it leads after its stop")
	}
}

// A panic of the host's middleware may lose the notice that the child has stopped. The lock is released nevertheless.
func TestLeaderActor_ReleasesThoughMiddlewarePanics(t *testing.T) {
	t.Parallel()
	panicsAt := func(is func(message any) bool) actor.PropsOption {
		var done atomic.Bool
		return actor.WithReceiverMiddleware(locktest.Around(func(_ actor.ReceiverContext, m any, pass func()) {
			if is(m) && done.CompareAndSwap(false, true) {
				panic("as planned")
			}
			pass()
		}))
	}
	noticed := func(message any) bool { _, is := message.(*actor.Terminated); return is }
	stopped := func(message any) bool { _, is := message.(*actor.Stopped); return is }
	never := func(any) bool { return false }
	for name, test := range map[string]struct {
		leader, child func(message any) bool
		byItself      bool
	}{
		"the leader's, and the child stops by itself": {leader: noticed, child: never, byItself: true},
		"the leader's, and the leader is stopped":     {leader: noticed, child: never},
		"the child's, and it stops by itself":         {leader: never, child: stopped, byItself: true},
		"the child's, and the leader is stopped":      {leader: never, child: stopped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.New(t, lockkeeper.Config{})
			children := make(chan *actor.PID, 10)
			leader := s.Actors.Root.Spawn(s.Lock(k.LockName).LeaderProps(func(context.Context) *actor.Props {
				return actor.PropsFromFunc(func(ctx actor.Context) {
					if _, is := ctx.Message().(*actor.Started); is {
						children <- ctx.Self()
					}
				}, panicsAt(test.child))
			}).Configure(panicsAt(test.leader)))
			child := locktest.Await(t, "the child", children)
			next := locktest.AcquireSoon(t.Context(), s.Lock(k.LockName))
			locktest.AwaitWaiters(t, s.Lock(k.LockName), 1)
			if test.byItself {
				s.Actors.Root.Stop(child)
			} else {
				s.Actors.Root.Stop(leader)
			}
			locktest.Release(t, locktest.Got(t, next).Hold)
			s.Actors.Root.Stop(leader)
		})
	}
}

// A leader whose child cannot be started crashes. If its supervisor resumes it, it stops, and does not keep the lock.
func TestLeaderActor_StopsIfItIsResumedWithoutAChild(t *testing.T) {
	t.Parallel()
	for what, child := range map[string]func(context.Context) *actor.Props{
		"the function panics": func(context.Context) *actor.Props { panic("as planned") },
		"the producer panics": func(context.Context) *actor.Props {
			return actor.PropsFromProducer(func() actor.Actor { panic("as planned") })
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.New(t, lockkeeper.Config{})
			hold := s.Acquire(t, k)
			resume := actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective })
			pid := s.Actors.Root.Spawn(s.Lock(k.LockName).LeaderProps(child).Configure(actor.WithGuardian(resume)))
			s.AwaitWaiters(t, k, 1)
			s.Release(t, hold)
			(&candidate{site: s, pid: pid}).awaitEnd(t)
			k.AwaitFree(t)
		})
	}
}

// A child that crashes is restarted although a subscriber to the event stream blocks or panics over that.
func TestLeaderActor_RestartsItsChildDespiteABadSubscriber(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"blocks", "panics"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.New(t, lockkeeper.Config{})
			gate := make(chan struct{})
			defer close(gate)
			s.Actors.EventStream.Subscribe(func(e any) {
				if _, is := e.(*actor.SupervisorEvent); !is {
					return
				}
				if how == "panics" {
					panic("the host misbehaves")
				}
				<-gate
			})
			c, terms := newFrail(s, k, neverCrashes)
			first := locktest.Await(t, "a term", terms)
			close(first.mayStop)
			s.Actors.Root.Send(first.self, "crash")
			locktest.Await(t, "the restart", first.restarted)
			s.Actors.Root.Stop(c.pid)
			c.awaitEnd(t)
			k.AwaitFree(t)
		})
	}
}

// A leader leads again after a loss although its child was handling its Stopped then, and a subscriber to the event
// stream blocks over letters to actors that are no longer registered.
func TestLeaderActor_LeadsAgainDespiteABadSubscriber(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	gate := make(chan struct{})
	defer close(gate)
	s.Actors.EventStream.Subscribe(func(e any) {
		if _, is := e.(*actor.DeadLetterEvent); is {
			<-gate
		}
	})
	terms, stopped, mayEnd, heard := make(chan *actor.PID, 10), make(chan struct{}, 10), make(chan struct{}), make(chan struct{}, 10)
	pid := s.Actors.Root.Spawn(s.Lock(k.LockName).LeaderProps(func(context.Context) *actor.Props {
		return actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				terms <- ctx.Self()
			case string:
				ctx.Stop(ctx.Self())
			case *actor.Stopped:
				stopped <- struct{}{}
				<-mayEnd
			}
		})
	}).Configure(actor.WithReceiverMiddleware(locktest.Around(func(_ actor.ReceiverContext, m any, pass func()) {
		what := fmt.Sprintf("%T", m)
		pass()
		if strings.HasSuffix(what, ".lostTerm") {
			heard <- struct{}{}
		}
	}))))
	c := &candidate{site: s, pid: pid}
	s.Actors.Root.Send(locktest.Await(t, "a term", terms), "stop")
	locktest.Await(t, "the end of the child", stopped)
	locktest.ForceRelease(t, s.Lock(k.LockName), true)
	locktest.Await(t, "the loss at the leader", heard)
	close(mayEnd)
	locktest.Await(t, "another term", terms)
	s.Actors.Root.Stop(c.pid)
	c.awaitEnd(t)
	k.AwaitFree(t)
}
