package lockkeeper_test

// How the holds of readers and writers end.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
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
				s, other := open(t, k.server.URL(), lockkeeper.Config{Watchdog: watchdog}), open(t, k.server.URL(), lockkeeper.Config{Watchdog: watchdog})
				var bounded *lockkeeper.Hold
				if order == "first" {
					bounded = obtain(t, k.read(s), test.option)
				}
				stays := []*lockkeeper.Hold{obtain(t, k.read(s)), obtain(t, k.read(other))}
				if order == "last" {
					bounded = obtain(t, k.read(s), test.option)
				}
				endedBy(t, bounded, test.reason)
				isError(t, bounded.Release(within(t)), lockkeeper.ErrLost)
				began := k.expiry(t)
				redistest.Eventually(t, "renewals over twice the lease", func() bool { return k.expiry(t).Sub(began) > 2*watchdog })
				k.heldAs(t, "read", "1", s, other)
				for _, hold := range stays {
					if !hold.Valid() {
						t.Errorf("a reader ended with another: %v", hold.Err())
					}
					release(t, hold)
				}
				k.awaitNothing(t)
			})
		}
	}
}

// All who share the lock are told of its loss.
func TestLossIsToldToAllReaders(t *testing.T) {
	for what, test := range map[string]struct {
		meddle func(t *testing.T, k rwKey, s *site)
		reason messages.Reason
	}{
		"deleted": {func(t *testing.T, k rwKey, _ *site) { k.do(t, "DEL", k.name) }, messages.Reason_REASON_GONE},
		"taken": {func(t *testing.T, k rwKey, _ *site) {
			k.do(t, "DEL", k.name)
			k.do(t, "HSET", k.name, "mode", "write", redisson+":write", "1")
			k.do(t, "PEXPIRE", k.name, "3000")
		}, messages.Reason_REASON_TAKEN},
		"forced": {func(t *testing.T, k rwKey, s *site) {
			if was, err := k.read(s).ForceRelease(within(t)); err != nil || !was {
				t.Errorf("force release: %v, %v", was, err)
			}
		}, messages.Reason_REASON_FORCED},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newRWKey(t, redistest.Shared(t))
			s := open(t, k.server.URL(), lockkeeper.Config{Watchdog: 1500 * time.Millisecond, Poll: 300 * time.Millisecond})
			holds := []*lockkeeper.Hold{obtain(t, k.read(s)), obtain(t, k.read(s))}
			holds = append(holds, obtainIn(t, holds[0].Context(), k.read(s)))
			var readers []*client
			var ids []string
			for i := range 2 {
				reader := s.users(k.server).client(t, fmt.Sprint("reader ", i))
				reader.request(&messages.Acquire{Lock: k.message(shared)})
				ids = append(ids, expect[*messages.Acquired](t, reader).HoldId)
				readers = append(readers, reader)
			}
			test.meddle(t, k, s)
			for _, hold := range holds {
				endedBy(t, hold, test.reason)
			}
			for i, reader := range readers {
				if lost := expect[*messages.LeaseLost](t, reader); lost.Reason != test.reason || lost.HoldId != ids[i] {
					t.Errorf("told %v", lost)
				}
				reader.request(&messages.Release{Lock: k.message(shared), HoldId: ids[i]})
				if late := expect[*messages.NotReleased](t, reader); late.Reason != messages.Reason_REASON_LOST {
					t.Errorf("a release after the loss: %v", late)
				}
			}
			release(t, obtain(t, k.write(s)))
			k.awaitNothing(t)
		})
	}
}

// A force release concerns one mode.
func TestForceReleasePerMode(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	a, b := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
	force := func(l *lockkeeper.Lock, want bool) {
		t.Helper()
		if was, err := l.ForceRelease(within(t)); err != nil || was != want {
			t.Errorf("force release: %v, %v, want %v", was, err, want)
		}
	}
	writing := obtain(t, k.write(a))
	reading := obtainIn(t, writing.Context(), k.read(a))
	reader := obtainSoon(within(t), k.read(b))
	k.awaitSubscribers(t, 1)
	force(k.read(a), false)
	force(k.read(b), false)
	if !writing.Valid() || !reading.Valid() {
		t.Fatal("the writer was hit by a force release of the readers")
	}
	force(k.write(a), true)
	endedBy(t, writing, messages.Reason_REASON_FORCED)
	endedBy(t, reading, messages.Reason_REASON_FORCED)
	next := got(t, reader).hold
	force(k.write(a), false)
	force(k.write(b), false)
	if !next.Valid() {
		t.Fatal("the reader was hit by a force release of the writer")
	}
	writer := obtainSoon(within(t), k.write(a))
	k.awaitAnnounced(t)
	force(k.read(b), true)
	endedBy(t, next, messages.Reason_REASON_FORCED)
	release(t, got(t, writer).hold)
	force(k.read(a), false)
	k.awaitNothing(t)
}

