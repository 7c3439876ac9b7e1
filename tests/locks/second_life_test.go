package locks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// life is an actor of a name that other actors have before and after it.
type life struct {
	answers chan any
	// stops is received from before the actor has stopped; nil if that takes no time.
	stops chan struct{}
}

func newLife() *life { return &life{answers: make(chan any, 10)} }

func (l *life) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Stopped:
		if l.stops != nil {
			<-l.stops
		}
	case proto.Message:
		l.answers <- m
	}
}

// spawn starts a life as soon as the name is free.
func (l *life) spawn(t *testing.T, s *locktest.Site) (pid *actor.PID) {
	t.Helper()
	redistest.Eventually(t, "the name to be free", func() bool {
		var err error
		pid, err = s.Actors.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return l }), "phoenix")
		return err == nil
	})
	return pid
}

// proto.actor frees an actor's name before the actor handles its Stopped, and notifies watchers after that. A grant to
// an actor that has died must not reach another actor of its name: that actor would take it for its own, and another
// process would get the lock when the notice comes.
func TestSecondLife_GetsNoAnswerOfTheFirst(t *testing.T) {
	t.Parallel()
	for kind, message := range map[string]func(name string) (request proto.Message, take func(s *locktest.Site) (free func())){
		"lock": func(name string) (proto.Message, func(*locktest.Site) func()) {
			return &messages.Acquire{Lock: &messages.Lock{Name: name}}, func(s *locktest.Site) func() {
				hold := locktest.Acquire(t, s.Lock(name))
				return func() { locktest.Release(t, hold) }
			}
		},
		"semaphore": func(name string) (proto.Message, func(*locktest.Site) func()) {
			return &messages.AcquirePermits{Semaphore: &messages.Semaphore{Name: name}, Permits: 1}, func(s *locktest.Site) func() {
				permits := s.Semaphore(name)
				_, err := permits.TrySetPermits(locktest.Within(t), 0, 0)
				locktest.OK(t, err)
				return func() { locktest.OK(t, permits.AddPermits(locktest.Within(t), 1)) }
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.New(t, lockkeeper.Config{})
			request, take := message(k.LockName)
			free := take(s)
			first, second := newLife(), newLife()
			first.stops = make(chan struct{})
			pid := first.spawn(t, s)
			s.SendAs(pid, request)
			s.AwaitWaiting(t, 1)
			s.Actors.Root.Stop(pid)
			pid = second.spawn(t, s)
			free()
			s.AwaitWaiting(t, 0)
			close(first.stops)
			marker := &messages.Inspect{}
			s.Actors.Root.Send(pid, marker)
			if m := locktest.Await(t, "the marker", second.answers); m != marker {
				t.Errorf("the second one has asked for nothing, and has got a %T", m)
			}
			s.SendAs(pid, request)
			locktest.Await(t, "the answer to its own request", second.answers)
			locktest.OK(t, s.Actors.Root.StopFuture(pid).Wait())
			if kind == "lock" {
				k.AwaitFree(t)
			}
		})
	}
}

// blockedProcess is a process of the host's that holds up what sends to it.
type blockedProcess struct {
	actor.Process
	reached, mayGo chan struct{}
}

func (p *blockedProcess) SendUserMessage(*actor.PID, any) {
	close(p.reached)
	<-p.mayGo
}

// Between a request of the first and the turn of the guardian the first has died, and the second has started.
func TestSecondLife_GetsNothingThatTheFirstHasAskedFor(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	busy := &blockedProcess{reached: make(chan struct{}), mayGo: make(chan struct{})}
	self, _ := s.Actors.ProcessRegistry.Add(busy, "busy")
	s.SendAs(self, "no request")
	locktest.Await(t, "the guardian to be held up", busy.reached)
	first, second := newLife(), newLife()
	pid := first.spawn(t, s)
	s.SendAs(pid, &messages.Acquire{Lock: k.Message()})
	s.SendAs(pid, &messages.Acquire{Lock: &messages.Lock{Name: k.LockName + "2", Kind: messages.Kind_KIND_READ_WRITE}})
	locktest.OK(t, s.Actors.Root.StopFuture(pid).Wait())
	pid = second.spawn(t, s)
	s.SendAs(pid, &messages.Cancel{Lock: k.Message()})
	close(busy.mayGo)
	if m, is := locktest.Await(t, "the answer to its own request", second.answers).(*messages.Cancelled); !is || m.Withdrawn != 0 {
		t.Errorf("the second one has asked for nothing else, and gets %v", m)
	}
	k.AwaitFree(t)
}

