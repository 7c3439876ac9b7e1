package lockkeeper_test

// The supervision tree from outside: the effects for users when actors crash or die.

import (
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func acquire(t *testing.T, p *locktest.Probe, k locktest.Key) {
	t.Helper()
	locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message()})
}

func release(t *testing.T, p *locktest.Probe, k locktest.Key) {
	t.Helper()
	locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: k.Message()})
}

// spared names a lock for which no fault is injected.
func spared(k locktest.Key) locktest.Key {
	return locktest.KeyOf(k.Server, k.LockName+" spared")
}

// A restart keeps the PID, and so the owner's holds and requests: both can be used after it.
func TestOwner_RestartIsNotItsDeath(t *testing.T) {
	t.Parallel()
	s, held := locktest.New(t, lockkeeper.Config{})
	wanted, owner, other := locktest.NewKey(t, held.Server), begin(s), s.Probe(t)
	owner.ask(held)
	locktest.Await(t, "the grant", owner.granted)
	acquire(t, other, wanted)
	owner.ask(wanted)
	s.AwaitWaiters(t, wanted, 1)
	s.Actors.Root.Send(owner.pid, func(actor.Context) { panic("crash") })
	owner.ask(held)
	if again := locktest.Await(t, "the grant", owner.granted); again.HoldCount != 2 {
		t.Errorf("after the restart the owner holds the lock %d times", again.HoldCount)
	}
	release(t, other, wanted)
	locktest.Await(t, "the grant", owner.granted)
	s.Actors.Root.Stop(owner.pid)
	held.AwaitFree(t)
	wanted.AwaitFree(t)
}

func TestLockActor_IsGivenUpAfterEndlessCrashes(t *testing.T) {
	t.Parallel()
	for over, hits := range map[string]func(m any) bool{
		"every message": func(any) bool { return true },
		"every request": func(m any) bool { return faultinject.TypeOf(m) == "*messages.Release" },
	} {
		t.Run("over "+over, func(t *testing.T) {
			faults, s, k := locktest.NewFaultInjector(t, lockkeeper.Config{})
			holder, sibling, other := s.Probe(t), s.Probe(t), s.Probe(t)
			acquire(t, sibling, spared(k))
			acquire(t, holder, k)
			waiter := s.Probe(t)
			waiter.Send(&messages.Acquire{Lock: k.Message()})
			s.AwaitWaiters(t, k, 1)
			faults.Hit(hits, nil)
			for range 20 {
				other.Send(&messages.Release{Lock: k.Message(), HoldId: "z"})
			}
			if lost := locktest.Next[*messages.LeaseLost](t, holder); lost.Reason != messages.Reason_REASON_CRASHED {
				t.Errorf("the holder was notified of %v", lost)
			}
			if refused := locktest.Next[*messages.NotAcquired](t, waiter); refused.Reason != messages.Reason_REASON_CRASHED {
				t.Errorf("the waiter received %v", refused)
			}
			for range 20 {
				locktest.Next[*messages.NotReleased](t, other)
			}
			k.AwaitFree(t)
			faults.Hit(nil, nil)
			acquire(t, waiter, k)
			release(t, waiter, k)
			if len(sibling.Mail) > 0 {
				t.Errorf("the sibling received %v", <-sibling.Mail)
			}
			release(t, sibling, spared(k))
		})
	}
}

func TestSubscriber_CrashCostsAtMostThePollBound(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"*actors.published", "*actors.subscribe", "*actors.confirmed", "*actors.unsubscribe"} {
		t.Run(message, func(t *testing.T) {
			faults, s, k := locktest.NewFaultInjector(t, lockkeeper.Config{Poll: 300 * time.Millisecond})
			k.TakeAs(t, locktest.Redisson, 10*time.Minute)
			faults.Hit(locktest.Once(message), nil)
			granted := s.AcquireSoon(t, k)
			s.AwaitWaiters(t, k, 1)
			k.AwaitSubscribers(t, 1)
			k.Unlock(t)
			locktest.Release(t, locktest.Got(t, granted).Hold)
			redistest.Eventually(t, "the crash", func() bool { return faults.Count.Load() == 1 })
			k.AwaitSubscribers(t, 0)
		})
	}
}

// ownerActor is an actor of a user's that acquires locks, and runs the functions that it is sent.
type ownerActor struct {
	pid     *actor.PID
	ask     func(k locktest.Key)
	granted chan *messages.Acquired
}

