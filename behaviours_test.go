package lockkeeper_test

// Behaviours that the conformance suite does not reach; see conformance/BEHAVIOURS.md.

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
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// kindsOf makes a lock of each kind that one System has.
var kindsOf = map[string]func(s *site, name string) *lockkeeper.Lock{
	"plain":  func(s *site, name string) *lockkeeper.Lock { return s.Lock(name) },
	"fenced": func(s *site, name string) *lockkeeper.Lock { return s.FencedLock(name) },
	"fair":   func(s *site, name string) *lockkeeper.Lock { return s.FairLock(name) },
	"read":   func(s *site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Read() },
	"write":  func(s *site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Write() },
	"multi": func(s *site, name string) *lockkeeper.Lock {
		return lockkeeper.MultiLock(s.Lock(name), s.FairLock(name+" too"), s.ReadWriteLock(name+" read").Read())
	},
}

var briefly = lockkeeper.Config{Watchdog: watchdog, Poll: 300 * time.Millisecond, WaiterTimeout: time.Second}

func mustAcquire(t *testing.T, lock *lockkeeper.Lock, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	return got(t, acquiring(within(t), lock, options...)).hold
}

func acquiring(ctx context.Context, lock *lockkeeper.Lock, options ...lockkeeper.Option) <-chan grant {
	granted := make(chan grant, 1)
	go func() {
		hold, err := lock.Acquire(ctx, options...)
		granted <- grant{hold, err, time.Now()}
	}()
	return granted
}

// refusedTry checks that a try finds the lock held.
func refusedTry(t *testing.T, lock *lockkeeper.Lock) {
	t.Helper()
	redistest.Eventually(t, "an answer", func() bool {
		hold, err := lock.TryAcquire(within(t))
		switch {
		case err == nil:
			release(t, hold)
			t.Fatalf("%s was granted", lock.Name())
		case errors.Is(err, lockkeeper.ErrUnavailable):
			return false
		}
		isError(t, err, lockkeeper.ErrHeld)
		return true
	})
}

func waits(t *testing.T, lock *lockkeeper.Lock, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d waiters", n), func() bool {
		status, err := lock.Inspect(within(t))
		return err == nil && status.Waiters == n
	})
}

func isLost(t *testing.T, hold *lockkeeper.Hold) {
	t.Helper()
	redistest.Eventually(t, "the loss", func() bool { return errors.Is(hold.Err(), lockkeeper.ErrLost) })
}

// Redis forgets everything: the holder is told, its release fails, and later holds of
// the same name are renewed as if nothing had been.
func TestKindsOverARestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, other := open(t, server.URL(), briefly), open(t, server.URL(), briefly)
	holds, locks := map[string]*lockkeeper.Hold{}, map[string]*lockkeeper.Lock{}
	for kind, lock := range kindsOf {
		locks[kind] = lock(s, redistest.Name(t)+kind)
		holds[kind] = mustAcquire(t, locks[kind])
	}
	server.Restart(t)
	for _, hold := range holds {
		isLost(t, hold)
		isError(t, hold.Release(within(t)), lockkeeper.ErrLost)
	}
	for range 2 {
		for kind, lock := range locks {
			holds[kind] = mustAcquire(t, lock)
		}
		lasts(t, 3*watchdog/2, slices.Collect(maps.Values(holds))...)
		for _, hold := range holds {
			release(t, hold)
		}
	}
	for kind, lock := range locks {
		release(t, mustAcquire(t, kindsOf[kind](other, lock.Name())))
	}
}

// In a cluster all keys of a lock lie in one slot, and a MultiLock's members in any.
func TestKindsInACluster(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	s, other := open(t, servers[0].URL(), briefly), open(t, servers[1].URL(), briefly)
	for kind, make := range kindsOf {
		name := redistest.Name(t) + kind
		for range 3 {
			lock := make(s, name)
			hold := mustAcquire(t, lock)
			inner, err := lock.Acquire(hold.Context())
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if kind != "read" {
				refusedTry(t, make(other, name))
			}
			waiter := acquiring(within(t), make(other, name))
			release(t, inner)
			release(t, hold)
			release(t, got(t, waiter).hold)
		}
		if _, err := make(s, name).ForceRelease(within(t)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// The prefix comes before every key of every kind, inside the braces of those that have some.
func TestKindsWithAPrefix(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	prefixed := briefly
	prefixed.KeyPrefix = "test::"
	s, other := open(t, server.URL(), prefixed), open(t, server.URL(), prefixed)
	for kind, make := range kindsOf {
		name := redistest.Name(t) + kind
		hold := mustAcquire(t, make(s, name))
		waiter := acquiring(within(t), make(other, name))
		if kind != "read" {
			waits(t, make(other, name), 1)
		}
		keys := server.Keys(t, "*")
		for _, key := range keys {
			if strings.Contains(key, name) && !strings.Contains(key, "test::"+name) {
				t.Errorf("%s: the key %q has no prefix", kind, key)
			}
		}
		release(t, hold)
		release(t, got(t, waiter).hold)
	}
}

// Whoever does not hold a lock does not release it, whatever its kind and mode.
func TestStrangersReleaseNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s, elsewhere := open(t, server.URL(), briefly), open(t, server.URL(), briefly)
	for kind, lock := range map[string]*messages.Lock{
		"plain":  {},
		"fenced": {Kind: messages.Kind_KIND_FENCED},
		"fair":   {Kind: messages.Kind_KIND_FAIR},
		"write":  {Kind: messages.Kind_KIND_READ_WRITE},
		"read":   {Kind: messages.Kind_KIND_READ_WRITE, Mode: messages.Mode_MODE_SHARED},
	} {
		lock.Name = redistest.Name(t) + kind
		holder, stranger, abroad := s.probe(t), s.probe(t), elsewhere.probe(t)
		granted := ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: lock})
		for _, p := range []*probe{stranger, abroad} {
			refuses(t, p, &messages.Release{Lock: lock}, messages.Reason_REASON_NOT_HELD)
			refuses(t, p, &messages.Release{Lock: lock, Owner: p.pid}, messages.Reason_REASON_NOT_HELD)
		}
		refuses(t, abroad, &messages.Release{Lock: lock, HoldId: granted.HoldId}, messages.Reason_REASON_NOT_HELD)
		if status := ask[*messages.Status](t, holder, &messages.Inspect{Lock: lock}); !status.HeldHere {
			t.Errorf("%s: it was released by strangers: %v", kind, status)
		}
		ask[*messages.Released](t, holder, &messages.Release{Lock: lock})
	}
}

// lasts checks that none of the holds is lost for that long.
func lasts(t testing.TB, d time.Duration, holds ...*lockkeeper.Hold) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for _, hold := range holds {
		select {
		case <-hold.Context().Done():
		case <-ctx.Done():
		}
		if err := hold.Err(); err != nil {
			t.Fatal(err)
		}
	}
}
