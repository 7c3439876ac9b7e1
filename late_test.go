package lockkeeper_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// remote is a site that reaches its Redis through a proxy.
type remote struct {
	*site
	key
	proxy *redistest.Proxy
}

// far opens a site behind a proxy. Its client finds out soon that a connection is dead.
func far(t testing.TB, server *redistest.Server, cfg lockkeeper.Config, inject ...actor.ReceiverMiddleware) *remote {
	t.Helper()
	proxy := redistest.NewProxy(t, server.Addr())
	for _, script := range scripts.All { // so that no first try is in vain
		if err := server.Do(t, "SCRIPT", "LOAD", script.Source).Error(); err != nil {
			t.Fatal(err)
		}
	}
	return &remote{open(t, proxy.URL()+"?write_timeout=1s", cfg, inject...), newKey(t, server), proxy}
}

// impatient resends soon what has got no reply, and is far from the lease's end all
// the while. Its tenures are over at once.
var impatient = lockkeeper.Config{CallTimeout: 100 * time.Millisecond, Poll: time.Minute, Watchdog: 2 * time.Minute, Tenure: 1}

// losing loses the next reply to a script in either way, and checks that nothing
// stays behind.
func losing(t *testing.T, script *scripts.Script, cfg lockkeeper.Config, scenario func(t *testing.T, r *remote, lose func() *redistest.Loss)) {
	for what, how := range map[string]struct {
		mode    redistest.Mode
		lending bool
	}{
		"lost": {redistest.Lost, false}, "lost and lending": {redistest.Lost, true},
		"silent": {redistest.Silent, false}, "silent and lending": {redistest.Silent, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := far(t, redistest.Shared(t), cfg)
			r.lending = how.lending
			var losses []*redistest.Loss
			scenario(t, r, func() *redistest.Loss {
				loss := r.proxy.DropRepliesTo(redistest.Script(script.SHA), 1, how.mode)
				losses = append(losses, loss)
				return loss
			})
			for _, loss := range losses {
				if loss.Count() != 1 {
					t.Errorf("%d replies were lost: the test has tested nothing", loss.Count())
				}
			}
			r.isFree(t)
			r.passes(t, r.key)
			redistest.Eventually(t, "nothing to be left", func() bool { return r.inspect(t, r.key) == lockkeeper.Status{TTL: -1} })
		})
	}
}

func TestLostReplyToAcquire(t *testing.T) {
	losing(t, scripts.Acquire, impatient, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		lose()
		hold := r.acquire(t, r.key)
		r.heldBy(t, r.site, "1")
		r.release(t, hold)
	})
}

// The reply that says no.
func TestLostReplyToRefusedAcquire(t *testing.T) {
	losing(t, scripts.Acquire, impatient, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		r.takeAs(t, redisson, time.Minute)
		lose()
		granted := r.acquireSoon(t, r.key)
		r.awaitSubscribers(t, 1)
		r.unlock(t)
		r.release(t, got(t, granted).hold)
	})
}

// A try that does not know whether it has the lock says so, and does not have it.
func TestLostReplyToTry(t *testing.T) {
	losing(t, scripts.Acquire, impatient, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		lose()
		_, err := r.Lock(r.lock).TryAcquire(r.context(t))
		isError(t, err, lockkeeper.ErrUnavailable)
		r.awaitFree(t)
	})
}

func TestLostReplyToReentry(t *testing.T) {
	losing(t, scripts.Acquire, impatient, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		outer := r.acquire(t, r.key)
		lose()
		inner := acquireIn(t, outer.Context(), r.site, r.key)
		r.heldBy(t, r.site, "2")
		if inner.Count() != 2 {
			t.Errorf("hold count %d, want 2", inner.Count())
		}
		r.release(t, inner)
		r.heldBy(t, r.site, "1")
		r.release(t, outer)
	})
}

// A re-entry that is withdrawn while nobody knows whether it counts does not count.
func TestLostReplyToCancelledReentry(t *testing.T) {
	losing(t, scripts.Acquire, impatient, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		outer := r.acquire(t, r.key)
		loss := lose()
		ctx, cancel := context.WithCancel(outer.Context())
		reentry := make(chan grant, 1)
		go func() {
			hold, err := r.Lock(r.lock).Acquire(ctx)
			reentry <- grant{hold: hold, err: err}
		}()
		loss.Wait(t)
		cancel()
		if inner := await(t, "the error", reentry); inner.err == nil { // the second try was faster
			r.release(t, inner.hold)
		} else if !errors.Is(inner.err, context.Canceled) {
			t.Fatal(inner.err)
		}
		redistest.Eventually(t, "the count to be set right", func() bool { return slices.Collect(maps.Values(r.owners(t)))[0] == "1" })
		r.release(t, outer)
	})
}