// An actor that handles its Stopped still has its lock: an actor that has its name by then waits like any other.
func TestSecondLife_WaitsUntilTheFirstHasStopped(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	request := &messages.Acquire{Lock: k.Message()}
	first, second := newLife(), newLife()
	first.stops = make(chan struct{})
	pid := first.spawn(t, s)
	s.SendAs(pid, request)
	locktest.Await(t, "the grant", first.answers)
	s.Actors.Root.Stop(pid)
	pid = second.spawn(t, s)
	s.SendAs(pid, request)
	s.AwaitWaiting(t, 1)
	if len(second.answers) > 0 {
		t.Errorf("the first has not stopped, and the second has got a %T", <-second.answers)
	}
	close(first.stops)
	if m, is := locktest.Await(t, "the grant", second.answers).(*messages.Acquired); !is || m.HoldCount != 1 {
		t.Errorf("it is granted %v", m)
	}
	locktest.OK(t, s.Actors.Root.StopFuture(pid).Wait())
	k.AwaitFree(t)
}

// stoppingOwner is an actor that waits for its child to stop, and is granted the lock meanwhile.
type stoppingOwner struct{ mayStop, stopped, mayEnd chan struct{} }

func newStoppingOwner(t *testing.T, s *locktest.Site, k locktest.Key, options ...actor.PropsOption) *stoppingOwner {
	t.Helper()
	o := &stoppingOwner{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	stopping, granted := make(chan struct{}), make(chan any, 1)
	child := actor.PropsFromFunc(func(ctx actor.Context) {
		if _, is := ctx.Message().(*actor.Stopping); is {
			close(stopping)
			<-o.mayStop
		}
	})
	pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Spawn(child)
		case string:
			ctx.Request(s.Guardian(), &messages.Acquire{Lock: k.Message()})
		case *messages.Acquired:
			granted <- m
		case *actor.Stopped:
			close(o.stopped)
			<-o.mayEnd
		}
	}, options...))
	s.Actors.Root.Stop(pid)
	locktest.Await(t, "the child to stop", stopping)
	s.Actors.Root.Send(pid, "acquire")
	locktest.Await(t, "the grant", granted)
	return o
}

// An actor that is stopping lives until its children have stopped, and handles its messages. Until then proto.actor
// says to an actor that begins to watch it that it has terminated, and says nothing afterwards.
func TestOwnerThatIsStopping_KeepsItsLockUntilItHasStopped(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	owner := newStoppingOwner(t, s, k)
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, s.Lock(k.LockName))
	close(owner.mayEnd)
	close(owner.mayStop)
	k.AwaitFree(t)
}

// watches counts the watchers of an actor that it has answered.
type watches chan struct{}

func (watches) MailboxStarted()   {}
func (watches) MessagePosted(any) {}
func (watches) MailboxEmpty()     {}