// Closing a system ends all that its readers share.
func TestCloseWithReaders(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	s, other := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
	var holds []*lockkeeper.Hold
	for range 3 {
		holds = append(holds, obtain(t, k.read(s)))
	}
	nested := obtainIn(t, holds[0].Context(), k.read(s))
	writer := obtainSoon(within(t), k.write(other))
	k.awaitAnnounced(t)
	if err := s.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	for _, hold := range append(holds, nested) {
		endedBy(t, hold, messages.Reason_REASON_CLOSED)
	}
	release(t, got(t, writer).hold)
	k.awaitNothing(t)
}

// The death of a reader ends its hold, however often it has it, and nobody else's.
func TestDeathOfAReader(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	s, other := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
	users := s.users(k.server)
	dies, stays, waits := users.client(t, "dies"), users.client(t, "stays"), users.client(t, "waits")
	for range 2 {
		dies.request(&messages.Acquire{Lock: k.message(shared)})
		expect[*messages.Acquired](t, dies)
	}
	stays.request(&messages.Acquire{Lock: k.message(shared)})
	expect[*messages.Acquired](t, stays)
	k.heldAs(t, "read", "2", s)
	waits.request(&messages.Acquire{Lock: k.message(0)})
	awaitWaiting(t, k.write(s), 1)
	users.system.Root.Stop(waits.pid)
	awaitWaiting(t, k.write(s), 0)
	users.system.Root.Stop(dies.pid)
	redistest.Eventually(t, "the dead reader's holds to be gone", func() bool {
		_, holders := k.holders(t)
		return len(holders) == 1 && slices.Collect(maps.Values(holders))[0] == "1"
	})
	status := ask[*messages.Status](t, s.probe(t), &messages.Inspect{Lock: k.message(shared)})
	if !status.Locked || !status.HeldHere || status.Mode != shared || status.Holders != 1 {
		t.Errorf("status %v", status)
	}
	stays.expectNothing()
	writer := obtainSoon(within(t), k.write(other))
	k.awaitAnnounced(t)
	users.system.Root.Stop(stays.pid)
	release(t, got(t, writer).hold)
	k.awaitNothing(t)
}

// A crash of the lock actor costs no reader its hold.
func TestCrashWithReaders(t *testing.T) {
	for _, message := range []string{"*actors.replied", "actors.tick", "*actors.Call"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			k := newRWKey(t, redistest.Shared(t))
			const watchdog = 1500 * time.Millisecond
			crashing := &saboteur{spared: map[string]bool{}}
			s := open(t, k.server.URL(), lockkeeper.Config{Watchdog: watchdog, Poll: 300 * time.Millisecond})
			cfg := lockkeeper.Config{Watchdog: watchdog, Poll: 300 * time.Millisecond}
			shaky := open(t, k.server.URL(), cfg, crashing.middleware)
			var holds []*lockkeeper.Hold
			for range 3 {
				holds = append(holds, obtain(t, k.read(shaky)))
			}
			holds = append(holds, obtainIn(t, holds[1].Context(), k.read(shaky)))
			writer := obtainSoon(within(t), k.write(s))
			k.awaitAnnounced(t)
			crashing.hit(once(message), once(message))
			_, _ = k.read(shaky).Inspect(within(t))
			_, _ = k.read(shaky).Inspect(within(t))
			redistest.Eventually(t, "two crashes", func() bool { return crashing.crashes.Load() == 2 })
			began := k.expiry(t)
			redistest.Eventually(t, "renewals over twice the lease", func() bool { return k.expiry(t).Sub(began) > 2*watchdog })
			for _, hold := range holds {
				if !hold.Valid() {
					t.Errorf("a reader lost its hold: %v", hold.Err())
				}
				pending(t, writer, "there are readers")
				release(t, hold)
			}
			release(t, got(t, writer).hold)
			k.awaitNothing(t)
		})
	}
}

// What is done though nobody hears of it is done once.
func TestReadWriteLostReplies(t *testing.T) {
	losing(t, scripts.ReadWriteSet, impatient, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		k := newRWKey(t, r.server)
		ctx := r.context(t)
		lose()
		writing := obtainIn(t, ctx, k.write(r.site))
		lose()
		reading := obtainIn(t, context.WithoutCancel(writing.Context()), k.read(r.site))
		if mode, holders := k.holders(t); mode != "write" || len(holders) != 2 {
			t.Errorf("held for %q by %v", mode, holders)
		}
		lose()
		r.release(t, writing)
		// It stays a writer's in Redis: a late command might make it one again, and that
		// must not end what a reader shares with others.
		owner := k.heldTwice(t, "1")
		lose()
		again := obtainIn(t, reading.Context(), k.read(r.site))
		k.heldTwice(t, "2")
		lose()
		r.release(t, again)
		k.heldTwice(t, "1")
		if left := k.pttl(t, k.leaseKey(owner, 2)); left > 0 {
			t.Errorf("the key of the second hold is left for %v", left)
		}
		r.release(t, reading)
		k.awaitNothing(t)
	})
}