func begin(s *locktest.Site, strategy ...actor.SupervisorStrategy) *ownerActor {
	root, granted := s.Actors.Root, make(chan *messages.Acquired, 10)
	for _, each := range strategy {
		root = root.Copy().WithGuardian(each)
	}
	pid := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case func(actor.Context):
			m(ctx)
		case *messages.Acquired:
			granted <- m
		}
	}))
	return &ownerActor{pid, func(k locktest.Key) {
		root.Send(pid, func(ctx actor.Context) { ctx.Request(s.Guardian(), &messages.Acquire{Lock: k.Message()}) })
	}, granted}
}

func TestHolder_DeathReleasesAtOnce(t *testing.T) {
	t.Parallel()
	for name, die := range map[string]func(root *actor.RootContext, pid *actor.PID){
		"stopped":  func(root *actor.RootContext, pid *actor.PID) { root.Stop(pid) },
		"poisoned": func(root *actor.RootContext, pid *actor.PID) { root.Poison(pid) },
		"panicking out": func(root *actor.RootContext, pid *actor.PID) {
			root.Send(pid, func(actor.Context) { panic("the end") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := locktest.New(t, lockkeeper.Config{})
			stop := actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
			holder, next := begin(s, stop), begin(s, stop)
			for range 2 { // held twice: the death ends both
				holder.ask(k)
				locktest.Await(t, "the grant", holder.granted)
			}
			next.ask(k)
			s.AwaitWaiters(t, k, 1)
			die(s.Actors.Root, holder.pid)
			if got := locktest.Await(t, "the grant", next.granted); got.HoldCount != 1 {
				t.Errorf("granted %d times", got.HoldCount)
			}
			k.HeldBy(t, s, "1")
			die(s.Actors.Root, next.pid)
			k.AwaitFree(t)
		})
	}
}

func TestOwner_WithTheSameNameIsAnotherOwner(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	granted, ids := make(chan *messages.Acquired, 10), map[string]bool{}
	props := actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(s.Guardian(), &messages.Acquire{Lock: k.Message()})
		case *messages.Acquired:
			granted <- m
		}
	})
	for range 20 {
		pid, err := s.Actors.Root.SpawnNamed(props, "phoenix")
		if err != nil {
			t.Fatal(err)
		}
		m := locktest.Await(t, "the grant to a new actor", granted)
		if m.HoldCount != 1 || ids[m.HoldId] {
			t.Fatalf("a new actor has the hold of an earlier one: %v", m)
		}
		ids[m.HoldId] = true
		if err := s.Actors.Root.StopFuture(pid).Wait(); err != nil {
			t.Fatal(err)
		}
	}
	k.AwaitFree(t)
}

// A future requests the lock for another actor: the future gets the answer, and the owner the hold.
func TestOwner_NamedInARequestIsTheHolder(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	owner := s.Probe(t)
	locktest.Future[*messages.Acquired](t, s, &messages.Acquire{Lock: k.Message(), Owner: owner.Pid, Wait: durationpb.New(time.Second)})
	locktest.ForceRelease(t, s.Lock(k.LockName), true)
	if lost := locktest.Next[*messages.LeaseLost](t, owner); lost.Reason != messages.Reason_REASON_FORCED {
		t.Errorf("the owner was notified of %v", lost)
	}
}

// A future requests the lock for another actor, which dies while the request waits: the future gets an answer.
func TestOwner_DeathRefusesItsRequest(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, kind string, of locktest.Kind) {
		s, k := locktest.New(t, lockkeeper.Config{})
		message := locktest.KindMessage(kind, k.LockName)
		if kind == "multi" { // there is no message for it
			message.Kind = messages.Kind_KIND_EXPIRABLE_SEMAPHORE
			locktest.Check(t, s.ExpirableSemaphore(k.LockName).SetPermits(t.Context(), 0))
		} else {
			writer := of
			if kind == "read" {
				writer = locktest.Kinds["write"]
			}
			locktest.Acquire(t, writer(s, k.LockName))
		}
		owner := s.Probe(t)
		acquire := &messages.Acquire{Lock: message, Owner: owner.Pid, Wait: durationpb.New(time.Hour)}
		future := s.Actors.Root.RequestFuture(s.Guardian(), acquire, time.Minute)
		redistest.Eventually(t, "the request to wait", func() bool {
			waits := func(l lockkeeper.LockInfo) bool { return l.Waiters == 1 }
			all, err := s.Locks(t.Context())
			return err == nil && slices.ContainsFunc(all, waits)
		})
		owner.Die()
		answer, err := future.Result()
		if refused, is := answer.(*messages.NotAcquired); !is || refused.Reason != messages.Reason_REASON_CANCELLED {
			t.Errorf("it is answered %v, %v", answer, err)
		}
	})
}

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}
