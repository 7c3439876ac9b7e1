package faults_test

// What comes after a system, or its guardian, has stopped.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// callsAreRefused checks that every call ends at once, whether its context can end or not.
func callsAreRefused(t *testing.T, s *locktest.Site, k locktest.Key) {
	t.Helper()
	short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	for _, ctx := range []context.Context{short, context.Background()} {
		lock := s.Lock(k.LockName)
		for what, call := range map[string]func() error{
			"Acquire":      func() error { _, err := lock.Acquire(ctx); return err },
			"TryAcquire":   func() error { _, err := lock.TryAcquire(ctx); return err },
			"Inspect":      func() error { _, err := lock.Inspect(ctx); return err },
			"ForceRelease": func() error { _, err := lock.ForceRelease(ctx); return err },
			"a MultiLock": func() error {
				_, err := lockkeeper.MultiLock(lock, s.FencedLock(k.LockName+" fenced")).Acquire(ctx)
				return err
			},
		} {
			isClosed(t, locktest.Limited(t, what, call))
		}
	}
}

// Close leaves nothing of the system behind in the actor system.
func TestCloseStopsTheGuardian(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	locktest.Release(t, s.Acquire(t, k))
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() {
			if err := closeIn(s, redistest.Limit); err != nil {
				t.Error(err)
			}
		})
	}
	closing.Wait()
	if _, there := s.Actors.ProcessRegistry.Get(s.Guardian()); there {
		t.Error("the guardian outlives its system")
	}
	callsAreRefused(t, s, k)
	locktest.Ask[*actor.DeadLetterResponse](t, s.Probe(t), &messages.Acquire{Lock: k.Message()})
	s.Actors.Root.Stop(s.Guardian())
	callsAreRefused(t, s, k)
	if lockkeeper.From(s.Actors) != s.System {
		t.Error("the actor system has forgotten its Lockkeeper")
	}
	if err := closeIn(s, redistest.Limit); err != nil {
		t.Error(err)
	}
}

// A lock over several systems does not wait for one that is closed.
func TestSeveralSystemsAndOneIsClosed(t *testing.T) {
	servers := []*redistest.Server{redistest.Shared(t), redistest.Start(t), redistest.Start(t)}
	var sites []*locktest.Site
	for _, server := range servers {
		sites = append(sites, locktest.Open(t, server.URL(), quick))
	}
	k := locktest.NewKey(t, servers[0])
	red, err := lockkeeper.RedLock(sites[0].System, sites[1].System, sites[2].System)
	if err != nil {
		t.Fatal(err)
	}
	multi := lockkeeper.MultiLock(sites[0].Lock(k.LockName), sites[2].Lock(k.LockName))
	if err := closeIn(sites[2], redistest.Limit); err != nil {
		t.Fatal(err)
	}
	for what, lock := range map[string]*lockkeeper.Lock{"the MultiLock": multi, "the RedLock": red.Lock(k.LockName + " red")} {
		locktest.Limited(t, what, func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			if hold, err := lock.Acquire(ctx); err == nil {
				_ = hold.Release(ctx)
			}
			return true
		})
	}
}