func TestLostReplyToRelease(t *testing.T) {
	losing(t, scripts.Release, impatient, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		hold, ear := r.acquire(t, r.key), r.listen(t)
		lose()
		r.release(t, hold)
		r.isFree(t)
		if heard := ear.messages(t); !slices.Equal(heard, []string{"0"}) {
			t.Errorf("heard %q, want one 0", heard)
		}
	})
}

func TestLostReplyToPartialRelease(t *testing.T) {
	losing(t, scripts.Release, impatient, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		outer := r.acquire(t, r.key)
		inner := acquireIn(t, outer.Context(), r.site, r.key)
		lose()
		r.release(t, inner)
		r.heldBy(t, r.site, "1")
		if !outer.Valid() {
			t.Error("the outer hold went with the inner")
		}
		r.release(t, outer)
	})
}

func TestLostReplyToRenewal(t *testing.T) {
	cfg := impatient
	cfg.Watchdog, cfg.Renewal = 6*time.Second, 200*time.Millisecond
	losing(t, scripts.Renew, cfg, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		warned := make(chan time.Duration, 100)
		warn := lockkeeper.WithAtRisk(func(left time.Duration) { warned <- left })
		hold := r.acquire(t, r.key, warn)
		inner := acquireIn(t, hold.Context(), r.site, r.key, warn)
		lose().Wait(t)
		for range 2 {
			if left := await(t, "the warning", warned); left <= 0 || left > cfg.Watchdog {
				t.Errorf("warned that %v are left", left)
			}
		}
		old := r.expiry(t)
		redistest.Eventually(t, "the next renewal", func() bool { return r.expiry(t).After(old) })
		if err := hold.Ensure(within(t), 5*time.Second); err != nil {
			t.Error(err)
		}
		r.release(t, inner)
		r.release(t, hold)
	})
}

// Somebody else waits in this process when the tenure is over.
func TestLostReplyToYield(t *testing.T) {
	losing(t, scripts.Yield, impatient, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		hold := r.acquire(t, r.key)
		granted := r.acquireSoon(t, r.key)
		r.awaitWaiters(t, r.key, 1)
		lose()
		r.release(t, hold)
		g := got(t, granted)
		r.heldBy(t, r.site, "1")
		r.release(t, g.hold)
	})
}

// … and somebody waits in another process, whom the lost reply lets in.
func TestLostReplyToYieldForAnother(t *testing.T) {
	losing(t, scripts.Yield, impatient, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		other := open(t, r.server.URL(), noPolling)
		hold := r.acquire(t, r.key)
		here, there := r.acquireSoon(t, r.key), other.acquireSoon(t, r.key)
		r.awaitWaiters(t, r.key, 1)
		r.awaitSubscribers(t, 1)
		lose()
		r.release(t, hold)
		for range 2 { // in either order, one after the other
			select {
			case g := <-here:
				r.heldBy(t, r.site, "1")
				r.release(t, g.hold)
			case g := <-there:
				r.heldBy(t, other, "1")
				release(t, g.hold)
			case <-time.After(redistest.Limit):
				t.Fatal("nobody gets the lock")
			}
		}
	})
}

// late delivers a command after its term is over, in a term of somebody else's and
// in one of the same process, and expects that it changes nothing.
func late(t *testing.T, r *remote, held *redistest.Held, wantReply string) {
	t.Helper()
	ear := r.listen(t)
	unchanged := func(what string) {
		t.Helper()
		owners, expiry := r.owners(t), r.expiry(t)
		if reply := held.Release(t); reply != wantReply {
			t.Errorf("%s: the late command was answered with %s, want %s", what, reply, wantReply)
		}
		if now := r.owners(t); fmt.Sprint(now) != fmt.Sprint(owners) || r.expiry(t) != expiry {
			t.Errorf("%s: the late command turned %v until %v into %v until %v", what, owners, expiry, now, r.expiry(t))
		}
		if heard := ear.messages(t); len(heard) > 0 {
			t.Errorf("%s: the late command published %q", what, heard)
		}
	}
	hold := r.acquire(t, r.key, lockkeeper.WithLease(time.Minute))
	unchanged("a later term of this process")
	if !hold.Valid() {
		t.Error("the later hold was lost")
	}
	r.release(t, hold)
	ear.messages(t)
	r.takeAs(t, redisson, time.Minute)
	unchanged("a term of somebody else's")
	r.unlock(t)
}

func TestLateRelease(t *testing.T) {
	r := far(t, redistest.Shared(t), impatient)
	hold := r.acquire(t, r.key)
	held := r.proxy.Hold(redistest.Script(scripts.Release.SHA))
	r.release(t, hold) // by the second try
	held.Wait(t)
	late(t, r, held, "-1")
}

