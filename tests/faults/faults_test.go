package faults_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// quick has leases that end while a test looks on.
var quick = lockkeeper.Config{Watchdog: 2 * time.Second, CallTimeout: 300 * time.Millisecond, Poll: time.Minute}

// Redis is away, or the holder is cut off from it, for longer than the lease: the holder is
// warned and told before the key ends in Redis, and the others, who wait for the lock, get
// it when it has, not before.
func TestHolderCutOff(t *testing.T) {
	const unrenewable = "no reply to a renewal"
	for what, fault := range map[string]struct {
		begin, end func(t *testing.T, r *locktest.Remote)
	}{
		"nothing passes": {begin: func(_ *testing.T, r *locktest.Remote) { r.Proxy.Freeze(true) }},
		"refused":        {begin: func(_ *testing.T, r *locktest.Remote) { r.Proxy.Refuse(true) }},
		"no replies":     {begin: func(_ *testing.T, r *locktest.Remote) { r.Proxy.DropReplies(true) }},
		unrenewable: {begin: func(_ *testing.T, r *locktest.Remote) {
			r.Proxy.DropRepliesTo(redistest.Script(scripts.Renew.SHA), 0)
		}},
		"Redis is paused": {
			func(t *testing.T, r *locktest.Remote) { r.Server.Pause(t) },
			func(t *testing.T, r *locktest.Remote) { r.Server.Resume(t) },
		},
		"Redis is killed": {
			func(t *testing.T, r *locktest.Remote) { r.Server.Kill(t) },
			func(t *testing.T, r *locktest.Remote) { r.Server.Restart(t) },
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			r, other := locktest.Far(t, server, quick), locktest.Open(t, server.URL(), quick)
			held := locktest.Guards(t, r.Site, server)
			waiting := []<-chan locktest.Grant{held[0].Successor(t, other), held[1].Successor(t, other)}
			for _, g := range held {
				g.AwaitSubscribers(t, 1)
			}
			ends := r.Separate(t, held, func() {
				if fault.begin(t, r); what != "nothing passes" {
					r.Proxy.Freeze(false)
				}
			})
			var told []locktest.Loss
			for i, g := range held {
				told = append(told, g.LostInTime(t, ends[i], true, messages.Reason_REASON_EXPIRED))
			}
			if fault.end != nil {
				fault.end(t, r)
			}
			for i, g := range held {
				next := locktest.Got(t, waiting[i])
				if late := told[i].At.Sub(next.At); late > g.Pulse.Noise() {
					t.Errorf("%s: told %v after the next got in", g.How, late)
				}
				// Redis has renewed what counts as lost here, and can be told so.
				if idle := next.At.Sub(told[i].At); what == unrenewable && idle > quick.Watchdog/2 {
					t.Errorf("%s: the next got in %v after the loss", g.How, idle)
				}
				g.HeldBy(t, other, "1")
				defer locktest.Release(t, next.Hold)
			}
			r.Proxy.Heal()
			granted := r.AcquireSoon(t, held[0].Key)
			r.AwaitWaiters(t, held[0].Key, 1)
			for _, g := range held { // what was under way has taken nothing from them
				g.HeldBy(t, other, "1")
			}
			t.Cleanup(func() { locktest.Release(t, locktest.Got(t, granted).Hold) })
		})
	}
}

// Somebody deletes or takes the key: the next renewal finds out.
func TestKeyMeddledWith(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Watchdog: 3 * time.Second, Renewal: 100 * time.Millisecond}
	s, k := locktest.New(t, cfg)
	other := locktest.Open(t, k.Server.URL(), cfg)
	for what, test := range map[string]struct {
		meddle func(k locktest.Key)
		reason messages.Reason
		taken  bool
	}{
		"deleted": {func(k locktest.Key) { k.Do(t, "DEL", k.Name) }, messages.Reason_REASON_GONE, false},
		"taken": {func(k locktest.Key) {
			k.Atomically(t, "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], 1)", []string{k.Name}, locktest.Redisson)
		}, messages.Reason_REASON_TAKEN, true},
		"another type":     {func(k locktest.Key) { k.Do(t, "SET", k.Name, "text") }, messages.Reason_REASON_TAKEN, true},
		"forced here":      {func(k locktest.Key) { locktest.Force(t, s, k) }, messages.Reason_REASON_FORCED, false},
		"forced elsewhere": {func(k locktest.Key) { locktest.Force(t, other, k) }, messages.Reason_REASON_GONE, false},
	} {
		for _, g := range locktest.Guards(t, s, k.Server) {
			g.How += ", " + what
			end := g.Expiry(t)
			test.meddle(g.Key)
			g.LostInTime(t, end.Add(cfg.Renewal), false, test.reason)
			if test.taken {
				if !g.Exists(t) {
					t.Errorf("%s: we have deleted somebody else's key", g.How)
				}
				g.Do(t, "DEL", g.Name)
			}
			s.Passes(t, g.Key)
		}
	}
}

