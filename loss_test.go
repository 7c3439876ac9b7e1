package lockkeeper_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Somebody deletes or takes the key: the next renewal finds out.
func TestKeyMeddledWith(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	cfg := quick
	cfg.Renewal = 100 * time.Millisecond
	s, other := open(t, server.URL(), cfg), open(t, server.URL(), cfg)
	for what, test := range map[string]struct {
		meddle func(k key)
		reason messages.Reason
		taken  bool
	}{
		"deleted": {func(k key) { k.do(t, "DEL", k.name) }, messages.Reason_REASON_GONE, false},
		"taken": {func(k key) {
			k.do(t, "EVAL", "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], 1)", "1", k.name, redisson)
		}, messages.Reason_REASON_TAKEN, true},
		"another type":     {func(k key) { k.do(t, "SET", k.name, "text") }, messages.Reason_REASON_TAKEN, true},
		"forced here":      {func(k key) { force(t, s, k) }, messages.Reason_REASON_FORCED, false},
		"forced elsewhere": {func(k key) { force(t, other, k) }, messages.Reason_REASON_GONE, false},
	} {
		t.Run(what, func(t *testing.T) {
			for _, g := range guards(t, s, server) {
				end := g.expiry(t)
				test.meddle(g.key)
				g.lostInTime(t, end.Add(cfg.Renewal), false, test.reason)
				if test.taken {
					if !g.exists(t) {
						t.Errorf("%s: we have deleted somebody else's key", g.how)
					}
					g.do(t, "DEL", g.name)
				}
				s.passes(t, g.key)
			}
		})
	}
}

// A loss is told to every hold of a re-entered lock, whatever became of the one
// that was granted first, and of the contexts in between.
func TestLossReachesReentries(t *testing.T) {
	s := open(t, redistest.Shared(t).URL(), lockkeeper.Config{})
	for what, outerFirst := range map[string]bool{"the outer hold lasts": false, "the outer hold was released": true} {
		t.Run(what, func(t *testing.T) {
			k := newKey(t, redistest.Shared(t))
			outer := s.acquire(t, k)
			inner := acquireIn(t, outer.Context(), s, k)
			detached := acquireIn(t, context.WithoutCancel(inner.Context()), s, k)
			gone := acquireIn(t, context.WithoutCancel(inner.Context()), s, k)
			k.heldBy(t, s, "4")
			release(t, gone)
			working := detached.Context()
			if outerFirst {
				release(t, outer)
			}
			if !inner.Valid() || inner.Err() != nil || working.Err() != nil {
				t.Error("the inner holds ended with the outer one")
			}
			force(t, s, k)
			next := s.acquire(t, k)
			for _, hold := range []*lockkeeper.Hold{inner, detached} {
				isError(t, hold.Err(), lockkeeper.ErrLost)
				if hold.Valid() {
					t.Error("a hold that was lost is valid with the next one")
				}
				isError(t, hold.Ensure(within(t), 0), lockkeeper.ErrLost)
				isError(t, hold.Release(within(t)), lockkeeper.ErrLost)
			}
			isError(t, context.Cause(working), lockkeeper.ErrLost)
			isError(t, gone.Err(), lockkeeper.ErrNotHeld)
			k.heldBy(t, s, "1")
			release(t, next)
		})
	}
}

func force(t testing.TB, s *site, k key) {
	t.Helper()
	if was, err := s.Lock(k.lock).ForceRelease(within(t)); err != nil || !was {
		t.Fatalf("ForceRelease: %v, %v", was, err)
	}
}
