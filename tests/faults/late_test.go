package faults_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestLostReplyToAcquire(t *testing.T) {
	locktest.Losing(t, scripts.Acquire, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		lose()
		hold := r.Acquire(t, r.Key)
		r.HeldBy(t, r.Site, "1")
		r.Release(t, hold)
	})
}

// The reply that says no.
func TestLostReplyToRefusedAcquire(t *testing.T) {
	locktest.Losing(t, scripts.Acquire, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		r.TakeAs(t, locktest.Redisson, time.Minute)
		lose()
		granted := r.AcquireSoon(t, r.Key)
		r.AwaitSubscribers(t, 1)
		r.Unlock(t)
		r.Release(t, locktest.Got(t, granted).Hold)
	})
}

// A try that does not know whether it has the lock says so, and does not have it.
func TestLostReplyToTry(t *testing.T) {
	locktest.Losing(t, scripts.Acquire, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		lose()
		_, err := r.Lock(r.LockName).TryAcquire(r.Context(t))
		locktest.IsError(t, err, lockkeeper.ErrUnavailable)
		r.AwaitFree(t)
	})
}

func TestLostReplyToReentry(t *testing.T) {
	locktest.Losing(t, scripts.Acquire, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		outer := r.Acquire(t, r.Key)
		lose()
		inner := r.Site.AcquireIn(t, outer.Context(), r.Key)
		r.HeldBy(t, r.Site, "2")
		if inner.Count() != 2 {
			t.Errorf("hold count %d, want 2", inner.Count())
		}
		r.Release(t, inner)
		r.HeldBy(t, r.Site, "1")
		r.Release(t, outer)
	})
}

// A re-entry that is withdrawn while nobody knows whether it counts does not count.
func TestLostReplyToCancelledReentry(t *testing.T) {
	locktest.Losing(t, scripts.Acquire, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		outer := r.Acquire(t, r.Key)
		loss := lose()
		ctx, cancel := context.WithCancel(outer.Context())
		reentry := make(chan locktest.Grant, 1)
		go func() {
			hold, err := r.Lock(r.LockName).Acquire(ctx)
			reentry <- locktest.Grant{Hold: hold, Err: err}
		}()
		loss.Wait(t)
		cancel()
		if inner := locktest.Await(t, "the error", reentry); inner.Err == nil { // the second try was faster
			r.Release(t, inner.Hold)
		} else if !errors.Is(inner.Err, context.Canceled) {
			t.Fatal(inner.Err)
		}
		redistest.Eventually(t, "the count to be set right", func() bool { return slices.Collect(maps.Values(r.Owners(t)))[0] == "1" })
		r.Release(t, outer)
	})
}

func TestLostReplyToRelease(t *testing.T) {
	locktest.Losing(t, scripts.Release, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		hold, ear := r.Acquire(t, r.Key), r.Listen(t)
		lose()
		r.Release(t, hold)
		r.IsFree(t)
		if heard := ear.Messages(t); !slices.Equal(heard, []string{"0"}) {
			t.Errorf("heard %q, want one 0", heard)
		}
	})
}

func TestLostReplyToPartialRelease(t *testing.T) {
	locktest.Losing(t, scripts.Release, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		outer := r.Acquire(t, r.Key)
		inner := r.Site.AcquireIn(t, outer.Context(), r.Key)
		lose()
		r.Release(t, inner)
		r.HeldBy(t, r.Site, "1")
		if !outer.Valid() {
			t.Error("the outer hold went with the inner")
		}
		r.Release(t, outer)
	})
}

func TestLostReplyToRenewal(t *testing.T) {
	cfg := locktest.Impatient
	cfg.Watchdog, cfg.Renewal = 6*time.Second, 200*time.Millisecond
	locktest.Losing(t, scripts.Renew, cfg, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		warned := make(chan time.Duration, 100)
		warn := lockkeeper.WithAtRisk(func(left time.Duration) { warned <- left })
		hold := r.Acquire(t, r.Key, warn)
		inner := r.Site.AcquireIn(t, hold.Context(), r.Key, warn)
		lose().Wait(t)
		for range 2 {
			if left := locktest.Await(t, "the warning", warned); left <= 0 || left > cfg.Watchdog {
				t.Errorf("warned that %v are left", left)
			}
		}
		old := r.Expiry(t)
		redistest.Eventually(t, "the next renewal", func() bool { return r.Expiry(t).After(old) })
		if err := hold.Ensure(locktest.Within(t), 5*time.Second); err != nil {
			t.Error(err)
		}
		r.Release(t, inner)
		r.Release(t, hold)
	})
}