func (w watches) MessageReceived(m any) {
	if _, is := m.(*actor.Watch); is {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// The lock actor is busy when an owner that waits for its children says that it has terminated, and reads that when the
// owner is handling its Stopped: it still has its lock.
func TestOwnerThatIsStopping_KeepsItsLockThoughTheNoticeIsReadLate(t *testing.T) {
	t.Parallel()
	faults, s, k := locktest.NewFaultInjector(t, lockkeeper.Config{})
	said := make(watches, 1)
	owner := newStoppingOwner(t, s, k, actor.WithMailbox(actor.Unbounded(said)))
	<-said // while the lock actor was not busy; it asks again soon
	stalled, goOn := faults.Stall("*request.Call")
	defer goOn()
	go func() { _, _ = s.Lock(k.LockName).Inspect(context.Background()) }()
	locktest.Await(t, "the lock actor to be busy", stalled)
	locktest.Await(t, "the owner to say that it has terminated", said)
	close(owner.mayStop)
	locktest.Await(t, "the owner to handle its Stopped", owner.stopped)
	goOn()
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, s.Lock(k.LockName))
	close(owner.mayEnd)
	k.AwaitFree(t)
}

// proto.actor tells no watcher that an actor has stopped if it panics over its Stopped. Its lock was renewed for as
// long as the System lived.
func TestOwnerThatPanicsWhenStopped_LosesItsLock(t *testing.T) {
	t.Parallel()
	for how, lease := range map[string]*durationpb.Duration{"renewed": nil, "with a fixed lease": durationpb.New(time.Hour)} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.New(t, lockkeeper.Config{Watchdog: 600 * time.Millisecond, CallTimeout: 100 * time.Millisecond})
			granted, stopped := make(chan any, 1), make(chan any, 1)
			pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *actor.Started:
					ctx.Request(s.Guardian(), &messages.Acquire{Lock: k.Message(), Lease: lease})
				case *messages.Acquired:
					granted <- m
				case *actor.Stopped:
					stopped <- m
					panic("the host's own code")
				}
			}))
			locktest.Await(t, "the grant", granted)
			// By the end of this wait, the lock actor has handled all timers of the grant.
			hold := locktest.Acquire(t, s.Lock(k.LockName+" too"))
			if _, err := s.Lock(k.LockName+" too").Acquire(t.Context(), lockkeeper.WithWait(time.Second)); !errors.Is(err, lockkeeper.ErrTimeout) {
				t.Error(err)
			}
			locktest.Release(t, hold)
			s.Actors.Root.Stop(pid)
			locktest.Await(t, "the stop", stopped)
			k.AwaitFree(t)
		})
	}
}

// incomparable is a process of the host's own. To compare two of them panics.
type incomparable struct{ received func(any) }

func (p incomparable) SendUserMessage(_ *actor.PID, m any) {
	p.received(actor.UnwrapEnvelopeMessage(m))
}
func (incomparable) SendSystemMessage(*actor.PID, any) {}
func (incomparable) Stop(*actor.PID)                   {}

func TestOwnerThatCannotBeCompared_IsAnswered(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{Watchdog: 600 * time.Millisecond, CallTimeout: 100 * time.Millisecond})
	answers := make(chan any, 10)
	pid, _ := s.Actors.ProcessRegistry.Add(incomparable{func(m any) { answers <- m }}, "odd")
	defer s.Actors.ProcessRegistry.Remove(pid)
	for range 2 {
		s.SendAs(pid, &messages.Acquire{Lock: k.Message()})
		if m, is := locktest.Await(t, "the grant", answers).(*messages.Acquired); !is {
			t.Fatalf("answered %v", m)
		}
		waiter := locktest.AcquireSoon(locktest.Within(t), s.Lock(k.LockName))
		s.SendAs(pid, &messages.Release{Lock: k.Message()})
		if m, is := locktest.Await(t, "the release", answers).(*messages.Released); !is {
			t.Fatalf("answered %v", m)
		}
		locktest.Release(t, locktest.Got(t, waiter).Hold)
	}
}

// An actor's name is free while the actor handles its Stopped. A grant to its request is not for the next actor of its
// name.
func TestSecondLife_IsNotTheSenderOfWhatTheFirstAsksForInStopped(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	stopping, mayAsk := make(chan any, 1), make(chan any)
	first := locktest.Must(s.Actors.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, is := ctx.Message().(*actor.Stopped); is {
			stopping <- m
			<-mayAsk
			lockkeeper.Request(ctx, &messages.Release{Lock: k.Message()})
			lockkeeper.Request(ctx, &messages.ReleasePermits{Semaphore: &messages.Semaphore{Name: k.LockName + " permits"}})
		}
	}), "phoenix"))(t)
	locktest.Must(s.Semaphore(k.LockName+" permits").TrySetPermits(t.Context(), 1, 0))(t)
	s.Actors.Root.Stop(first)
	locktest.Await(t, "the stop", stopping)
	second := newLife()
	s.SendAs(second.spawn(t, s), &messages.Acquire{Lock: k.Message()})
	locktest.Await(t, "the grant", second.answers)
	close(mayAsk)
	redistest.Eventually(t, "what needs no owner to be carried out", func() bool {
		return locktest.Must(s.Semaphore(k.LockName+" permits").Available(t.Context()))(t) == 2
	})
	if _, err := s.Lock(k.LockName).TryAcquire(locktest.Within(t)); !errors.Is(err, lockkeeper.ErrHeld) {
		t.Errorf("the first has released the lock of the second: %v", err)
	}
}
