package locks_test

// Answers that do not reach whoever asked, and copies of those that did.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A copy of an answer says nothing about the hold, wherever it ends up.
func TestCopyOfAGrantReleasesNothing(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	p, worker := s.Probe(t), s.Probe(t)
	granted := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message()})
	worker.Die()
	s.Actors.Root.Send(worker.Pid, granted)
	// The guardian takes this after whatever the dead letter made it do.
	if status := locktest.Ask[*messages.Status](t, p, &messages.Inspect{Lock: k.Message()}); !status.HeldHere {
		t.Error("a dead letter has released the hold")
	}
	k.HeldBy(t, s, "1")
	locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
	k.IsFree(t)
}

// A grant whose requester has gone is given back, and nothing else of its owner's.
func TestGrantForARequesterThatHasGone(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	owner := s.Probe(t)
	ask := func() {
		t.Helper()
		hold := s.Acquire(t, k)
		future := s.Actors.Root.RequestFuture(s.Guardian(), &messages.Acquire{Lock: k.Message(), Owner: owner.Pid}, 10*time.Millisecond)
		if m, err := future.Result(); err == nil {
			t.Fatalf("answered %v", m)
		}
		s.AwaitWaiters(t, k, 1)
		locktest.Release(t, hold)
	}
	ask()
	k.AwaitFree(t)
	s.Passes(t, k)

	// Behind the owner's own request it is a re-entry: only that is given back.
	hold := s.Acquire(t, k)
	owner.Send(&messages.Acquire{Lock: k.Message()})
	s.AwaitWaiters(t, k, 1)
	future := s.Actors.Root.RequestFuture(s.Guardian(), &messages.Acquire{Lock: k.Message(), Owner: owner.Pid}, 10*time.Millisecond)
	if m, err := future.Result(); err == nil {
		t.Fatalf("answered %v", m)
	}
	s.AwaitWaiters(t, k, 2)
	locktest.Release(t, hold)
	granted := locktest.Next[*messages.Acquired](t, owner)
	redistest.Eventually(t, "the re-entry to come and go", func() bool {
		status := s.Inspect(t, k)
		return status.HeldHere && status.Waiters == 0 && status.HoldCount == 1
	})
	owner.Send(&messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
	if released := locktest.Next[*messages.Released](t, owner); released.HoldCount != 0 {
		t.Errorf("after the only hold: %v", released)
	}
	k.IsFree(t)
}

// A grant can find a future that has timed out just then: its caller has ErrTimeout, though
// somebody took the message. Here such a future stays where it can be found.
func TestGrantToAFutureThatTimesOut(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	owner, registry := s.Probe(t), s.Actors.ProcessRegistry
	future := actor.NewFuture(s.Actors, 10*time.Millisecond)
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
	s.Actors.Root.RequestWithCustomSender(s.Guardian(), &messages.Acquire{Lock: k.Message(), Owner: owner.Pid}, future.PID())
	s.AwaitWaiters(t, k, 1)
	locktest.Release(t, hold)
	s.Passes(t, k)

	// One that has not timed out yet keeps what it is granted.
	future = actor.NewFuture(s.Actors, redistest.Limit)
	s.Actors.Root.RequestWithCustomSender(s.Guardian(), &messages.Acquire{Lock: k.Message(), Owner: owner.Pid}, future.PID())
	answer, err := future.Result()
	if err != nil {
		t.Fatal(err)
	}
	locktest.Ask[*messages.Released](t, owner, &messages.Release{Lock: k.Message(), HoldId: answer.(*messages.Acquired).HoldId})
}

// A subscriber of the host's to the event stream runs in whoever makes a dead letter; if
// it blocks, no lock may wait for it.
func TestSubscriberThatBlocksHoldsUpNoLock(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	goOn := make(chan struct{})
	subscription := s.Actors.EventStream.Subscribe(func(event any) {
		if _, ok := event.(*actor.DeadLetterEvent); ok {
			<-goOn
		}
	})
	t.Cleanup(func() { close(goOn); s.Actors.EventStream.Unsubscribe(subscription) })
	hold := s.Acquire(t, k)
	future := s.Actors.Root.RequestFuture(s.Guardian(), &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(time.Minute)}, 10*time.Millisecond)
	if m, err := future.Result(); err == nil {
		t.Fatalf("answered %v", m)
	}
	s.AwaitWaiters(t, k, 1)
	dead := s.Probe(t)
	granted := locktest.Ask[*messages.Acquired](t, dead, &messages.Acquire{Lock: &messages.Lock{Name: k.LockName + " of the dead"}})
	dead.Die()
	s.Actors.Root.Send(s.Guardian(), &messages.Release{Lock: granted.Lock, HoldId: granted.HoldId})
	next := s.AcquireSoon(t, k)
	s.AwaitWaiters(t, k, 2)
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, next).Hold)
}

