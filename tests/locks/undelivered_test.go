package locks_test

// Answers that do not reach the requester, copies of answers, and requests without a sender.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A copy of an answer does not affect the hold, wherever it ends up.
func TestUndelivered_CopyOfAGrantReleasesNothing(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	p, worker := s.Probe(t), s.Probe(t)
	granted := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message()})
	worker.Die()
	s.Actors.Root.Send(worker.Pid, granted)
	// The guardian handles this after all consequences of the dead letter.
	if status := locktest.Ask[*messages.Status](t, p, &messages.Inspect{Lock: k.Message()}); !status.HeldHere {
		t.Error("a dead letter has released the hold")
	}
	k.HeldBy(t, s, "1")
	locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
	k.IsFree(t)
}

// A grant whose requester has gone is given back; the owner's other holds stay.
func TestUndelivered_GrantIsGivenBack(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	owner := s.Probe(t)
	for _, acquire := range []*messages.Acquire{
		{Owner: owner.Pid}, {MaxHold: durationpb.New(time.Minute)}, {Lease: durationpb.New(time.Minute)},
	} {
		acquire.Lock = k.Message()
		hold := s.Acquire(t, k)
		locktest.TimedOutFuture(t, s, acquire)
		s.AwaitWaiters(t, k, 1)
		locktest.Release(t, hold)
		k.AwaitFree(t)
		s.ExpectGranted(t, k)
	}

	// After the owner's own request it is a re-entry: only that is given back.
	hold := s.Acquire(t, k)
	owner.Send(&messages.Acquire{Lock: k.Message()})
	s.AwaitWaiters(t, k, 1)
	locktest.TimedOutFuture(t, s, &messages.Acquire{Lock: k.Message(), Owner: owner.Pid})
	s.AwaitWaiters(t, k, 2)
	locktest.Release(t, hold)
	granted := locktest.Next[*messages.Acquired](t, owner)
	redistest.Eventually(t, "the end of the re-entry", func() bool {
		status := s.Inspect(t, k)
		return status.HeldHere && status.Waiters == 0 && status.HoldCount == 1
	})
	if released := locktest.Ask[*messages.Released](t, owner, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId}); released.HoldCount != 0 {
		t.Errorf("after the only hold: %v", released)
	}
	k.IsFree(t)
}

// A grant can reach a future that has timed out just then: its caller has ErrTimeout, although the message was
// delivered. In this test such a future stays in the registry.
func TestUndelivered_GrantToATimedOutFutureIsGivenBack(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	owner, registry := s.Probe(t), s.Actors.ProcessRegistry
	future := actor.NewFuture(s.Actors, 200*time.Millisecond)
	process, there := registry.GetLocal(future.PID().Id)
	if !there {
		t.Fatal("the future has timed out before it was found")
	}
	if err := future.Wait(); !errors.Is(err, actor.ErrTimeout) {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the future to be found again", func() bool {
		_, added := registry.Add(process, future.PID().Id)
		return added
	})
	t.Cleanup(func() { registry.Remove(future.PID()) })
	hold := s.Acquire(t, k)
	s.SendAs(future.PID(), &messages.Acquire{Lock: k.Message(), Owner: owner.Pid})
	s.AwaitWaiters(t, k, 1)
	locktest.Release(t, hold)
	s.ExpectGranted(t, k)

	// A future that has not timed out keeps its grant.
	granted := locktest.Future[*messages.Acquired](t, s, &messages.Acquire{Lock: k.Message(), Owner: owner.Pid})
	locktest.Ask[*messages.Released](t, owner, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
}

// The owner that an Acquire without a sender names gets the answer, also the refusal of a wrong lock.
func TestUndelivered_OwnerIsAnsweredWithoutASender(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	p := s.Probe(t)
	for _, wrong := range []*messages.Acquire{
		{}, {Lock: &messages.Lock{}}, {Lock: &messages.Lock{Name: k.LockName, Kind: 99}}, {Lock: &messages.Lock{Kind: messages.Kind_KIND_MULTI}},
		{Lock: k.Message(), Lease: durationpb.New(1)},
	} {
		wrong.Owner = p.Pid
		s.Actors.Root.Send(s.Guardian(), wrong)
		if refused := locktest.Next[*messages.NotAcquired](t, p); refused.Reason != messages.Reason_REASON_INVALID {
			t.Errorf("%v: refused with %v", wrong, refused)
		}
	}
	s.Actors.Root.Send(s.Guardian(), &messages.Acquire{Lock: k.Message(), Owner: p.Pid})
	locktest.Next[*messages.Acquired](t, p)
}

// asked is a process that does something with each message, on the goroutine of the sender.
type asked func(sender *actor.PID)

func (a asked) SendUserMessage(_ *actor.PID, m any) { a(actor.UnwrapEnvelopeSender(m)) }
func (asked) SendSystemMessage(_ *actor.PID, _ any) {}
func (asked) Stop(*actor.PID)                       {}