// Somebody else waits in this process when the tenure is over.
func TestLostReplyToYield(t *testing.T) {
	locktest.Losing(t, scripts.Yield, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		hold := r.Acquire(t, r.Key)
		granted := r.AcquireSoon(t, r.Key)
		r.AwaitWaiters(t, r.Key, 1)
		lose()
		r.Release(t, hold)
		g := locktest.Got(t, granted)
		r.HeldBy(t, r.Site, "1")
		r.Release(t, g.Hold)
	})
}

// … and somebody waits in another process, whom the lost reply lets in.
func TestLostReplyToYieldForAnother(t *testing.T) {
	locktest.Losing(t, scripts.Yield, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		other := locktest.Open(t, r.Server.URL(), locktest.NoPolling)
		hold := r.Acquire(t, r.Key)
		here, there := r.AcquireSoon(t, r.Key), other.AcquireSoon(t, r.Key)
		r.AwaitWaiters(t, r.Key, 1)
		r.AwaitSubscribers(t, 1)
		lose()
		r.Release(t, hold)
		for range 2 { // in either order, one after the other
			select {
			case g := <-here:
				r.HeldBy(t, r.Site, "1")
				r.Release(t, g.Hold)
			case g := <-there:
				r.HeldBy(t, other, "1")
				locktest.Release(t, g.Hold)
			case <-time.After(redistest.Limit):
				t.Fatal("nobody gets the lock")
			}
		}
	})
}

// late delivers a command after its term is over, in a term of somebody else's and
// in one of the same process, and expects that it changes nothing.
func late(t *testing.T, r *locktest.Remote, held *redistest.Held, wantReply string) {
	t.Helper()
	ear := r.Listen(t)
	unchanged := func(what string) {
		t.Helper()
		owners, expiry := r.Owners(t), r.Expiry(t)
		if reply := held.Release(t); reply != wantReply {
			t.Errorf("%s: the late command was answered with %s, want %s", what, reply, wantReply)
		}
		if now := r.Owners(t); fmt.Sprint(now) != fmt.Sprint(owners) || r.Expiry(t) != expiry {
			t.Errorf("%s: the late command turned %v until %v into %v until %v", what, owners, expiry, now, r.Expiry(t))
		}
		if heard := ear.Messages(t); len(heard) > 0 {
			t.Errorf("%s: the late command published %q", what, heard)
		}
	}
	hold := r.Acquire(t, r.Key, lockkeeper.WithLease(time.Minute))
	unchanged("a later term of this process")
	if !hold.Valid() {
		t.Error("the later hold was lost")
	}
	r.Release(t, hold)
	ear.Messages(t)
	r.TakeAs(t, locktest.Redisson, time.Minute)
	unchanged("a term of somebody else's")
	r.Unlock(t)
}

func TestLateRelease(t *testing.T) {
	r := locktest.Far(t, redistest.Shared(t), locktest.Impatient)
	hold := r.Acquire(t, r.Key)
	held := r.Proxy.Hold(redistest.Script(scripts.Release.SHA))
	r.Release(t, hold) // by the second try
	held.Wait(t)
	late(t, r, held, "-1")
}

func TestLatePartialRelease(t *testing.T) {
	r := locktest.Far(t, redistest.Shared(t), locktest.Impatient)
	outer := r.Acquire(t, r.Key)
	inner := r.Site.AcquireIn(t, outer.Context(), r.Key)
	held := r.Proxy.Hold(redistest.Script(scripts.Release.SHA))
	r.Release(t, inner)
	held.Wait(t)
	r.Release(t, outer)
	late(t, r, held, "-1")
}

func TestLateReentry(t *testing.T) {
	r := locktest.Far(t, redistest.Shared(t), locktest.Impatient)
	outer := r.Acquire(t, r.Key)
	held := r.Proxy.Hold(redistest.Script(scripts.Acquire.SHA))
	inner := r.Site.AcquireIn(t, outer.Context(), r.Key)
	held.Wait(t)
	r.Release(t, inner)
	r.Release(t, outer)
	if reply := held.Release(t); reply != "[-2 ]" {
		t.Errorf("the late re-entry of a free lock was answered with %s", reply)
	}
	r.IsFree(t)
}

