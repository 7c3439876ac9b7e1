package lockkeeper_test

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
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// callsAreRefused checks that every call ends at once, whether its context can end or not.
func callsAreRefused(t *testing.T, s *site, k key) {
	t.Helper()
	short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	for _, ctx := range []context.Context{short, context.Background()} {
		lock := s.Lock(k.lock)
		for what, call := range map[string]func() error{
			"Acquire":      func() error { _, err := lock.Acquire(ctx); return err },
			"TryAcquire":   func() error { _, err := lock.TryAcquire(ctx); return err },
			"Inspect":      func() error { _, err := lock.Inspect(ctx); return err },
			"ForceRelease": func() error { _, err := lock.ForceRelease(ctx); return err },
			"a MultiLock": func() error {
				_, err := lockkeeper.MultiLock(lock, s.FencedLock(k.lock+" fenced")).Acquire(ctx)
				return err
			},
		} {
			isClosed(t, limited(t, what, call))
		}
	}
}

// Close leaves nothing of the system behind in the actor system.
func TestCloseStopsTheGuardian(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	release(t, s.acquire(t, k))
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() {
			if err := closeIn(s, redistest.Limit); err != nil {
				t.Error(err)
			}
		})
	}
	closing.Wait()
	if _, there := s.actors.ProcessRegistry.Get(s.Guardian()); there {
		t.Error("the guardian outlives its system")
	}
	callsAreRefused(t, s, k)
	ask[*actor.DeadLetterResponse](t, s.probe(t), &messages.Acquire{Lock: k.message()})
	s.actors.Root.Stop(s.Guardian())
	callsAreRefused(t, s, k)
	if lockkeeper.From(s.actors) != s.System {
		t.Error("the actor system has forgotten its Lockkeeper")
	}
	if err := closeIn(s, redistest.Limit); err != nil {
		t.Error(err)
	}
}

// A lock over several systems does not wait for one that is closed.
func TestSeveralSystemsAndOneIsClosed(t *testing.T) {
	servers := []*redistest.Server{redistest.Shared(t), redistest.Start(t), redistest.Start(t)}
	var sites []*site
	for _, server := range servers {
		sites = append(sites, open(t, server.URL(), quick))
	}
	k := newKey(t, servers[0])
	red, err := lockkeeper.RedLock(sites[0].System, sites[1].System, sites[2].System)
	if err != nil {
		t.Fatal(err)
	}
	multi := lockkeeper.MultiLock(sites[0].Lock(k.lock), sites[2].Lock(k.lock))
	if err := closeIn(sites[2], redistest.Limit); err != nil {
		t.Fatal(err)
	}
	for what, lock := range map[string]*lockkeeper.Lock{"the MultiLock": multi, "the RedLock": red.Lock(k.lock + " red")} {
		limited(t, what, func() bool {
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
	s := open(t, server.URL(), lockkeeper.Config{Idle: 10 * time.Millisecond})
	s.lame = true
	keys := []key{newKey(t, server), newKey(t, server), newKey(t, server)}
	held := guards(t, s, server)
	var work sync.WaitGroup
	var grants atomic.Int64
	for i := range 16 {
		work.Go(func() {
			for n := i; ; n++ {
				hold, err := s.Lock(keys[n%len(keys)].lock).Acquire(context.Background())
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
		p := s.probe(t)
		p.notice = func(m any) bool { _, lost := m.(*messages.LeaseLost); return !lost }
		work.Go(func() {
			for n := i; ; n++ {
				p.send(&messages.Acquire{Lock: keys[n%len(keys)].message()})
				granted, ok := (<-p.mail).(*messages.Acquired)
				if !ok {
					return
				}
				p.send(&messages.Release{Lock: granted.Lock, HoldId: granted.HoldId})
				<-p.mail
			}
		})
	}
	redistest.Eventually(t, "some traffic", func() bool { return grants.Load() > 500 })
	s.actors.Root.Stop(s.Guardian())
	limited(t, "everybody to be answered", func() bool { work.Wait(); return true })
	for _, g := range held {
		if lost := g.awaitLoss(t); lost.reason != messages.Reason_REASON_CLOSED {
			t.Errorf("%s: lost because of %v", g.how, lost.reason)
		}
	}
	redistest.Eventually(t, "the keys to be gone", func() bool { return len(server.Keys(t, "*")) == 0 })
	callsAreRefused(t, s, keys[0])
	limited(t, "Close", func() error { return closeIn(s, time.Minute) })
	callsAreRefused(t, s, keys[0])
}

// Whoever asks for what the guardian does not know is told so.
func TestUnknownMessageIsAnswered(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	p := s.probe(t)
	for _, nonsense := range []any{"text", 7, struct{}{}, &messages.Acquired{}, &actor.Failure{}} {
		failed := ask[*messages.Failed](t, p, nonsense)
		if failed.Reason != messages.Reason_REASON_INVALID {
			t.Errorf("answered %v", failed)
		}
		says(t, failed.Detail, "guardian")
		s.actors.Root.Send(s.Guardian(), nonsense) // and nobody to answer to
	}
	s.passes(t, k)
}
