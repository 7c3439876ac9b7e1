package faults_test

// Replies that are lost, and commands that arrive late.

import (
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
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
