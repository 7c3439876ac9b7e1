package faults_test

// Replies that are lost, and commands that arrive late.

import (
	"slices"
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
