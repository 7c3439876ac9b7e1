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
var quick = lockkeeper.Config{Watchdog: 1500 * time.Millisecond, CallTimeout: 200 * time.Millisecond, Poll: time.Minute}

// Redis loses everything; the next renewal finds out.
func TestRedisRestartedEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := locktest.Far(t, server, quick)
	held := locktest.Guards(t, r.Site, server)
	other := locktest.Open(t, server.URL(), quick)
	waiting := []<-chan locktest.Grant{r.AcquireSoon(t, held[0].Key), other.AcquireSoon(t, held[1].Key)}
	r.AwaitWaiters(t, held[0].Key, 1)
	held[1].AwaitSubscribers(t, 1)

	ends := r.Separate(t, held, func() { server.Restart(t) })
	r.Proxy.Freeze(false)
	for i, g := range held {
		lost := g.AwaitLoss(t)
		if lost.Reason != messages.Reason_REASON_GONE && lost.Reason != messages.Reason_REASON_TAKEN || lost.At.After(ends[i].Add(g.Pulse.Noise())) {
			t.Errorf("%s: lost because of %v, %v after the lease's end", g.How, lost.Reason, lost.At.Sub(ends[i]))
		}
		next := locktest.Got(t, waiting[i])
		locktest.Release(t, next.Hold)
		r.Passes(t, g.Key)
	}
}

// Redis is away for longer than the lease.
func TestRedisKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := locktest.Far(t, server, quick)
	held := locktest.Guards(t, r.Site, server)
	waiting := []<-chan locktest.Grant{r.AcquireSoon(t, held[0].Key), r.AcquireSoon(t, held[1].Key)}
	for _, g := range held {
		r.AwaitWaiters(t, g.Key, 1)
	}
	ends := r.Separate(t, held, func() { server.Kill(t) })
	r.Proxy.Freeze(false)
	for i, g := range held {
		g.LostInTime(t, ends[i], true, messages.Reason_REASON_EXPIRED)
	}
	if _, err := r.Lock(held[0].LockName).TryAcquire(locktest.Within(t)); err == nil {
		t.Error("a try got a lock from a Redis that is dead")
	}
	server.Restart(t)
	for i, g := range held {
		locktest.Release(t, locktest.Got(t, waiting[i]).Hold)
		r.Passes(t, g.Key)
	}
}

// Redis stops for a while, and the lease outlasts it.
func TestRedisPausedShortly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := locktest.Far(t, server, lockkeeper.Config{Watchdog: 4 * time.Second, Renewal: 500 * time.Millisecond, CallTimeout: 200 * time.Millisecond})
	held := locktest.Guards(t, r.Site, server)
	server.Pause(t)
	for _, g := range held {
		redistest.Eventually(t, "the warning", func() bool {
			g.Mu.Lock()
			defer g.Mu.Unlock()
			return len(g.Risks) > 0
		})
	}
	server.Resume(t)
	old := held[0].Expiry(t)
	redistest.Eventually(t, "a renewal", func() bool { return held[0].Expiry(t).After(old) })
	for _, g := range held {
		g.Unharmed(t)
	}
}

// Redis stops for longer than the lease, with others waiting for the lock.
func TestRedisPausedForLong(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r, other := locktest.Far(t, server, quick), locktest.Open(t, server.URL(), quick)
	held := locktest.Guards(t, r.Site, server)
	waiting := []<-chan locktest.Grant{held[0].Successor(t, other), held[1].Successor(t, other)}
	for _, g := range held {
		g.AwaitSubscribers(t, 1)
	}
	ends := r.Separate(t, held, func() { server.Pause(t) })
	r.Proxy.Freeze(false)
	var told []locktest.Loss
	for i, g := range held {
		told = append(told, g.LostInTime(t, ends[i], true, messages.Reason_REASON_EXPIRED))
	}
	server.Resume(t)
	for i, g := range held {
		next := locktest.Got(t, waiting[i])
		if late := told[i].At.Sub(next.At); late > g.Pulse.Noise() {
			t.Errorf("%s: told %v after the next got in", g.How, late)
		}
		g.HeldBy(t, other, "1")
		locktest.Release(t, next.Hold)
		r.Passes(t, g.Key)
	}
}

