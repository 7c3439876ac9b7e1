package readwrite_test

// How the holds of readers and writers end.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A reader with a lease of its own, or a max hold, ends alone, whoever was first.
func TestReadersEndAlone(t *testing.T) {
	const watchdog = 1500 * time.Millisecond
	for what, test := range map[string]struct {
		option lockkeeper.Option
		reason messages.Reason
	}{
		"lease":    {lockkeeper.WithLease(time.Second), messages.Reason_REASON_EXPIRED},
		"max hold": {lockkeeper.WithMaxHold(time.Second), messages.Reason_REASON_MAX_HOLD},
	} {
		for _, order := range []string{"first", "last"} {
			t.Run(what+" "+order, func(t *testing.T) {
				t.Parallel()
				k := newRWKey(t, redistest.Shared(t))
				s, other := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: watchdog}), locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: watchdog})
				var bounded *lockkeeper.Hold
				if order == "first" {
					bounded = locktest.Acquire(t, k.read(s), test.option)
				}
				stays := []*lockkeeper.Hold{locktest.Acquire(t, k.read(s)), locktest.Acquire(t, k.read(other))}
				if order == "last" {
					bounded = locktest.Acquire(t, k.read(s), test.option)
				}
				locktest.EndedBy(t, bounded, test.reason)
				locktest.IsError(t, bounded.Release(locktest.Within(t)), lockkeeper.ErrLost)
				began := k.Expiry(t)
				redistest.Eventually(t, "renewals over twice the lease", func() bool { return k.Expiry(t).Sub(began) > 2*watchdog })
				k.heldAs(t, "read", "1", s, other)
				for _, hold := range stays {
					if !hold.Valid() {
						t.Errorf("a reader ended with another: %v", hold.Err())
					}
					locktest.Release(t, hold)
				}
				k.awaitNothing(t)
			})
		}
	}
}

// All who share the lock are told of its loss.
func TestLossIsToldToAllReaders(t *testing.T) {
	for what, test := range map[string]struct {
		meddle func(t *testing.T, k rwKey, s *locktest.Site)
		reason messages.Reason
	}{
		"deleted": {func(t *testing.T, k rwKey, _ *locktest.Site) { k.Do(t, "DEL", k.Name) }, messages.Reason_REASON_GONE},
		"taken": {func(t *testing.T, k rwKey, _ *locktest.Site) {
			k.Do(t, "DEL", k.Name)
			k.Do(t, "HSET", k.Name, "mode", "write", locktest.Redisson+":write", "1")
			k.Do(t, "PEXPIRE", k.Name, "3000")
		}, messages.Reason_REASON_TAKEN},
		"forced": {func(t *testing.T, k rwKey, s *locktest.Site) {
			if was, err := k.read(s).ForceRelease(locktest.Within(t)); err != nil || !was {
				t.Errorf("force release: %v, %v", was, err)
			}
		}, messages.Reason_REASON_FORCED},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newRWKey(t, redistest.Shared(t))
			s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: 1500 * time.Millisecond, Poll: 300 * time.Millisecond})
			holds := []*lockkeeper.Hold{locktest.Acquire(t, k.read(s)), locktest.Acquire(t, k.read(s))}
			holds = append(holds, locktest.AcquireIn(t, holds[0].Context(), k.read(s)))
			var readers []*locktest.Client
			var ids []string
			for i := range 2 {
				reader := s.Users(k.Server).Client(t, fmt.Sprint("reader ", i))
				reader.Request(&messages.Acquire{Lock: k.message(shared)})
				ids = append(ids, locktest.Expect[*messages.Acquired](t, reader).HoldId)
				readers = append(readers, reader)
			}
			test.meddle(t, k, s)
			for _, hold := range holds {
				locktest.EndedBy(t, hold, test.reason)
			}
			for i, reader := range readers {
				if lost := locktest.Expect[*messages.LeaseLost](t, reader); lost.Reason != test.reason || lost.HoldId != ids[i] {
					t.Errorf("told %v", lost)
				}
				reader.Request(&messages.Release{Lock: k.message(shared), HoldId: ids[i]})
				if late := locktest.Expect[*messages.NotReleased](t, reader); late.Reason != messages.Reason_REASON_LOST {
					t.Errorf("a release after the loss: %v", late)
				}
			}
			locktest.Release(t, locktest.Acquire(t, k.write(s)))
			k.awaitNothing(t)
		})
	}
}

// A force release concerns one mode.
func TestForceReleasePerMode(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	a, b := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	force := func(l *lockkeeper.Lock, want bool) {
		t.Helper()
		if was, err := l.ForceRelease(locktest.Within(t)); err != nil || was != want {
			t.Errorf("force release: %v, %v, want %v", was, err, want)
		}
	}
	writing := locktest.Acquire(t, k.write(a))
	reading := locktest.AcquireIn(t, writing.Context(), k.read(a))
	reader := locktest.AcquireSoon(locktest.Within(t), k.read(b))
	k.AwaitSubscribers(t, 1)
	force(k.read(a), false)
	force(k.read(b), false)
	if !writing.Valid() || !reading.Valid() {
		t.Fatal("the writer was hit by a force release of the readers")
	}
	force(k.write(a), true)
	locktest.EndedBy(t, writing, messages.Reason_REASON_FORCED)
	locktest.EndedBy(t, reading, messages.Reason_REASON_FORCED)
	next := locktest.Got(t, reader).Hold
	force(k.write(a), false)
	force(k.write(b), false)
	if !next.Valid() {
		t.Fatal("the reader was hit by a force release of the writer")
	}
	writer := locktest.AcquireSoon(locktest.Within(t), k.write(a))
	k.awaitAnnounced(t)
	force(k.read(b), true)
	locktest.EndedBy(t, next, messages.Reason_REASON_FORCED)
	locktest.Release(t, locktest.Got(t, writer).Hold)
	force(k.read(a), false)
	k.awaitNothing(t)
}

