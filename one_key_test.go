package lockkeeper_test

// One lock actor owns one key in Redis, whatever the face: plain and fenced, goroutine and
// message; and the locks that share a key without it, MultiLocks, hear of forced releases.

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestPlainAndFencedExcludeEachOther(t *testing.T) {
	for _, test := range []struct {
		name         string
		first, other func(s *site, name string) *lockkeeper.Lock
	}{{"fenced first", kindsOf["fenced"], kindsOf["plain"]}, {"plain first", kindsOf["plain"], kindsOf["fenced"]}} {
		t.Run(test.name, func(t *testing.T) {
			k := newKey(t, redistest.Shared(t))
			s := open(t, k.server.URL(), lockkeeper.Config{})
			first, other := test.first(s, k.lock), test.other(s, k.lock)
			hold := mustAcquire(t, first)
			refusedTry(t, other)
			_, err := other.Acquire(within(t), lockkeeper.WithWait(50*time.Millisecond))
			isError(t, err, lockkeeper.ErrTimeout)
			next := acquiring(within(t), other)
			s.awaitWaiters(t, k, 1)
			if !hold.Valid() {
				t.Fatalf("the hold is lost: %v", hold.Err())
			}
			release(t, hold)
			release(t, got(t, next).hold)
			k.isFree(t)
		})
	}
}

// A lock may be taken with a token at one time and without at another.
func TestPlainAndFencedHoldsShareTheirLock(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	plain, fenced := s.Lock(k.lock), s.FencedLock(k.lock)
	last := int64(0)
	for range 3 {
		outer := mustAcquire(t, plain)
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
		release(t, inner)
		release(t, outer)
		hold := mustAcquire(t, fenced)
		if hold.Token() <= last {
			t.Fatalf("the hold has token %d, after token %d", hold.Token(), last)
		}
		last = hold.Token()
		release(t, hold)
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
				k := newKey(t, redistest.Shared(t))
				s := open(t, k.server.URL(), lockkeeper.Config{})
				hold := mustAcquire(t, kindsOf[in](s, k.lock))
				for range 2 {
					_, err := kindsOf[other](s, k.lock).Acquire(within(t))
					isError(t, err, lockkeeper.ErrInvalid)
				}
				if !hold.Valid() {
					t.Fatalf("the hold is lost: %v", hold.Err())
				}
				release(t, hold)
				release(t, mustAcquire(t, kindsOf[other](s, k.lock)))
				release(t, mustAcquire(t, kindsOf[in](s, k.lock)))
				k.isFree(t)
			})
		}
	}
}

func TestForcedReleaseIsToldToNeighboursAtOnce(t *testing.T) {
	for _, test := range []struct {
		name          string
		hold, release func(s, other *site, name string) *lockkeeper.Lock
	}{
		{"a member of a MultiLock",
			func(s, _ *site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+"b"))
			},
			func(s, _ *site, name string) *lockkeeper.Lock { return s.Lock(name) }},
		{"a member on another System",
			func(s, other *site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name+"a"), other.Lock(name))
			},
			func(_, other *site, name string) *lockkeeper.Lock { return other.Lock(name) }},
		{"the MultiLock of a plain lock",
			func(s, _ *site, name string) *lockkeeper.Lock { return s.Lock(name) },
			func(s, _ *site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+"b"))
			}},
		{"a MultiLock of another",
			func(s, _ *site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+"b"))
			},
			func(s, _ *site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+"c"))
			}},
		{"the plain face of a fenced hold",
			func(s, _ *site, name string) *lockkeeper.Lock { return s.FencedLock(name) },
			func(s, _ *site, name string) *lockkeeper.Lock { return s.Lock(name) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newKey(t, redistest.Shared(t))
			// The next renewal by itself would come after a minute.
			config := lockkeeper.Config{Watchdog: 3 * time.Minute}
			s, other := open(t, k.server.URL(), config), open(t, k.server.URL(), config)
			hold := mustAcquire(t, test.hold(s, other, k.lock))
			if held, err := test.release(s, other, k.lock).ForceRelease(within(t)); err != nil || !held {
				t.Fatalf("the forced release: %v, %v", held, err)
			}
			await(t, "the loss", hold.Context().Done())
			isError(t, hold.Err(), lockkeeper.ErrLost)
		})
	}
}

// By message, too, the kinds of one key exclude each other, and a hold may be released by
// its id as either kind.
func TestPlainAndFencedByMessage(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	plain, fenced := &messages.Lock{Name: k.lock}, &messages.Lock{Name: k.lock, Kind: messages.Kind_KIND_FENCED}
	a, b := s.probe(t), s.probe(t)
	first := ask[*messages.Acquired](t, a, &messages.Acquire{Lock: fenced})
	if first.Token == 0 {
		t.Fatal("a fenced hold has no token")
	}
	refusal := ask[*messages.NotAcquired](t, b, &messages.Acquire{Lock: plain, Wait: durationpb.New(0)})
	if refusal.Reason != messages.Reason_REASON_HELD {
		t.Fatalf("refused because of %v", refusal.Reason)
	}
	ask[*messages.Released](t, a, &messages.Release{Lock: plain, HoldId: first.HoldId})
}
