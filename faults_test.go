package lockkeeper_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// quick has leases that end while a test looks on.
var quick = lockkeeper.Config{Watchdog: 1500 * time.Millisecond, CallTimeout: 200 * time.Millisecond, Poll: time.Minute}

// separate keeps a remote from its Redis while it breaks something, and tells when
// the keys of the guards end in Redis as things stand.
func (r *remote) separate(t testing.TB, guards []*guard, breakIt func()) (ends []time.Time) {
	t.Helper()
	r.proxy.Freeze(true)
	for range 2 { // the first comes behind all that was under way
		ends = nil
		for _, g := range guards {
			ends = append(ends, g.expiry(t))
		}
	}
	breakIt()
	return ends
}

// Redis loses everything; the next renewal finds out.
func TestRedisRestartedEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := far(t, server, quick)
	held := guards(t, r.site, server)
	other := open(t, server.URL(), quick)
	waiting := []<-chan grant{r.acquireSoon(t, held[0].key), other.acquireSoon(t, held[1].key)}
	r.awaitWaiters(t, held[0].key, 1)
	held[1].awaitSubscribers(t, 1)

	ends := r.separate(t, held, func() { server.Restart(t) })
	r.proxy.Freeze(false)
	for i, g := range held {
		lost := g.awaitLoss(t)
		if lost.reason != messages.Reason_REASON_GONE && lost.reason != messages.Reason_REASON_TAKEN || lost.at.After(ends[i].Add(g.pulse.noise())) {
			t.Errorf("%s: lost because of %v, %v after the lease's end", g.how, lost.reason, lost.at.Sub(ends[i]))
		}
		next := got(t, waiting[i])
		release(t, next.hold)
		r.passes(t, g.key)
	}
}

// Redis is away for longer than the lease.
func TestRedisKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := far(t, server, quick)
	held := guards(t, r.site, server)
	waiting := []<-chan grant{r.acquireSoon(t, held[0].key), r.acquireSoon(t, held[1].key)}
	for _, g := range held {
		r.awaitWaiters(t, g.key, 1)
	}
	ends := r.separate(t, held, func() { server.Kill(t) })
	r.proxy.Freeze(false)
	for i, g := range held {
		g.lostInTime(t, ends[i], true, messages.Reason_REASON_EXPIRED)
	}
	if _, err := r.Lock(held[0].lock).TryAcquire(within(t)); err == nil {
		t.Error("a try got a lock from a Redis that is dead")
	}
	server.Restart(t)
	for i, g := range held {
		release(t, got(t, waiting[i]).hold)
		r.passes(t, g.key)
	}
}

// Redis stops for a while, and the lease outlasts it.
func TestRedisPausedShortly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := far(t, server, lockkeeper.Config{Watchdog: 4 * time.Second, Renewal: 500 * time.Millisecond, CallTimeout: 200 * time.Millisecond})
	held := guards(t, r.site, server)
	server.Pause(t)
	for _, g := range held {
		redistest.Eventually(t, "the warning", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return len(g.risks) > 0
		})
	}
	server.Resume(t)
	old := held[0].expiry(t)
	redistest.Eventually(t, "a renewal", func() bool { return held[0].expiry(t).After(old) })
	for _, g := range held {
		g.unharmed(t)
	}
}

