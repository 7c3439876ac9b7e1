package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Somebody deletes or takes the key: the next renewal finds out.
func TestKeyMeddledWith(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	cfg := quick
	cfg.Renewal = 100 * time.Millisecond
	s, other := locktest.Open(t, server.URL(), cfg), locktest.Open(t, server.URL(), cfg)
	for what, test := range map[string]struct {
		meddle func(k locktest.Key)
		reason messages.Reason
		taken  bool
	}{
		"deleted": {func(k locktest.Key) { k.Do(t, "DEL", k.Name) }, messages.Reason_REASON_GONE, false},
		"taken": {func(k locktest.Key) {
			k.Do(t, "EVAL", "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], 1)", "1", k.Name, locktest.Redisson)
		}, messages.Reason_REASON_TAKEN, true},
		"another type":     {func(k locktest.Key) { k.Do(t, "SET", k.Name, "text") }, messages.Reason_REASON_TAKEN, true},
		"forced here":      {func(k locktest.Key) { locktest.Force(t, s, k) }, messages.Reason_REASON_FORCED, false},
		"forced elsewhere": {func(k locktest.Key) { locktest.Force(t, other, k) }, messages.Reason_REASON_GONE, false},
	} {
		t.Run(what, func(t *testing.T) {
			for _, g := range locktest.Guards(t, s, server) {
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
		})
	}
}

// A loss is told to every hold of a re-entered lock, whatever became of the one
// that was granted first, and of the contexts in between.
func TestLossReachesReentries(t *testing.T) {
	s := locktest.Open(t, redistest.Shared(t).URL(), lockkeeper.Config{})
	for what, outerFirst := range map[string]bool{"the outer hold lasts": false, "the outer hold was released": true} {
		t.Run(what, func(t *testing.T) {
			k := locktest.NewKey(t, redistest.Shared(t))
			outer := s.Acquire(t, k)
			inner := s.AcquireIn(t, outer.Context(), k)
			detached := s.AcquireIn(t, context.WithoutCancel(inner.Context()), k)
			gone := s.AcquireIn(t, context.WithoutCancel(inner.Context()), k)
			k.HeldBy(t, s, "4")
			locktest.Release(t, gone)
			working := detached.Context()
			if outerFirst {
				locktest.Release(t, outer)
			}
			if !inner.Valid() || inner.Err() != nil || working.Err() != nil {
				t.Error("the inner holds ended with the outer one")
			}
			locktest.Force(t, s, k)
			next := s.Acquire(t, k)
			for _, hold := range []*lockkeeper.Hold{inner, detached} {
				locktest.IsError(t, hold.Err(), lockkeeper.ErrLost)
				if hold.Valid() {
					t.Error("a hold that was lost is valid with the next one")
				}
				locktest.IsError(t, hold.Ensure(locktest.Within(t), 0), lockkeeper.ErrLost)
				locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
			}
			locktest.IsError(t, context.Cause(working), lockkeeper.ErrLost)
			locktest.IsError(t, gone.Err(), lockkeeper.ErrNotHeld)
			k.HeldBy(t, s, "1")
			locktest.Release(t, next)
		})
	}
}