func TestLateRenewal(t *testing.T) {
	cfg := locktest.Impatient
	cfg.Renewal = 100 * time.Millisecond
	r := locktest.Far(t, redistest.Shared(t), cfg)
	hold := r.Acquire(t, r.Key)
	held := r.Proxy.Hold(redistest.Script(scripts.Renew.SHA))
	held.Wait(t)
	r.Release(t, hold)
	late(t, r, held, "[-1]")
	if reply := held.Release(t); reply != "[0]" {
		t.Errorf("the late renewal of a free lock was answered with %s", reply)
	}
	r.IsFree(t)
}

func TestLateYield(t *testing.T) {
	r := locktest.Far(t, redistest.Shared(t), locktest.Impatient)
	hold := r.Acquire(t, r.Key)
	granted := r.AcquireSoon(t, r.Key)
	r.AwaitWaiters(t, r.Key, 1)
	held := r.Proxy.Hold(redistest.Script(scripts.Yield.SHA))
	r.Release(t, hold)
	held.Wait(t)
	r.Release(t, locktest.Got(t, granted).Hold)
	late(t, r, held, "[-1 0]")
}

// A late acquire does take a lock that is free by then, for nobody. Whoever of this
// process wants the lock next finds that and has it at once.
func TestLateAcquire(t *testing.T) {
	r := locktest.Far(t, redistest.Shared(t), locktest.Impatient)
	held := r.Proxy.Hold(redistest.Script(scripts.Acquire.SHA))
	hold := r.Acquire(t, r.Key) // by the second try
	held.Wait(t)
	// In its own term it changes nothing that counts.
	if reply := held.Release(t); reply != "(nil)" {
		t.Errorf("in its own term: %s", reply)
	}
	r.HeldBy(t, r.Site, "1")
	r.Release(t, hold)
	if reply := held.Release(t); reply != "(nil)" {
		t.Errorf("when the lock is free: %s", reply)
	}
	stale := r.HeldBy(t, r.Site, "1")
	began := time.Now()
	hold = r.Acquire(t, r.Key)
	if took := time.Since(began); took > locktest.Soon {
		t.Errorf("our own late acquire kept us out for %v", took)
	}
	if owner := r.HeldBy(t, r.Site, "1"); owner == stale {
		t.Error("the late acquire's term was taken up again")
	}
	if reply := held.Release(t); !strings.HasPrefix(reply, "[") {
		t.Errorf("when the lock is held: %s", reply)
	}
	r.Release(t, hold)
	r.IsFree(t)
}

// The late acquire of a process that does not want the lock any more costs the
// others no more than its TTL, though nobody frees it.
func TestLateAcquireExpires(t *testing.T) {
	t.Parallel()
	cfg := locktest.Impatient
	cfg.Watchdog = 800 * time.Millisecond
	r := locktest.Far(t, redistest.Shared(t), cfg)
	held := r.Proxy.Hold(redistest.Script(scripts.Acquire.SHA))
	r.Release(t, r.Acquire(t, r.Key))
	held.Release(t)
	expiry := r.Expiry(t)
	other := locktest.Open(t, r.Server.URL(), locktest.NoPolling)
	g := locktest.Got(t, other.AcquireSoon(t, r.Key))
	if wait := g.At.Sub(expiry); wait < -time.Millisecond || wait > locktest.Soon {
		t.Errorf("let in %v after the end of the late acquire's TTL", wait)
	}
	r.Release(t, g.Hold)
}

// A try that gave up is cleaned up after: the acquire that arrives later finds
// nothing to stay for, or is found by the next who wants the lock here.
func TestLateTry(t *testing.T) {
	r := locktest.Far(t, redistest.Shared(t), locktest.Impatient)
	held := r.Proxy.Hold(redistest.Script(scripts.Acquire.SHA))
	_, err := r.Lock(r.LockName).TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrUnavailable)
	held.Release(t)
	hold, err := r.Lock(r.LockName).Acquire(locktest.Within(t), lockkeeper.WithWait(locktest.Soon))
	if err != nil {
		t.Fatal(err)
	}
	r.HeldBy(t, r.Site, "1")
	r.Release(t, hold)
	r.IsFree(t)
}
