package locks_test

// One lock actor owns one key in Redis, whatever the face: plain and fenced, goroutine and
// message; and the locks that share a key without it, MultiLocks, hear of forced releases.

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestPlainAndFencedExcludeEachOther(t *testing.T) {
	for _, test := range []struct {
		name         string
		first, other func(s *locktest.Site, name string) *lockkeeper.Lock
	}{{"fenced first", kindsOf["fenced"], kindsOf["plain"]}, {"plain first", kindsOf["plain"], kindsOf["fenced"]}} {
		t.Run(test.name, func(t *testing.T) {
			k := locktest.NewKey(t, redistest.Shared(t))
			s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
			first, other := test.first(s, k.LockName), test.other(s, k.LockName)
			hold := locktest.Acquire(t, first)
			locktest.RefusedTry(t, other)
			_, err := other.Acquire(locktest.Within(t), lockkeeper.WithWait(50*time.Millisecond))
			locktest.IsError(t, err, lockkeeper.ErrTimeout)
			next := locktest.AcquireSoon(locktest.Within(t), other)
			s.AwaitWaiters(t, k, 1)
			if !hold.Valid() {
				t.Fatalf("the hold is lost: %v", hold.Err())
			}
			locktest.Release(t, hold)
			locktest.Release(t, locktest.Got(t, next).Hold)
			k.IsFree(t)
		})
	}
}

// A lock may be taken with a token at one time and without at another.
func TestPlainAndFencedHoldsShareTheirLock(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	plain, fenced := s.Lock(k.LockName), s.FencedLock(k.LockName)
	last := int64(0)
	for range 3 {
		outer := locktest.Acquire(t, plain)
		if token := outer.Token(); token != 0 {
			t.Fatalf("a plain hold has token %d", token)
		}
		inner, err := fenced.Acquire(outer.Context())
		if err != nil {
			t.Fatal(err)
		}
		if inner.Count() != 2 || inner.Token() <= last {
			t.Fatalf("the re-entry has count %d and token %d, after token %d", inner.Count(), inner.Token(), last)
		}
		last = inner.Token()
		locktest.Release(t, inner)
		locktest.Release(t, outer)
		hold := locktest.Acquire(t, fenced)
		if hold.Token() <= last {
			t.Fatalf("the hold has token %d, after token %d", hold.Token(), last)
		}
		last = hold.Token()
		locktest.Release(t, hold)
	}
}

// The same name cannot be a fair lock, say, while it is in use as a plain one: they are
// written in different formats under one key.
func TestNameInUseAsAnotherKindIsRefused(t *testing.T) {
	formats := []string{"plain", "fair", "write"}
	for _, in := range formats {
		for _, other := range formats {
			if in == other {
				continue
			}
			t.Run(in+" then "+other, func(t *testing.T) {
				k := locktest.NewKey(t, redistest.Shared(t))
				s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
				hold := locktest.Acquire(t, kindsOf[in](s, k.LockName))
				for range 2 {
					_, err := kindsOf[other](s, k.LockName).Acquire(locktest.Within(t))
					locktest.IsError(t, err, lockkeeper.ErrInvalid)
				}
				if !hold.Valid() {
					t.Fatalf("the hold is lost: %v", hold.Err())
				}
				locktest.Release(t, hold)
				locktest.Release(t, locktest.Acquire(t, kindsOf[other](s, k.LockName)))
				locktest.Release(t, locktest.Acquire(t, kindsOf[in](s, k.LockName)))
				k.IsFree(t)
			})
		}
	}
}

func TestForcedReleaseIsToldToNeighboursAtOnce(t *testing.T) {
	for _, test := range []struct {
		name          string
		hold, release func(s, other *locktest.Site, name string) *lockkeeper.Lock
	}{
		{"a member of a MultiLock",
			func(s, _ *locktest.Site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+"b"))
			},
			func(s, _ *locktest.Site, name string) *lockkeeper.Lock { return s.Lock(name) }},
		{"a member on another System",
			func(s, other *locktest.Site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name+"a"), other.Lock(name))
			},
			func(_, other *locktest.Site, name string) *lockkeeper.Lock { return other.Lock(name) }},
		{"the MultiLock of a plain lock",
			func(s, _ *locktest.Site, name string) *lockkeeper.Lock { return s.Lock(name) },
			func(s, _ *locktest.Site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+"b"))
			}},
		{"a MultiLock of another",
			func(s, _ *locktest.Site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+"b"))
			},
			func(s, _ *locktest.Site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+"c"))
			}},
		{"the plain face of a fenced hold",
			func(s, _ *locktest.Site, name string) *lockkeeper.Lock { return s.FencedLock(name) },
			func(s, _ *locktest.Site, name string) *lockkeeper.Lock { return s.Lock(name) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := locktest.NewKey(t, redistest.Shared(t))
			// The next renewal by itself would come after a minute.
			config := lockkeeper.Config{Watchdog: 3 * time.Minute}
			s, other := locktest.Open(t, k.Server.URL(), config), locktest.Open(t, k.Server.URL(), config)
			hold := locktest.Acquire(t, test.hold(s, other, k.LockName))
			if held, err := test.release(s, other, k.LockName).ForceRelease(locktest.Within(t)); err != nil || !held {
				t.Fatalf("the forced release: %v, %v", held, err)
			}
			locktest.Await(t, "the loss", hold.Context().Done())
			locktest.IsError(t, hold.Err(), lockkeeper.ErrLost)
		})
	}
}

// By message, too, the kinds of one key exclude each other, and a hold may be released by
// its id as either kind.
func TestPlainAndFencedByMessage(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	plain, fenced := &messages.Lock{Name: k.LockName}, &messages.Lock{Name: k.LockName, Kind: messages.Kind_KIND_FENCED}
	a, b := s.Probe(t), s.Probe(t)
	first := locktest.Ask[*messages.Acquired](t, a, &messages.Acquire{Lock: fenced})
	if first.Token == 0 {
		t.Fatal("a fenced hold has no token")
	}
	refusal := locktest.Ask[*messages.NotAcquired](t, b, &messages.Acquire{Lock: plain, Wait: durationpb.New(0)})
	if refusal.Reason != messages.Reason_REASON_HELD {
		t.Fatalf("refused because of %v", refusal.Reason)
	}
	locktest.Ask[*messages.Released](t, a, &messages.Release{Lock: plain, HoldId: first.HoldId})
}