// A connection dies and nobody says so: the leases renewed over it move to another
// in time, though the client has a busy pipeline there.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Watchdog: 6 * time.Second, Renewal: 500 * time.Millisecond}
	r := locktest.Far(t, redistest.Start(t), cfg)
	var held []*locktest.Guard
	for range 20 {
		held = append(held, locktest.GuardByContext(t, r.Site, locktest.NewKey(t, r.Server)))
	}
	ctx, cancel := context.WithCancel(locktest.Within(t))
	var traffic sync.WaitGroup
	for range 16 {
		busy := r.Lock(locktest.NewKey(t, r.Server).LockName)
		traffic.Go(func() {
			for ctx.Err() == nil {
				if hold, err := busy.Acquire(ctx); err == nil {
					_ = hold.Release(ctx)
				}
			}
		})
	}
	r.Proxy.DropRepliesTo(redistest.Script(scripts.Renew.SHA), 1, redistest.Silent).Wait(t)
	later := time.Now().Add(cfg.Watchdog + cfg.Renewal)
	for _, g := range held {
		redistest.Eventually(t, "a renewal over another connection", func() bool { return g.Expiry(t).After(later) })
	}
	cancel()
	traffic.Wait()
	for _, g := range held {
		g.Unharmed(t)
	}
}

// What breaks connections, or makes Redis forget its scripts, harms nobody.
func TestHarmless(t *testing.T) {
	for what, disturb := range map[string]func(t *testing.T, server *redistest.Server){
		"SCRIPT FLUSH":            func(t *testing.T, server *redistest.Server) { server.ScriptFlush(t) },
		"CLIENT KILL TYPE normal": func(t *testing.T, server *redistest.Server) { server.KillClients(t, "normal") },
		"CLIENT KILL TYPE pubsub": func(t *testing.T, server *redistest.Server) { server.KillClients(t, "pubsub") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.Alone(t, lockkeeper.Config{Watchdog: 6 * time.Second, Renewal: 150 * time.Millisecond, Poll: time.Minute})
			other := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
			held := locktest.Guards(t, s, k.Server)
			waiting := []<-chan locktest.Grant{s.AcquireSoon(t, held[0].Key), other.AcquireSoon(t, held[1].Key)}
			s.AwaitWaiters(t, held[0].Key, 1)
			held[1].AwaitSubscribers(t, 1)
			for range 3 {
				old := held[0].Expiry(t)
				disturb(t, k.Server)
				redistest.Eventually(t, "a renewal", func() bool { return held[0].Expiry(t).After(old) })
			}
			redistest.Eventually(t, "the waiter to listen again", func() bool { return k.Server.Subscribers(t, held[1].Channel) == 1 })
			for i, g := range held {
				disturb(t, k.Server)
				g.Unharmed(t)
				freed := time.Now()
				next := locktest.Got(t, waiting[i])
				if wait := next.At.Sub(freed); wait > locktest.Soon {
					t.Errorf("the waiter got in after %v", wait)
				}
				disturb(t, k.Server)
				locktest.Release(t, next.Hold)
				g.IsFree(t)
			}
		})
	}
}

// The unlock was told while nobody listened: after a reconnect everybody looks again.
func TestMissedWhileDisconnected(t *testing.T) {
	t.Parallel()
	s, k := locktest.Alone(t, locktest.NoPolling)
	k.TakeAs(t, locktest.Redisson, -1)
	granted := s.AcquireSoon(t, k)
	k.AwaitListener(t)
	k.Do(t, "DEL", k.Name) // and nobody is told
	if n := k.Server.KillClients(t, "pubsub"); n != 1 {
		t.Fatalf("%d subscribers were cut off", n)
	}
	locktest.Release(t, locktest.Got(t, granted).Hold)
}

// An unlock message that gets lost costs no more than the poll bound.
func TestMissedMessage(t *testing.T) {
	t.Parallel()
	cfg := locktest.NoPolling
	cfg.Poll = 400 * time.Millisecond
	r := locktest.Far(t, redistest.Start(t), cfg)
	r.TakeAs(t, locktest.Redisson, -1)
	r.Proxy.DropMessages(true)
	granted := r.AcquireSoon(t, r.Key)
	r.AwaitListener(t)
	r.Unlock(t)
	freed := time.Now()
	g := locktest.Got(t, granted)
	if wait := g.At.Sub(freed); wait > cfg.Poll+time.Second {
		t.Errorf("let in after %v, with a poll bound of %v", wait, cfg.Poll)
	}
	locktest.Release(t, g.Hold)
}

// A process stays subscribed for a moment after its wait. When its time is over to hand the
// lock on in memory, it does not take itself for somebody who waits.
func TestOwnSubscriptionIsNobodyWhoWaits(t *testing.T) {
	t.Parallel()
	s, k := locktest.Alone(t, lockkeeper.Config{HandOffLimit: time.Millisecond, Poll: redistest.Limit})
	k.TakeAs(t, locktest.Redisson, time.Minute)
	granted := s.AcquireSoon(t, k)
	k.AwaitSubscribers(t, 1)
	k.Unlock(t)
	hold := locktest.Got(t, granted).Hold // with nobody behind it, which ends the subscription
	ctx, stop := context.WithCancel(locktest.Within(t))
	var users sync.WaitGroup
	defer users.Wait()
	defer stop()
	for range 8 {
		users.Go(func() {
			for {
				hold, err := s.Lock(k.LockName).Acquire(ctx)
				if err != nil {
					return
				}
				if err := hold.Release(context.WithoutCancel(ctx)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	s.AwaitWaiters(t, k, 8)
	k.Server.ResetStats(t)
	locktest.Release(t, hold)
	redistest.Eventually(t, "the end of a few turns", func() bool { return k.Server.Calls(t)["pubsub|numsub"] > 10 })
	// On a busy machine all users may be between two requests now and then.
	if n := k.Server.Calls(t)["publish"]; n > 3 {
		t.Errorf("the lock was released %d times for nobody", n)
	}
}
