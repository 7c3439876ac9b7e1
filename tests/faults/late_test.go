package faults_test

// Replies that are lost, and commands that arrive late.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestLostReply_AcquireIsGrantedOnce(t *testing.T) {
	locktest.WithLostReplies(t, scripts.Acquire, locktest.ShortCallTimeout, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		lose()
		outer := r.Acquire(t, r.Key)
		r.HeldBy(t, r.Site, "1")
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

// A try without a reply reports that the outcome is unknown, and does not hold the lock.
func TestLostReply_TryReportsUnknownOutcome(t *testing.T) {
	locktest.WithLostReplies(t, scripts.Acquire, locktest.ShortCallTimeout, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		lose()
		locktest.Fails(r.Lock(r.LockName).TryAcquire(r.Context(t)))(t, lockkeeper.ErrUnavailable)
		r.AwaitFree(t)
	})
}

func TestLostReply_ReleaseIsPublishedOnce(t *testing.T) {
	locktest.WithLostReplies(t, scripts.Release, locktest.ShortCallTimeout, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		outer, listener := r.Acquire(t, r.Key), r.Listen(t)
		inner := r.Site.AcquireIn(t, outer.Context(), r.Key)
		lose()
		r.Release(t, inner)
		r.HeldBy(t, r.Site, "1")
		locktest.ExpectValid(t, outer)
		lose()
		r.Release(t, outer)
		r.IsFree(t)
		if got := listener.Messages(t); !slices.Equal(got, []string{"0"}) {
			t.Errorf("published %q, want one 0", got)
		}
	})
}

func TestLostReply_RenewalIsRepeated(t *testing.T) {
	cfg := locktest.ShortCallTimeout
	cfg.Watchdog, cfg.Renewal = 10*time.Second, 200*time.Millisecond
	locktest.WithLostReplies(t, scripts.Renew, cfg, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
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
		// It may have gone through the dead connection: until there is another, renewals get no reply.
		redistest.Eventually(t, "a renewal with a reply", func() bool { return hold.Ensure(r.Context(t), cfg.Watchdog*98/100) == nil })
		r.Release(t, inner)
		r.Release(t, hold)
	})
}

// One request waits in this process, and one in another, which the lost reply lets in.
func TestLostReply_YieldServesBothProcesses(t *testing.T) {
	locktest.WithLostReplies(t, scripts.Yield, locktest.ShortCallTimeout, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
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
				t.Fatal("no waiter gets the lock")
			}
		}
	})
}

// A command that arrives after its term, in a term of another process or of the same one, or when the lock is free,
// changes nothing.
func TestLateCommands_ChangeNothing(t *testing.T) {
	calm := locktest.ShortCallTimeout // the connection is cut, so that no test waits for the end of a call
	calm.CallTimeout = locktest.Soon
	often := calm
	often.Renewal = 100 * time.Millisecond
	for what, test := range map[string]struct {
		cfg lockkeeper.Config
		// begin returns the command that is late, after the end of its term.
		begin func(t *testing.T, r *locktest.Remote) *redistest.Held
		reply string
	}{
		"release": {calm, func(t *testing.T, r *locktest.Remote) *redistest.Held {
			hold := r.Acquire(t, r.Key)
			held := r.Proxy.Hold(redistest.Script(scripts.Release.SHA))
			r.Release(t, hold) // by the second try
			return held
		}, "-1"},
		"re-entry": {calm, func(t *testing.T, r *locktest.Remote) *redistest.Held {
			outer := r.Acquire(t, r.Key)
			held := r.Proxy.Hold(redistest.Script(scripts.Acquire.SHA))
			inner := r.Site.AcquireIn(t, outer.Context(), r.Key)
			held.Wait(t)
			r.Release(t, inner)
			r.Release(t, outer)
			return held
		}, ""},
		"renewal": {often, func(t *testing.T, r *locktest.Remote) *redistest.Held {
			hold := r.Acquire(t, r.Key)
			held := r.Proxy.Hold(redistest.Script(scripts.Renew.SHA))
			held.Wait(t)
			r.Release(t, hold)
			return held
		}, "[-1]"},
		"yield": {calm, func(t *testing.T, r *locktest.Remote) *redistest.Held {
			hold := r.Acquire(t, r.Key)
			granted := r.AcquireSoon(t, r.Key)
			r.AwaitWaiters(t, r.Key, 1)
			held := r.Proxy.Hold(redistest.Script(scripts.Yield.SHA))
			r.Release(t, hold)
			held.Wait(t)
			r.Release(t, locktest.Got(t, granted).Hold)
			return held
		}, "[-1 0]"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := locktest.NewRemote(t, redistest.Shared(t), test.cfg)
			held := test.begin(t, r)
			held.Wait(t)
			listener := r.Listen(t)
			unchanged := func(when string) {
				t.Helper()
				owners, expiry := r.Owners(t), r.Expiry(t)
				if reply := held.Release(t); reply != test.reply && test.reply != "" {
					t.Errorf("%s: the late command was answered with %s, want %s", when, reply, test.reply)
				}
				if now := r.Owners(t); fmt.Sprint(now) != fmt.Sprint(owners) || r.Expiry(t) != expiry {
					t.Errorf("%s: the late command turned %v until %v into %v until %v", when, owners, expiry, now, r.Expiry(t))
				}
				if got := listener.Messages(t); len(got) > 0 {
					t.Errorf("%s: the late command published %q", when, got)
				}
			}
			hold := r.Acquire(t, r.Key, lockkeeper.WithLease(time.Minute))
			unchanged("a later term of this process")
			locktest.ExpectValid(t, hold)
			r.Release(t, hold)
			listener.Messages(t)
			r.TakeAs(t, locktest.Redisson, time.Minute)
			unchanged("a term of another process")
			r.Unlock(t)
			held.Release(t)
			r.IsFree(t)
		})
	}
}

// A late acquire does take a lock that is free by then, without a request behind it. The next request of this process
// finds that lock and is granted it at once.
func TestLateAcquire_IsReplacedByTheNextRequest(t *testing.T) {
	t.Parallel()
	r := locktest.NewRemote(t, redistest.Shared(t), locktest.ShortCallTimeout)
	held := r.Proxy.Hold(redistest.Script(scripts.Acquire.SHA))
	hold := r.Acquire(t, r.Key) // by the second try
	held.Wait(t)
	// In its own term it changes nothing.
	locktest.Equal(t, held.Release(t), "(nil)", "in its own term: %s")
	r.HeldBy(t, r.Site, "1")
	r.Release(t, hold)
	locktest.Equal(t, held.Release(t), "(nil)", "when the lock is free: %s")
	stale := r.HeldBy(t, r.Site, "1")
	hold = r.Acquire(t, r.Key) // the late one does not delay it, although its TTL is two minutes
	if owner := r.HeldBy(t, r.Site, "1"); owner == stale {
		t.Error("the late acquire's term was continued")
	}
	if reply := held.Release(t); !strings.HasPrefix(reply, "[") {
		t.Errorf("when the lock is held: %s", reply)
	}
	r.Release(t, hold)
	r.IsFree(t)
}
