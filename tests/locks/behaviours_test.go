package locks_test

// Behaviours that the conformance suite does not reach; see conformance/BEHAVIOURS.md.

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// kindsOf makes a lock of each kind that one System has.
var kindsOf = map[string]func(s *locktest.Site, name string) *lockkeeper.Lock{
	"plain":  func(s *locktest.Site, name string) *lockkeeper.Lock { return s.Lock(name) },
	"fenced": func(s *locktest.Site, name string) *lockkeeper.Lock { return s.FencedLock(name) },
	"fair":   func(s *locktest.Site, name string) *lockkeeper.Lock { return s.FairLock(name) },
	"read":   func(s *locktest.Site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Read() },
	"write":  func(s *locktest.Site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Write() },
	"multi": func(s *locktest.Site, name string) *lockkeeper.Lock {
		return lockkeeper.MultiLock(s.Lock(name), s.FairLock(name+" too"), s.ReadWriteLock(name+" read").Read())
	},
}

// Redis forgets everything: the holder is told, its release fails, and later holds of
// the same name are renewed as if nothing had been.
func TestKindsOverARestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, other := locktest.Open(t, server.URL(), locktest.Briefly), locktest.Open(t, server.URL(), locktest.Briefly)
	holds, locks := map[string]*lockkeeper.Hold{}, map[string]*lockkeeper.Lock{}
	for kind, lock := range kindsOf {
		locks[kind] = lock(s, redistest.Name(t)+kind)
		holds[kind] = locktest.Acquire(t, locks[kind])
	}
	server.Restart(t)
	for _, hold := range holds {
		locktest.IsLost(t, hold)
		locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
	}
	for range 2 {
		for kind, lock := range locks {
			holds[kind] = locktest.Acquire(t, lock)
		}
		locktest.Lasts(t, 3*locktest.Watchdog/2, slices.Collect(maps.Values(holds))...)
		for _, hold := range holds {
			locktest.Release(t, hold)
		}
	}
	for kind, lock := range locks {
		locktest.Release(t, locktest.Acquire(t, kindsOf[kind](other, lock.Name())))
	}
}

// In a cluster all keys of a lock lie in one slot, and a MultiLock's members in any.
func TestKindsInACluster(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	s, other := locktest.Open(t, servers[0].URL(), locktest.Briefly), locktest.Open(t, servers[1].URL(), locktest.Briefly)
	for kind, make := range kindsOf {
		name := redistest.Name(t) + kind
		for range 3 {
			lock := make(s, name)
			hold := locktest.Acquire(t, lock)
			inner, err := lock.Acquire(hold.Context())
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if kind != "read" {
				locktest.RefusedTry(t, make(other, name))
			}
			waiter := locktest.AcquireSoon(locktest.Within(t), make(other, name))
			locktest.Release(t, inner)
			locktest.Release(t, hold)
			locktest.Release(t, locktest.Got(t, waiter).Hold)
		}
		if _, err := make(s, name).ForceRelease(locktest.Within(t)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// The prefix comes before every key of every kind, inside the braces of those that have some.
func TestKindsWithAPrefix(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	prefixed := locktest.Briefly
	prefixed.KeyPrefix = "test::"
	s, other := locktest.Open(t, server.URL(), prefixed), locktest.Open(t, server.URL(), prefixed)
	for kind, make := range kindsOf {
		name := redistest.Name(t) + kind
		hold := locktest.Acquire(t, make(s, name))
		waiter := locktest.AcquireSoon(locktest.Within(t), make(other, name))
		if kind != "read" {
			locktest.AwaitWaiters(t, make(other, name), 1)
		}
		keys := server.Keys(t, "*")
		for _, key := range keys {
			if strings.Contains(key, name) && !strings.Contains(key, "test::"+name) {
				t.Errorf("%s: the key %q has no prefix", kind, key)
			}
		}
		locktest.Release(t, hold)
		locktest.Release(t, locktest.Got(t, waiter).Hold)
	}
}

// Whoever does not hold a lock does not release it, whatever its kind and mode.
func TestStrangersReleaseNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s, elsewhere := locktest.Open(t, server.URL(), locktest.Briefly), locktest.Open(t, server.URL(), locktest.Briefly)
	for kind, lock := range map[string]*messages.Lock{
		"plain":  {},
		"fenced": {Kind: messages.Kind_KIND_FENCED},
		"fair":   {Kind: messages.Kind_KIND_FAIR},
		"write":  {Kind: messages.Kind_KIND_READ_WRITE},
		"read":   {Kind: messages.Kind_KIND_READ_WRITE, Mode: messages.Mode_MODE_SHARED},
	} {
		lock.Name = redistest.Name(t) + kind
		holder, stranger, abroad := s.Probe(t), s.Probe(t), elsewhere.Probe(t)
		granted := locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: lock})
		for _, p := range []*locktest.Probe{stranger, abroad} {
			locktest.Refuses(t, p, &messages.Release{Lock: lock}, messages.Reason_REASON_NOT_HELD)
			locktest.Refuses(t, p, &messages.Release{Lock: lock, Owner: p.Pid}, messages.Reason_REASON_NOT_HELD)
		}
		locktest.Refuses(t, abroad, &messages.Release{Lock: lock, HoldId: granted.HoldId}, messages.Reason_REASON_NOT_HELD)
		if status := locktest.Ask[*messages.Status](t, holder, &messages.Inspect{Lock: lock}); !status.HeldHere {
			t.Errorf("%s: it was released by strangers: %v", kind, status)
		}
		locktest.Ask[*messages.Released](t, holder, &messages.Release{Lock: lock})
	}
}