// What is granted to an Ask whose context has ended is given back. In this test such an Ask stays in the registry. An
// answer that comes together with the end of the context is returned.
func TestUndelivered_GrantToAnAskThatHasEndedIsGivenBack(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	owner, registry := s.Probe(t), s.Actors.ProcessRegistry
	ask := func(ctx context.Context, does asked) (any, error) {
		pid, _ := registry.Add(does, "asked"+registry.NextId())
		defer registry.Remove(pid)
		return lockkeeper.Ask(ctx, s.Actors.Root, pid, "work")
	}

	ctx, cancel := context.WithCancel(t.Context())
	var self *actor.PID
	var process actor.Process
	_, err := ask(ctx, func(sender *actor.PID) {
		self = sender
		process, _ = registry.Get(sender)
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	registry.Add(process, self.Id)
	t.Cleanup(func() { registry.Remove(self) })
	hold := s.Acquire(t, k)
	s.SendAs(self, &messages.Acquire{Lock: k.Message(), Owner: owner.Pid})
	s.AwaitWaiters(t, k, 1)
	locktest.Release(t, hold)
	s.ExpectGranted(t, k)

	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		answer, err := ask(ctx, func(sender *actor.PID) {
			cancel()
			s.Actors.Root.Send(sender, "done")
		})
		if answer != "done" || err != nil {
			t.Fatalf("%v, %v", answer, err)
		}
	}
}

// A subscriber of the host's to the event stream runs on the goroutine that makes a dead letter; if it blocks, no
// lock may wait for it.
func TestEventStream_BlockedSubscriberDelaysNoLock(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	goOn := make(chan struct{})
	subscription := s.Actors.EventStream.Subscribe(func(event any) {
		if _, ok := event.(*actor.DeadLetterEvent); ok {
			<-goOn
		}
	})
	t.Cleanup(func() { close(goOn); s.Actors.EventStream.Unsubscribe(subscription) })
	hold := s.Acquire(t, k)
	locktest.TimedOutFuture(t, s, &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(time.Minute)})
	s.AwaitWaiters(t, k, 1)
	next := s.AcquireSoon(t, k)
	s.AwaitWaiters(t, k, 2)
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, next).Hold)
}

// A hold without an owner must end by itself, since no death ends it.
func TestAcquire_WithoutAnOwnerNeedsAnEnd(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	refused := locktest.Future[*messages.NotAcquired](t, s, &messages.Acquire{Lock: k.Message(), Wait: durationpb.New(0)})
	if refused.Reason != invalid {
		t.Fatalf("answered %v", refused)
	}
	locktest.ExpectWords(t, refused.Detail, "owner", "lease", "max_hold")
	k.IsFree(t)
	for _, acquire := range []*messages.Acquire{
		{Lease: durationpb.New(100 * time.Millisecond)}, {MaxHold: durationpb.New(100 * time.Millisecond)},
	} {
		acquire.Lock = k.Message()
		var answer any
		redistest.Eventually(t, "an answer of Redis before the end of the lease", func() bool {
			answer = locktest.Future[any](t, s, acquire)
			late, is := answer.(*messages.NotAcquired)
			return !is || late.Reason != messages.Reason_REASON_UNAVAILABLE
		})
		if granted, is := answer.(*messages.Acquired); !is || granted.Owner != nil ||
			granted.HoldCount != 1 || granted.Validity.AsDuration() <= 0 {
			t.Errorf("answered %T{%v}", answer, answer)
		}
		k.AwaitFree(t)
	}
	granted := locktest.Future[*messages.Acquired](t, s, &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(time.Minute)})
	locktest.Future[*messages.Released](t, s, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
	k.IsFree(t)
}

// A release takes effect although its caller has gone and the lock actor crashes on it.
func TestRelease_SurvivesACrash(t *testing.T) {
	t.Parallel()
	nothing := func() {}
	for what, test := range map[string]struct {
		crash string
		// begin returns the steps while the actor is stalled, and after the crash.
		begin func(t *testing.T, s *locktest.Site, k locktest.Key) (meanwhile, after func())
	}{
		"a goroutine's": {"*request.Call", func(t *testing.T, s *locktest.Site, k locktest.Key) (meanwhile, after func()) {
			hold := s.Acquire(t, k)
			return func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				if err := hold.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("released: %v", err)
				}
			}, nothing
		}},
		"a future's": {"*messages.Release", func(t *testing.T, s *locktest.Site, k locktest.Key) (meanwhile, after func()) {
			granted := locktest.Ask[*messages.Acquired](t, s.Probe(t), &messages.Acquire{Lock: k.Message()})
			return func() { locktest.TimedOutFuture(t, s, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId}) }, nothing
		}},
		"of an Acquire that was given up": {"*request.Call", func(t *testing.T, s *locktest.Site, k locktest.Key) (meanwhile, after func()) {
			hold := s.Acquire(t, k)
			ctx, cancel := context.WithCancel(t.Context())
			given := locktest.AcquireSoon(ctx, s.Lock(k.LockName))
			s.AwaitWaiters(t, k, 1)
			return func() {
				cancel()
				if g := locktest.Await(t, "the end of the Acquire", given); g.Err == nil {
					t.Error("granted")
				}
			}, func() { locktest.Release(t, hold) }
		}},
	} {
		t.Run(what, func(t *testing.T) {
			faults := &locktest.FaultInjector{}
			s, k := locktest.New(t, lockkeeper.Config{}, faults.Middleware)
			meanwhile, after := test.begin(t, s, k)
			stalled, goOn := faults.Stall("*messages.Cancel")
			s.Probe(t).Send(&messages.Cancel{Lock: k.Message()})
			locktest.Await(t, "the actor to be stalled", stalled)
			meanwhile()
			faults.Hit(locktest.Once(test.crash), nil)
			goOn()
			redistest.Eventually(t, "the crash", func() bool { return faults.Count.Load() == 1 })
			after()
			k.AwaitFree(t)
			s.ExpectGranted(t, k)
		})
	}
}