// Closing a system ends all that its readers share.
func TestCloseWithReaders(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	s, other := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	var holds []*lockkeeper.Hold
	for range 3 {
		holds = append(holds, locktest.Acquire(t, k.read(s)))
	}
	nested := locktest.AcquireIn(t, holds[0].Context(), k.read(s))
	writer := locktest.AcquireSoon(locktest.Within(t), k.write(other))
	k.awaitAnnounced(t)
	if err := s.Close(locktest.Within(t)); err != nil {
		t.Fatal(err)
	}
	for _, hold := range append(holds, nested) {
		locktest.EndedBy(t, hold, messages.Reason_REASON_CLOSED)
	}
	locktest.Release(t, locktest.Got(t, writer).Hold)
	k.awaitNothing(t)
}

// The death of a reader ends its hold, however often it has it, and nobody else's.
func TestDeathOfAReader(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	s, other := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	users := s.Users(k.Server)
	dies, stays, waits := users.Client(t, "dies"), users.Client(t, "stays"), users.Client(t, "waits")
	for range 2 {
		dies.Request(&messages.Acquire{Lock: k.message(shared)})
		locktest.Expect[*messages.Acquired](t, dies)
	}
	stays.Request(&messages.Acquire{Lock: k.message(shared)})
	locktest.Expect[*messages.Acquired](t, stays)
	k.heldAs(t, "read", "2", s)
	waits.Request(&messages.Acquire{Lock: k.message(0)})
	locktest.AwaitWaiters(t, k.write(s), 1)
	users.System.Root.Stop(waits.Pid)
	locktest.AwaitWaiters(t, k.write(s), 0)
	users.System.Root.Stop(dies.Pid)
	redistest.Eventually(t, "the dead reader's holds to be gone", func() bool {
		_, holders := k.holders(t)
		return len(holders) == 1 && slices.Collect(maps.Values(holders))[0] == "1"
	})
	status := locktest.Ask[*messages.Status](t, s.Probe(t), &messages.Inspect{Lock: k.message(shared)})
	if !status.Locked || !status.HeldHere || status.Mode != shared || status.Holders != 1 {
		t.Errorf("status %v", status)
	}
	stays.ExpectNothing()
	writer := locktest.AcquireSoon(locktest.Within(t), k.write(other))
	k.awaitAnnounced(t)
	users.System.Root.Stop(stays.Pid)
	locktest.Release(t, locktest.Got(t, writer).Hold)
	k.awaitNothing(t)
}

// A crash of the lock actor costs no reader its hold.
func TestCrashWithReaders(t *testing.T) {
	for _, message := range []string{"*actors.replied", "actors.tick", "*actors.Call"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			k := newRWKey(t, redistest.Shared(t))
			const watchdog = 1500 * time.Millisecond
			crashing := &locktest.Saboteur{Spared: map[string]bool{}}
			s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: watchdog, Poll: 300 * time.Millisecond})
			cfg := lockkeeper.Config{Watchdog: watchdog, Poll: 300 * time.Millisecond}
			shaky := locktest.Open(t, k.Server.URL(), cfg, crashing.Middleware)
			var holds []*lockkeeper.Hold
			for range 3 {
				holds = append(holds, locktest.Acquire(t, k.read(shaky)))
			}
			holds = append(holds, locktest.AcquireIn(t, holds[1].Context(), k.read(shaky)))
			writer := locktest.AcquireSoon(locktest.Within(t), k.write(s))
			k.awaitAnnounced(t)
			crashing.Hit(locktest.Once(message), locktest.Once(message))
			_, _ = k.read(shaky).Inspect(locktest.Within(t))
			_, _ = k.read(shaky).Inspect(locktest.Within(t))
			redistest.Eventually(t, "two crashes", func() bool { return crashing.Count.Load() == 2 })
			began := k.Expiry(t)
			redistest.Eventually(t, "renewals over twice the lease", func() bool { return k.Expiry(t).Sub(began) > 2*watchdog })
			for _, hold := range holds {
				if !hold.Valid() {
					t.Errorf("a reader lost its hold: %v", hold.Err())
				}
				locktest.Pending(t, writer, "there are readers")
				locktest.Release(t, hold)
			}
			locktest.Release(t, locktest.Got(t, writer).Hold)
			k.awaitNothing(t)
		})
	}
}

// What is done though nobody hears of it is done once.
func TestReadWriteLostReplies(t *testing.T) {
	locktest.Losing(t, scripts.ReadWriteSet, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		k := newRWKey(t, r.Server)
		ctx := r.Context(t)
		lose()
		writing := locktest.AcquireIn(t, ctx, k.write(r.Site))
		lose()
		reading := locktest.AcquireIn(t, context.WithoutCancel(writing.Context()), k.read(r.Site))
		if mode, holders := k.holders(t); mode != "write" || len(holders) != 2 {
			t.Errorf("held for %q by %v", mode, holders)
		}
		lose()
		r.Release(t, writing)
		// It stays a writer's in Redis: a late command might make it one again, and that
		// must not end what a reader shares with others.
		owner := k.heldTwice(t, "1")
		lose()
		again := locktest.AcquireIn(t, reading.Context(), k.read(r.Site))
		k.heldTwice(t, "2")
		lose()
		r.Release(t, again)
		k.heldTwice(t, "1")
		if left := k.pttl(t, k.leaseKey(owner, 2)); left > 0 {
			t.Errorf("the key of the second hold is left for %v", left)
		}
		r.Release(t, reading)
		k.awaitNothing(t)
	})
}
