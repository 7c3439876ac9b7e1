package locks_test

// Cases beyond the conformance suite, for each kind; see tests/conformance/BEHAVIOURS.md.

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// In a cluster, all keys of a lock lie in one slot; the members of a MultiLock may lie in any.
func TestCluster_ServesEveryKind(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	s, other := locktest.Open(t, servers[0].URL(), locktest.ShortTimeouts), locktest.Open(t, servers[1].URL(), locktest.ShortTimeouts)
	for kind, of := range locktest.Kinds {
		name := redistest.Name(t) + kind
		for range 3 {
			lock, elsewhere := of(s, name), of(other, name)
			hold := locktest.Acquire(t, lock)
			inner := locktest.AcquireIn(t, hold.Context(), lock)
			if kind != "read" {
				locktest.ExpectRefused(t, lockkeeper.ErrHeld, elsewhere)
			}
			waiter := locktest.AcquireSoon(locktest.Within(t), elsewhere)
			locktest.Release(t, inner)
			locktest.Release(t, hold)
			locktest.Release(t, locktest.Got(t, waiter).Hold)
		}
		if _, err := of(s, name).ForceRelease(locktest.Within(t)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	// Names whose key and channel would lie in different slots.
	for _, name := range []string{"a{b", "a}b", "{}x", "a{}b{c}"} {
		refusesName(t, s, name, "brace")
	}
	for _, name := range []string{"x", "a{b}c", "{a}b"} {
		locktest.ExpectGranted(t, s.Lock(name))
	}
}

// Only the holder of a lock can release it, whatever the kind, the mode, and the hold id in the request.
func TestRelease_FreesOnlyTheHoldersOwnHold(t *testing.T) {
	t.Parallel()
	s, elsewhere, k := locktest.NewTwo(t, locktest.ShortTimeouts)
	for kind := range locktest.Kinds {
		if kind == "multi" {
			continue // it cannot be named by message
		}
		lock := locktest.KindMessage(kind, k.LockName+kind)
		holder, other, remote := s.Probe(t), s.Probe(t), elsewhere.Probe(t)
		refused := func(p *locktest.Probe, release *messages.Release) {
			t.Helper()
			if release.Lock == nil {
				release.Lock = lock
			}
			locktest.ExpectRefusal(t, p, release, messages.Reason_REASON_NOT_HELD)
		}
		granted := locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: lock})
		for _, p := range []*locktest.Probe{other, remote} {
			refused(p, &messages.Release{})
			refused(p, &messages.Release{Owner: p.Pid})
		}
		refused(remote, &messages.Release{HoldId: granted.HoldId})
		refused(other, &messages.Release{Lock: locktest.KindMessage(kind, "another"), HoldId: granted.HoldId})
		for _, id := range []string{"0", "1", "-1", "!", " ", "zzzzzzzzzzzzzzzzzzzzzzzzzzz", "3w5e11264sgsf", granted.HoldId + "0", "\xff"} {
			refused(other, &messages.Release{HoldId: id})
		}
		s.Actors.Root.Send(s.Guardian(), &messages.Release{Lock: lock})
		locktest.Future[*messages.NotReleased](t, s, &messages.Release{Lock: lock})
		if status := locktest.Ask[*messages.Status](t, holder, &messages.Inspect{Lock: lock}); !status.HeldHere {
			t.Errorf("%s: released without the hold: %v", kind, status)
		}
		locktest.Ask[*messages.Released](t, holder, &messages.Release{Lock: lock})
		refused(holder, &messages.Release{})
		refused(holder, &messages.Release{HoldId: granted.HoldId})
	}
}

// Redis with full memory still allows a key to be deleted: a hold is released then, however often it was re-entered,
// by concurrent calls or by messages in a row.
func TestRelease_WorksWhileRedisIsFull(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{})
	p, byMessage := s.Probe(t), locktest.NewKey(t, k.Server)
	for range 3 {
		locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: byMessage.Message()})
	}
	k.Do(t, "CONFIG", "SET", "maxmemory", "1")
	for range 3 {
		p.Send(&messages.Release{Lock: byMessage.Message()})
	}
	for range 3 {
		locktest.Next[*messages.Released](t, p)
	}
	byMessage.IsFree(t)
	for kind, of := range locktest.Kinds {
		k.Do(t, "CONFIG", "SET", "maxmemory", "0")
		lock, released := of(s, k.LockName+kind), make(chan error, 2)
		outer := locktest.Acquire(t, lock)
		inner := locktest.AcquireIn(t, outer.Context(), lock)
		k.Do(t, "CONFIG", "SET", "maxmemory", "1")
		for _, hold := range []*lockkeeper.Hold{inner, outer} {
			go func() { released <- hold.Release(locktest.Within(t)) }()
		}
		for range 2 {
			if err := locktest.Await(t, "the release", released); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		if status, err := lock.Inspect(locktest.Within(t)); err != nil || status.Locked {
			t.Errorf("%s: after the release it is %+v (%v)", kind, status, err)
		}
	}
	k.Do(t, "CONFIG", "SET", "maxmemory", "0")
}