// The holder alone is cut off: the others get in when its lease is over, not before
// it has been told.
func TestHolderCutOff(t *testing.T) {
	const unrenewable = "no reply to a renewal"
	for what, fault := range map[string]func(p *redistest.Proxy){
		"nothing passes": func(p *redistest.Proxy) {},
		"refused":        func(p *redistest.Proxy) { p.Refuse(true); p.Freeze(false) },
		"no replies":     func(p *redistest.Proxy) { p.DropReplies(true); p.Freeze(false) },
		unrenewable:      func(p *redistest.Proxy) { p.DropRepliesTo(redistest.Script(scripts.Renew.SHA), 0); p.Freeze(false) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Shared(t)
			r, other := locktest.Far(t, server, quick), locktest.Open(t, server.URL(), quick)
			held := locktest.Guards(t, r.Site, server)
			waiting := []<-chan locktest.Grant{held[0].Successor(t, other), held[1].Successor(t, other)}
			for _, g := range held {
				g.AwaitSubscribers(t, 1)
			}
			ends := r.Separate(t, held, func() { fault(r.Proxy) })
			for i, g := range held {
				lost := g.LostInTime(t, ends[i], true, messages.Reason_REASON_EXPIRED)
				next := locktest.Got(t, waiting[i])
				if late := lost.At.Sub(next.At); late > g.Pulse.Noise() {
					t.Errorf("%s: told %v after the next got in", g.How, late)
				}
				// Redis has renewed what counts as lost here, and can be told so.
				if idle := next.At.Sub(lost.At); what == unrenewable && idle > quick.Watchdog/2 {
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

// A connection dies and nobody says so: the leases renewed over it move to another
// in time, though the client has a busy pipeline there.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	cfg := lockkeeper.Config{Watchdog: 6 * time.Second, Renewal: 500 * time.Millisecond}
	s := locktest.Open(t, proxy.URL(), cfg)
	var held []*locktest.Guard
	for range 20 {
		held = append(held, locktest.GuardByContext(t, s, locktest.NewKey(t, server)))
	}
	ctx, cancel := context.WithCancel(locktest.Within(t))
	var traffic sync.WaitGroup
	for range 16 {
		busy := locktest.NewKey(t, server)
		traffic.Go(func() {
			for ctx.Err() == nil {
				if hold, err := s.Lock(busy.LockName).Acquire(ctx); err == nil {
					_ = hold.Release(ctx)
				}
			}
		})
	}
	proxy.DropRepliesTo(redistest.Script(scripts.Renew.SHA), 1, redistest.Silent).Wait(t)
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
			server := redistest.Start(t)
			cfg := lockkeeper.Config{Watchdog: 6 * time.Second, Renewal: 150 * time.Millisecond, Poll: time.Minute}
			s, other := locktest.Open(t, server.URL(), cfg), locktest.Open(t, server.URL(), cfg)
			held := locktest.Guards(t, s, server)
			waiting := []<-chan locktest.Grant{s.AcquireSoon(t, held[0].Key), other.AcquireSoon(t, held[1].Key)}
			s.AwaitWaiters(t, held[0].Key, 1)
			held[1].AwaitSubscribers(t, 1)
			for range 5 {
				old := held[0].Expiry(t)
				disturb(t, server)
				redistest.Eventually(t, "a renewal", func() bool { return held[0].Expiry(t).After(old) })
			}
			redistest.Eventually(t, "the waiter to listen again", func() bool { return server.Subscribers(t, held[1].Channel) == 1 })
			for i, g := range held {
				disturb(t, server)
				g.GiveUp(t)
				freed := time.Now()
				next := locktest.Got(t, waiting[i])
				if wait := next.At.Sub(freed); wait > locktest.Soon {
					t.Errorf("the waiter got in after %v", wait)
				}
				g.Mu.Lock()
				if len(g.Lost) > 0 {
					t.Errorf("%s: told of a loss that was none: %v", g.How, g.Lost)
				}
				g.Mu.Unlock()
				disturb(t, server)
				locktest.Release(t, next.Hold)
				g.IsFree(t)
			}
		})
	}
}

// The unlock was told while nobody listened: after a reconnect everybody looks again.
func TestMissedWhileDisconnected(t *testing.T) {
	server := redistest.Start(t)
	k, s := locktest.NewKey(t, server), locktest.Open(t, server.URL(), locktest.NoPolling)
	k.TakeAs(t, locktest.Redisson, -1)
	granted := s.AcquireSoon(t, k)
	k.AwaitListener(t)
	k.Do(t, "DEL", k.Name) // and nobody is told
	if n := server.KillClients(t, "pubsub"); n != 1 {
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

func TestEnsureWithoutRedis(t *testing.T) {
	r := locktest.Far(t, redistest.Shared(t), lockkeeper.Config{Watchdog: time.Minute, CallTimeout: 100 * time.Millisecond})
	hold := r.Acquire(t, r.Key)
	redistest.Eventually(t, "some of the lease to pass", func() bool { return r.Ttl(t) < time.Minute-50*time.Millisecond })
	old := r.Expiry(t)
	if err := hold.Ensure(locktest.Within(t), 30*time.Second); err != nil || r.Expiry(t) != old {
		t.Errorf("%v, and the expiry went from %v to %v, though more was left than was asked for", err, old, r.Expiry(t))
	}
	most := time.Minute*99/100 - 2*time.Millisecond
	_ = hold.Ensure(locktest.Within(t), most) // it can hardly be had for long enough to be told so
	if !r.Expiry(t).After(old) {
		t.Error("nothing was renewed")
	}
	for what, fault := range map[string]func(on bool){"refused": r.Proxy.Refuse, "no replies": r.Proxy.DropReplies} {
		fault(true)
		locktest.InTime(t, what, func() { locktest.IsError(t, hold.Ensure(locktest.Within(t), most), lockkeeper.ErrUnavailable) })
		if !hold.Valid() || hold.Err() != nil {
			t.Errorf("%s: the hold ended with an Ensure that failed", what)
		}
		fault(false)
	}
	redistest.Eventually(t, "Redis to answer again", func() bool {
		return hold.Ensure(locktest.Within(t), most-5*time.Second) == nil
	})
	locktest.Release(t, hold)
	locktest.IsError(t, hold.Ensure(locktest.Within(t), 0), lockkeeper.ErrNotHeld)
}