func TestLatePartialRelease(t *testing.T) {
	r := far(t, redistest.Shared(t), impatient)
	outer := r.acquire(t, r.key)
	inner := acquireIn(t, outer.Context(), r.site, r.key)
	held := r.proxy.Hold(redistest.Script(scripts.Release.SHA))
	r.release(t, inner)
	held.Wait(t)
	r.release(t, outer)
	late(t, r, held, "-1")
}

func TestLateReentry(t *testing.T) {
	r := far(t, redistest.Shared(t), impatient)
	outer := r.acquire(t, r.key)
	held := r.proxy.Hold(redistest.Script(scripts.Acquire.SHA))
	inner := acquireIn(t, outer.Context(), r.site, r.key)
	held.Wait(t)
	r.release(t, inner)
	r.release(t, outer)
	if reply := held.Release(t); reply != "[-2 ]" {
		t.Errorf("the late re-entry of a free lock was answered with %s", reply)
	}
	r.isFree(t)
}

func TestLateRenewal(t *testing.T) {
	cfg := impatient
	cfg.Renewal = 100 * time.Millisecond
	r := far(t, redistest.Shared(t), cfg)
	hold := r.acquire(t, r.key)
	held := r.proxy.Hold(redistest.Script(scripts.Renew.SHA))
	held.Wait(t)
	r.release(t, hold)
	late(t, r, held, "[-1]")
	if reply := held.Release(t); reply != "[0]" {
		t.Errorf("the late renewal of a free lock was answered with %s", reply)
	}
	r.isFree(t)
}

func TestLateYield(t *testing.T) {
	r := far(t, redistest.Shared(t), impatient)
	hold := r.acquire(t, r.key)
	granted := r.acquireSoon(t, r.key)
	r.awaitWaiters(t, r.key, 1)
	held := r.proxy.Hold(redistest.Script(scripts.Yield.SHA))
	r.release(t, hold)
	held.Wait(t)
	r.release(t, got(t, granted).hold)
	late(t, r, held, "[-1 0]")
}

// A late acquire does take a lock that is free by then, for nobody. Whoever of this
// process wants the lock next finds that and has it at once.
func TestLateAcquire(t *testing.T) {
	r := far(t, redistest.Shared(t), impatient)
	held := r.proxy.Hold(redistest.Script(scripts.Acquire.SHA))
	hold := r.acquire(t, r.key) // by the second try
	held.Wait(t)
	// In its own term it changes nothing that counts.
	if reply := held.Release(t); reply != "(nil)" {
		t.Errorf("in its own term: %s", reply)
	}
	r.heldBy(t, r.site, "1")
	r.release(t, hold)
	if reply := held.Release(t); reply != "(nil)" {
		t.Errorf("when the lock is free: %s", reply)
	}
	stale := r.heldBy(t, r.site, "1")
	began := time.Now()
	hold = r.acquire(t, r.key)
	if took := time.Since(began); took > soon {
		t.Errorf("our own late acquire kept us out for %v", took)
	}
	if owner := r.heldBy(t, r.site, "1"); owner == stale {
		t.Error("the late acquire's term was taken up again")
	}
	if reply := held.Release(t); !strings.HasPrefix(reply, "[") {
		t.Errorf("when the lock is held: %s", reply)
	}
	r.release(t, hold)
	r.isFree(t)
}

// The late acquire of a process that does not want the lock any more costs the
// others no more than its TTL, though nobody frees it.
func TestLateAcquireExpires(t *testing.T) {
	t.Parallel()
	cfg := impatient
	cfg.Watchdog = 800 * time.Millisecond
	r := far(t, redistest.Shared(t), cfg)
	held := r.proxy.Hold(redistest.Script(scripts.Acquire.SHA))
	r.release(t, r.acquire(t, r.key))
	held.Release(t)
	expiry := r.expiry(t)
	other := open(t, r.server.URL(), noPolling)
	g := got(t, other.acquireSoon(t, r.key))
	if wait := g.at.Sub(expiry); wait < -time.Millisecond || wait > soon {
		t.Errorf("let in %v after the end of the late acquire's TTL", wait)
	}
	r.release(t, g.hold)
}

// A try that gave up is cleaned up after: the acquire that arrives later finds
// nothing to stay for, or is found by the next who wants the lock here.
func TestLateTry(t *testing.T) {
	r := far(t, redistest.Shared(t), impatient)
	held := r.proxy.Hold(redistest.Script(scripts.Acquire.SHA))
	_, err := r.Lock(r.lock).TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrUnavailable)
	held.Release(t)
	hold, err := r.Lock(r.lock).Acquire(within(t), lockkeeper.WithWait(soon))
	if err != nil {
		t.Fatal(err)
	}
	r.heldBy(t, r.site, "1")
	r.release(t, hold)
	r.isFree(t)
}
