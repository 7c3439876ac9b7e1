package locks_test

// Cases beyond the conformance suite, for each kind; see tests/conformance/BEHAVIOURS.md.

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Redis loses all data: the holder is notified, its release fails, and later holds of the same name are renewed as
// usual.
func TestRestart_EndsHoldsOfEveryKind(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Watchdog: 3 * time.Second}
	s, k := locktest.NewOnOwnServer(t, cfg)
	other := locktest.Open(t, k.Server.URL(), cfg)
	holds, locks := map[string]*lockkeeper.Hold{}, map[string]*lockkeeper.Lock{}
	for kind, lock := range locktest.Kinds {
		locks[kind] = lock(s, kind)
		holds[kind] = locktest.Acquire(t, locks[kind])
	}
	k.Server.Restart(t)
	for _, hold := range holds {
		locktest.EndedBy(t, hold)
		locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
	}
	for kind, lock := range locks {
		holds[kind] = locktest.Acquire(t, lock)
	}
	locktest.ExpectValidFor(t, 3*cfg.Watchdog/2, slices.Collect(maps.Values(holds))...)
	for kind, hold := range holds {
		locktest.Release(t, hold)
		locktest.ExpectGranted(t, locktest.Kinds[kind](other, kind))
	}
}

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

// The prefix comes before every key of every kind, inside the braces if there are any.
func TestKeyPrefix_IsInEveryKey(t *testing.T) {
	t.Parallel()
	prefixed := locktest.ShortTimeouts
	prefixed.KeyPrefix = "test::"
	s, k := locktest.NewOnOwnServer(t, prefixed)
	other := locktest.Open(t, k.Server.URL(), prefixed)
	for kind, of := range locktest.Kinds {
		name := redistest.Name(t) + kind
		hold := locktest.Acquire(t, of(s, name))
		waiter := locktest.AcquireSoon(locktest.Within(t), of(other, name))
		if kind != "read" {
			locktest.AwaitWaiters(t, of(other, name), 1)
		}
		for _, key := range k.Server.Keys(t, "*") {
			if strings.Contains(key, name) && !strings.Contains(key, "test::"+name) {
				t.Errorf("%s: the key %q has no prefix", kind, key)
			}
		}
		locktest.Release(t, hold)
		locktest.Release(t, locktest.Got(t, waiter).Hold)
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

// A release without a hold id reports that the owner's last hold was lost, until the owner has another one.
func TestRelease_ReportsALossUntilTheNextHold(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.ShortTimeouts)
	for kind := range locktest.Kinds {
		if kind == "multi" {
			continue // it cannot be named by message
		}
		lock, p := locktest.KindMessage(kind, k.LockName+kind), s.Probe(t)
		release := &messages.Release{Lock: lock}
		locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: lock})
		s.Actors.Root.Send(s.Guardian(), &messages.ForceRelease{Lock: lock})
		locktest.Next[*messages.LeaseLost](t, p)
		locktest.ExpectRefusal(t, p, release, messages.Reason_REASON_LOST, "forced")
		locktest.ExpectRefusal(t, p, release, messages.Reason_REASON_LOST, "forced")
		locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: lock})
		locktest.Ask[*messages.Released](t, p, release)
		locktest.ExpectRefusal(t, p, release, messages.Reason_REASON_NOT_HELD)
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

// A partial release that is refused for good still counts: the last release ends the hold.
func TestRelease_WorksAfterARejectedPartialRelease(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Start(t))
	k.Do(t, "ACL", "SETUSER", "no-hset", "reset", "on", ">pw", "~*", "&*", "+@all")
	s := locktest.Open(t, locktest.URLAs(k.Server, "no-hset", "pw"), lockkeeper.Config{CallTimeout: locktest.Soon})
	outer := s.Acquire(t, k)
	inner := s.AcquireIn(t, outer.Context(), k)
	k.Do(t, "ACL", "SETUSER", "no-hset", "-hset")
	locktest.IsError(t, inner.Release(locktest.Within(t)), lockkeeper.ErrRejected)
	locktest.ExpectValid(t, outer)
	locktest.Release(t, outer)
	k.IsFree(t)
	locktest.IsError(t, outer.Release(locktest.Within(t)), lockkeeper.ErrNotHeld)
}

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}