// Whoever stops the guardian ends the system: everybody is answered and told.
func TestGuardianStoppedFromOutside(t *testing.T) {
	server := redistest.Start(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{Idle: 10 * time.Millisecond})
	s.Lame = true
	keys := []locktest.Key{locktest.NewKey(t, server), locktest.NewKey(t, server), locktest.NewKey(t, server)}
	held := locktest.Guards(t, s, server)
	var work sync.WaitGroup
	var grants atomic.Int64
	for i := range 16 {
		work.Go(func() {
			for n := i; ; n++ {
				hold, err := s.Lock(keys[n%len(keys)].LockName).Acquire(context.Background())
				if err != nil {
					isClosed(t, err)
					return
				}
				grants.Add(1)
				err = hold.Release(context.Background())
				if err != nil && !errors.Is(err, lockkeeper.ErrClosed) && !errors.Is(err, lockkeeper.ErrLost) {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	for i := range 8 {
		p := s.Probe(t)
		p.Notice = func(m any) bool { _, lost := m.(*messages.LeaseLost); return !lost }
		work.Go(func() {
			for n := i; ; n++ {
				p.Send(&messages.Acquire{Lock: keys[n%len(keys)].Message()})
				granted, ok := (<-p.Mail).(*messages.Acquired)
				if !ok {
					return
				}
				p.Send(&messages.Release{Lock: granted.Lock, HoldId: granted.HoldId})
				<-p.Mail
			}
		})
	}
	redistest.Eventually(t, "some traffic", func() bool { return grants.Load() > 500 })
	s.Actors.Root.Stop(s.Guardian())
	locktest.Limited(t, "everybody to be answered", func() bool { work.Wait(); return true })
	for _, g := range held {
		if lost := g.AwaitLoss(t); lost.Reason != messages.Reason_REASON_CLOSED {
			t.Errorf("%s: lost because of %v", g.How, lost.Reason)
		}
	}
	redistest.Eventually(t, "the keys to be gone", func() bool { return len(server.Keys(t, "*")) == 0 })
	callsAreRefused(t, s, keys[0])
	locktest.Limited(t, "Close", func() error { return closeIn(s, time.Minute) })
	callsAreRefused(t, s, keys[0])
}

// Whoever asks for what the guardian does not know is told so.
func TestUnknownMessageIsAnswered(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	p := s.Probe(t)
	for _, nonsense := range []any{"text", 7, struct{}{}, &messages.Acquired{}, &actor.Failure{}} {
		failed := locktest.Ask[*messages.Failed](t, p, nonsense)
		if failed.Reason != messages.Reason_REASON_INVALID {
			t.Errorf("answered %v", failed)
		}
		locktest.Says(t, failed.Detail, "guardian")
		s.Actors.Root.Send(s.Guardian(), nonsense) // and nobody to answer to
	}
	s.Passes(t, k)
}

// A lock actor that somebody stops while it crashes still answers what is in its mailbox.
func TestLockActorStoppedInACrash(t *testing.T) {
	t.Run("requests behind the crash", func(t *testing.T) {
		var s *locktest.Site
		var p *locktest.Probe
		k := locktest.NewKey(t, redistest.Shared(t))
		first := locktest.Once("*messages.Inspect")
		s = locktest.Open(t, k.Server.URL(), lockkeeper.Config{}, func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				if first(e.Message) {
					for range 3 {
						s.Actors.Root.RequestWithCustomSender(c.Self(), &messages.Acquire{Lock: k.Message(), Owner: p.Pid}, p.Pid)
					}
					s.Actors.Root.Stop(c.Self())
					panic("while it is stopped")
				}
				next(c, e)
			}
		})
		p = s.Probe(t)
		p.Send(&messages.Inspect{Lock: k.Message()})
		answers := map[string]int{}
		for range 4 { // that of the crash is the guardian's: it may come at any time
			switch m := locktest.Next[any](t, p).(type) {
			case *messages.Failed:
				answers[m.Reason.String()]++
			case *messages.NotAcquired:
				answers[m.Reason.String()]++
			default:
				t.Errorf("answered %v", m)
			}
		}
		if answers["REASON_CRASHED"] != 1 || answers["REASON_CLOSED"] != 3 {
			t.Errorf("answered %v", answers)
		}
	})
	t.Run("a release that comes again", func(t *testing.T) {
		var s *locktest.Site
		k := locktest.NewKey(t, redistest.Shared(t))
		crash, restart := locktest.Once("*messages.Release"), locktest.Once("*actor.Restarting")
		s = locktest.Open(t, k.Server.URL(), lockkeeper.Config{}, func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				if crash(e.Message) {
					panic("over the release")
				}
				if restart(e.Message) {
					s.Actors.Root.Stop(c.Self())
				}
				next(c, e)
			}
		})
		p := s.Probe(t)
		p.Notice = func(m any) bool { _, lost := m.(*messages.LeaseLost); return !lost }
		granted := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message()})
		refused := locktest.Ask[*messages.NotReleased](t, p, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
		if refused.Reason != messages.Reason_REASON_CLOSED {
			t.Errorf("answered %v", refused)
		}
		k.AwaitFree(t)
	})
}