// Redis stops for longer than the lease, with others waiting for the lock.
func TestRedisPausedForLong(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r, other := far(t, server, quick), open(t, server.URL(), quick)
	held := guards(t, r.site, server)
	waiting := []<-chan grant{held[0].successor(t, other), held[1].successor(t, other)}
	for _, g := range held {
		g.awaitSubscribers(t, 1)
	}
	ends := r.separate(t, held, func() { server.Pause(t) })
	r.proxy.Freeze(false)
	var told []loss
	for i, g := range held {
		told = append(told, g.lostInTime(t, ends[i], true, messages.Reason_REASON_EXPIRED))
	}
	server.Resume(t)
	for i, g := range held {
		next := got(t, waiting[i])
		if late := told[i].at.Sub(next.at); late > g.pulse.noise() {
			t.Errorf("%s: told %v after the next got in", g.how, late)
		}
		g.heldBy(t, other, "1")
		release(t, next.hold)
		r.passes(t, g.key)
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
			r, other := far(t, server, quick), open(t, server.URL(), quick)
			held := guards(t, r.site, server)
			waiting := []<-chan grant{held[0].successor(t, other), held[1].successor(t, other)}
			for _, g := range held {
				g.awaitSubscribers(t, 1)
			}
			ends := r.separate(t, held, func() { fault(r.proxy) })
			for i, g := range held {
				lost := g.lostInTime(t, ends[i], true, messages.Reason_REASON_EXPIRED)
				next := got(t, waiting[i])
				if late := lost.at.Sub(next.at); late > g.pulse.noise() {
					t.Errorf("%s: told %v after the next got in", g.how, late)
				}
				// Redis has renewed what counts as lost here, and can be told so.
				if idle := next.at.Sub(lost.at); what == unrenewable && idle > quick.Watchdog/2 {
					t.Errorf("%s: the next got in %v after the loss", g.how, idle)
				}
				g.heldBy(t, other, "1")
				defer release(t, next.hold)
			}
			r.proxy.Heal()
			granted := r.acquireSoon(t, held[0].key)
			r.awaitWaiters(t, held[0].key, 1)
			for _, g := range held { // what was under way has taken nothing from them
				g.heldBy(t, other, "1")
			}
			t.Cleanup(func() { release(t, got(t, granted).hold) })
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
	s := open(t, proxy.URL(), cfg)
	var held []*guard
	for range 20 {
		held = append(held, guardByContext(t, s, newKey(t, server)))
	}
	ctx, cancel := context.WithCancel(within(t))
	var traffic sync.WaitGroup
	for range 16 {
		busy := newKey(t, server)
		traffic.Go(func() {
			for ctx.Err() == nil {
				if hold, err := s.Lock(busy.lock).Acquire(ctx); err == nil {
					_ = hold.Release(ctx)
				}
			}
		})
	}
	proxy.DropRepliesTo(redistest.Script(scripts.Renew.SHA), 1, redistest.Silent).Wait(t)
	later := time.Now().Add(cfg.Watchdog + cfg.Renewal)
	for _, g := range held {
		redistest.Eventually(t, "a renewal over another connection", func() bool { return g.expiry(t).After(later) })
	}
	cancel()
	traffic.Wait()
	for _, g := range held {
		g.unharmed(t)
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
			s, other := open(t, server.URL(), cfg), open(t, server.URL(), cfg)
			held := guards(t, s, server)
			waiting := []<-chan grant{s.acquireSoon(t, held[0].key), other.acquireSoon(t, held[1].key)}
			s.awaitWaiters(t, held[0].key, 1)
			held[1].awaitSubscribers(t, 1)
			for range 5 {
				old := held[0].expiry(t)
				disturb(t, server)
				redistest.Eventually(t, "a renewal", func() bool { return held[0].expiry(t).After(old) })
			}
			redistest.Eventually(t, "the waiter to listen again", func() bool { return server.Subscribers(t, held[1].channel) == 1 })
			for i, g := range held {
				disturb(t, server)
				g.giveUp(t)
				freed := time.Now()
				next := got(t, waiting[i])
				if wait := next.at.Sub(freed); wait > soon {
					t.Errorf("the waiter got in after %v", wait)
				}
				g.mu.Lock()
				if len(g.lost) > 0 {
					t.Errorf("%s: told of a loss that was none: %v", g.how, g.lost)
				}
				g.mu.Unlock()
				disturb(t, server)
				release(t, next.hold)
				g.isFree(t)
			}
		})
	}
}

// The unlock was told while nobody listened: after a reconnect everybody looks again.
func TestMissedWhileDisconnected(t *testing.T) {
	server := redistest.Start(t)
	k, s := newKey(t, server), open(t, server.URL(), noPolling)
	k.takeAs(t, redisson, -1)
	granted := s.acquireSoon(t, k)
	k.awaitListener(t)
	k.do(t, "DEL", k.name) // and nobody is told
	if n := server.KillClients(t, "pubsub"); n != 1 {
		t.Fatalf("%d subscribers were cut off", n)
	}
	release(t, got(t, granted).hold)
}

// An unlock message that gets lost costs no more than the poll bound.
func TestMissedMessage(t *testing.T) {
	t.Parallel()
	cfg := noPolling
	cfg.Poll = 400 * time.Millisecond
	r := far(t, redistest.Start(t), cfg)
	r.takeAs(t, redisson, -1)
	r.proxy.DropMessages(true)
	granted := r.acquireSoon(t, r.key)
	r.awaitListener(t)
	r.unlock(t)
	freed := time.Now()
	g := got(t, granted)
	if wait := g.at.Sub(freed); wait > cfg.Poll+time.Second {
		t.Errorf("let in after %v, with a poll bound of %v", wait, cfg.Poll)
	}
	release(t, g.hold)
}

func TestEnsureWithoutRedis(t *testing.T) {
	r := far(t, redistest.Shared(t), lockkeeper.Config{Watchdog: time.Minute, CallTimeout: 100 * time.Millisecond})
	hold := r.acquire(t, r.key)
	redistest.Eventually(t, "some of the lease to pass", func() bool { return r.ttl(t) < time.Minute-50*time.Millisecond })
	old := r.expiry(t)
	if err := hold.Ensure(within(t), 30*time.Second); err != nil || r.expiry(t) != old {
		t.Errorf("%v, and the expiry went from %v to %v, though more was left than was asked for", err, old, r.expiry(t))
	}
	most := time.Minute*99/100 - 2*time.Millisecond
	_ = hold.Ensure(within(t), most) // it can hardly be had for long enough to be told so
	if !r.expiry(t).After(old) {
		t.Error("nothing was renewed")
	}
	for what, fault := range map[string]func(on bool){"refused": r.proxy.Refuse, "no replies": r.proxy.DropReplies} {
		fault(true)
		inTime(t, what, func() { isError(t, hold.Ensure(within(t), most), lockkeeper.ErrUnavailable) })
		if !hold.Valid() || hold.Err() != nil {
			t.Errorf("%s: the hold ended with an Ensure that failed", what)
		}
		fault(false)
	}
	redistest.Eventually(t, "Redis to answer again", func() bool {
		return hold.Ensure(within(t), most-5*time.Second) == nil
	})
	release(t, hold)
	isError(t, hold.Ensure(within(t), 0), lockkeeper.ErrNotHeld)
}