// A hold that nobody owns must end by itself, since nobody's death ends it.
func TestAcquireWithoutAnOwnerNeedsAnEnd(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	request := func(m any) any {
		t.Helper()
		answer, err := s.Actors.Root.RequestFuture(s.Guardian(), m, redistest.Limit).Result()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	refused, ok := request(&messages.Acquire{Lock: k.Message(), Wait: durationpb.New(0)}).(*messages.NotAcquired)
	if !ok || refused.Reason != messages.Reason_REASON_INVALID {
		t.Fatalf("answered %v", refused)
	}
	locktest.Says(t, refused.Detail, "owner", "lease", "max_hold")
	k.IsFree(t)
	for _, acquire := range []*messages.Acquire{
		{Lease: durationpb.New(100 * time.Millisecond)}, {MaxHold: durationpb.New(100 * time.Millisecond)},
	} {
		acquire.Lock = k.Message()
		if _, ok := request(acquire).(*messages.Acquired); !ok {
			t.Fatalf("%v was not granted", acquire)
		}
		k.AwaitFree(t)
	}
}

// A release goes its way though its caller has gone and the lock actor crashes over it.
func TestReleaseSurvivesACrash(t *testing.T) {
	patience := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(t.Context(), 10*time.Millisecond)
	}
	for what, leave := range map[string]func(t *testing.T, s *locktest.Site, tr *trap, k locktest.Key){
		"a goroutine's": func(t *testing.T, s *locktest.Site, tr *trap, k locktest.Key) {
			hold := s.Acquire(t, k)
			tr.spring(t, s, k, "*actors.Call", func() {
				ctx, cancel := patience()
				defer cancel()
				if err := hold.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("released: %v", err)
				}
			})
		},
		"a future's": func(t *testing.T, s *locktest.Site, tr *trap, k locktest.Key) {
			owner := s.Probe(t)
			granted := locktest.Ask[*messages.Acquired](t, owner, &messages.Acquire{Lock: k.Message()})
			tr.spring(t, s, k, "*messages.Release", func() {
				release := &messages.Release{Lock: k.Message(), HoldId: granted.HoldId}
				if m, err := s.Actors.Root.RequestFuture(s.Guardian(), release, 10*time.Millisecond).Result(); err == nil {
					t.Errorf("answered %v", m)
				}
			})
		},
		"of an Acquire that was given up": func(t *testing.T, s *locktest.Site, tr *trap, k locktest.Key) {
			hold := s.Acquire(t, k)
			ctx, cancel := context.WithCancel(t.Context())
			given := locktest.AcquireSoon(ctx, s.Lock(k.LockName))
			s.AwaitWaiters(t, k, 1)
			tr.spring(t, s, k, "*actors.Call", func() {
				cancel()
				if g := locktest.Await(t, "the end of the Acquire", given); g.Err == nil {
					t.Error("granted")
				}
			})
			locktest.Release(t, hold)
		},
	} {
		t.Run(what, func(t *testing.T) {
			k, tr := locktest.NewKey(t, redistest.Shared(t)), &trap{}
			s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{}, tr.middleware)
			leave(t, s, tr, k)
			k.AwaitFree(t)
			s.Passes(t, k)
		})
	}
}

// trap stops a lock actor for a while, and makes it crash afterwards.
type trap struct {
	mu          sync.Mutex
	stop        bool
	crash       func(any) bool
	stuck, goOn chan struct{}
	crashes     atomic.Int64
}

func (tr *trap) middleware(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
		tr.mu.Lock()
		_, cancel := e.Message.(*messages.Cancel)
		stop := cancel && tr.stop
		tr.stop = tr.stop && !stop
		crash := tr.crash != nil && tr.crash(e.Message)
		tr.mu.Unlock()
		if stop {
			close(tr.stuck)
			<-tr.goOn
		}
		if crash {
			tr.crashes.Add(1)
			panic("the trap")
		}
		next(c, e)
	}
}

// spring stops the lock's actor while something is done, and makes it crash over the
// next message of that type.
func (tr *trap) spring(t *testing.T, s *locktest.Site, k locktest.Key, message string, meanwhile func()) {
	t.Helper()
	crashes := tr.crashes.Load()
	tr.mu.Lock()
	tr.stop, tr.stuck, tr.goOn = true, make(chan struct{}), make(chan struct{})
	tr.mu.Unlock()
	s.Probe(t).Send(&messages.Cancel{Lock: k.Message()})
	locktest.Await(t, "the actor to be stuck", tr.stuck)
	defer func() {
		tr.mu.Lock()
		tr.crash = locktest.Once(message)
		tr.mu.Unlock()
		close(tr.goOn)
		redistest.Eventually(t, "the crash", func() bool { return tr.crashes.Load() > crashes })
	}()
	meanwhile()
}
