package lockkeeper_test

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
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A copy of an answer says nothing about the hold, wherever it ends up.
func TestCopyOfAGrantReleasesNothing(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	p, worker := s.probe(t), s.probe(t)
	granted := ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.message()})
	worker.die()
	s.actors.Root.Send(worker.pid, granted)
	// The guardian takes this after whatever the dead letter made it do.
	if status := ask[*messages.Status](t, p, &messages.Inspect{Lock: k.message()}); !status.HeldHere {
		t.Error("a dead letter has released the hold")
	}
	k.heldBy(t, s, "1")
	ask[*messages.Released](t, p, &messages.Release{Lock: k.message(), HoldId: granted.HoldId})
	k.isFree(t)
}

// A grant whose requester has gone is given back, and nothing else of its owner's.
func TestGrantForARequesterThatHasGone(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	owner := s.probe(t)
	ask := func() {
		t.Helper()
		hold := s.acquire(t, k)
		future := s.actors.Root.RequestFuture(s.Guardian(), &messages.Acquire{Lock: k.message(), Owner: owner.pid}, 10*time.Millisecond)
		if m, err := future.Result(); err == nil {
			t.Fatalf("answered %v", m)
		}
		s.awaitWaiters(t, k, 1)
		release(t, hold)
	}
	ask()
	k.awaitFree(t)
	s.passes(t, k)

	// Behind the owner's own request it is a re-entry: only that is given back.
	hold := s.acquire(t, k)
	owner.send(&messages.Acquire{Lock: k.message()})
	s.awaitWaiters(t, k, 1)
	future := s.actors.Root.RequestFuture(s.Guardian(), &messages.Acquire{Lock: k.message(), Owner: owner.pid}, 10*time.Millisecond)
	if m, err := future.Result(); err == nil {
		t.Fatalf("answered %v", m)
	}
	s.awaitWaiters(t, k, 2)
	release(t, hold)
	granted := next[*messages.Acquired](t, owner)
	redistest.Eventually(t, "the re-entry to come and go", func() bool {
		status := s.inspect(t, k)
		return status.HeldHere && status.Waiters == 0 && status.HoldCount == 1
	})
	owner.send(&messages.Release{Lock: k.message(), HoldId: granted.HoldId})
	if released := next[*messages.Released](t, owner); released.HoldCount != 0 {
		t.Errorf("after the only hold: %v", released)
	}
	k.isFree(t)
}

// A subscriber of the host's to the event stream runs in whoever makes a dead letter; if
// it blocks, no lock may wait for it.
func TestSubscriberThatBlocksHoldsUpNoLock(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	goOn := make(chan struct{})
	subscription := s.actors.EventStream.Subscribe(func(event any) {
		if _, ok := event.(*actor.DeadLetterEvent); ok {
			<-goOn
		}
	})
	t.Cleanup(func() { close(goOn); s.actors.EventStream.Unsubscribe(subscription) })
	hold := s.acquire(t, k)
	future := s.actors.Root.RequestFuture(s.Guardian(), &messages.Acquire{Lock: k.message(), Lease: durationpb.New(time.Minute)}, 10*time.Millisecond)
	if m, err := future.Result(); err == nil {
		t.Fatalf("answered %v", m)
	}
	s.awaitWaiters(t, k, 1)
	dead := s.probe(t)
	granted := ask[*messages.Acquired](t, dead, &messages.Acquire{Lock: &messages.Lock{Name: k.lock + " of the dead"}})
	dead.die()
	s.actors.Root.Send(s.Guardian(), &messages.Release{Lock: granted.Lock, HoldId: granted.HoldId})
	next := s.acquireSoon(t, k)
	s.awaitWaiters(t, k, 2)
	release(t, hold)
	release(t, got(t, next).hold)
}

// A hold that nobody owns must end by itself, since nobody's death ends it.
func TestAcquireWithoutAnOwnerNeedsAnEnd(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	request := func(m any) any {
		t.Helper()
		answer, err := s.actors.Root.RequestFuture(s.Guardian(), m, redistest.Limit).Result()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	refused, ok := request(&messages.Acquire{Lock: k.message(), Wait: durationpb.New(0)}).(*messages.NotAcquired)
	if !ok || refused.Reason != messages.Reason_REASON_INVALID {
		t.Fatalf("answered %v", refused)
	}
	says(t, refused.Detail, "owner", "lease", "max_hold")
	k.isFree(t)
	for _, acquire := range []*messages.Acquire{
		{Lease: durationpb.New(100 * time.Millisecond)}, {MaxHold: durationpb.New(100 * time.Millisecond)},
	} {
		acquire.Lock = k.message()
		if _, ok := request(acquire).(*messages.Acquired); !ok {
			t.Fatalf("%v was not granted", acquire)
		}
		k.awaitFree(t)
	}
}

// A release goes its way though its caller has gone and the lock actor crashes over it.
func TestReleaseSurvivesACrash(t *testing.T) {
	patience := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(t.Context(), 10*time.Millisecond)
	}
	for what, leave := range map[string]func(t *testing.T, s *site, tr *trap, k key){
		"a goroutine's": func(t *testing.T, s *site, tr *trap, k key) {
			hold := s.acquire(t, k)
			tr.spring(t, s, k, "*actors.Call", func() {
				ctx, cancel := patience()
				defer cancel()
				if err := hold.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("released: %v", err)
				}
			})
		},
		"a future's": func(t *testing.T, s *site, tr *trap, k key) {
			owner := s.probe(t)
			granted := ask[*messages.Acquired](t, owner, &messages.Acquire{Lock: k.message()})
			tr.spring(t, s, k, "*messages.Release", func() {
				release := &messages.Release{Lock: k.message(), HoldId: granted.HoldId}
				if m, err := s.actors.Root.RequestFuture(s.Guardian(), release, 10*time.Millisecond).Result(); err == nil {
					t.Errorf("answered %v", m)
				}
			})
		},
		"of an Acquire that was given up": func(t *testing.T, s *site, tr *trap, k key) {
			hold := s.acquire(t, k)
			ctx, cancel := context.WithCancel(t.Context())
			given := obtainSoon(ctx, s.Lock(k.lock))
			s.awaitWaiters(t, k, 1)
			tr.spring(t, s, k, "*actors.Call", func() {
				cancel()
				if g := await(t, "the end of the Acquire", given); g.err == nil {
					t.Error("granted")
				}
			})
			release(t, hold)
		},
	} {
		t.Run(what, func(t *testing.T) {
			k, tr := newKey(t, redistest.Shared(t)), &trap{}
			s := open(t, k.server.URL(), lockkeeper.Config{}, tr.middleware)
			leave(t, s, tr, k)
			k.awaitFree(t)
			s.passes(t, k)
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
func (tr *trap) spring(t *testing.T, s *site, k key, message string, meanwhile func()) {
	t.Helper()
	crashes := tr.crashes.Load()
	tr.mu.Lock()
	tr.stop, tr.stuck, tr.goOn = true, make(chan struct{}), make(chan struct{})
	tr.mu.Unlock()
	s.probe(t).send(&messages.Cancel{Lock: k.message()})
	await(t, "the actor to be stuck", tr.stuck)
	defer func() {
		tr.mu.Lock()
		tr.crash = once(message)
		tr.mu.Unlock()
		close(tr.goOn)
		redistest.Eventually(t, "the crash", func() bool { return tr.crashes.Load() > crashes })
	}()
	meanwhile()
}
