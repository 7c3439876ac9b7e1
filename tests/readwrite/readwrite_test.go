package readwrite_test

// The read/write lock: who holds it together with whom, and what that is in Redis.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A reader that comes to others of its process asks nobody.
func TestReadersShareWithoutRoundTrips(t *testing.T) {
	k := newRWKey(t, redistest.Start(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Tenure: 10 * time.Second})
	first := locktest.Acquire(t, k.read(s))
	k.Server.ResetStats(t)
	var holds []*lockkeeper.Hold
	for range 100 {
		holds = append(holds, locktest.Acquire(t, k.read(s)))
	}
	k.heldAs(t, "read", "1", s)
	for _, hold := range holds {
		locktest.Release(t, hold)
	}
	if calls := k.Server.Calls(t); calls["evalsha"]+calls["eval"] > 0 {
		t.Errorf("100 readers that joined another made %v", calls)
	}
	if !first.Valid() {
		t.Error("the first reader has lost the lock with the others")
	}
	locktest.Release(t, first)
	k.awaitNothing(t)
}

// Nobody who reads for long keeps others from reading.
func TestReadersJoinALongReader(t *testing.T) {
	t.Parallel()
	k := newRWKey(t, redistest.Shared(t))
	s, other := locktest.Open(t, k.Server.URL(), lockkeeper.Config{}), locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	long := locktest.Acquire(t, k.read(s))
	began := time.Now()
	for time.Since(began) < 3*time.Second {
		here, there := locktest.Acquire(t, k.read(s)), locktest.Acquire(t, k.read(other))
		locktest.Release(t, here)
		locktest.Release(t, there)
	}
	locktest.Release(t, long)
	k.awaitNothing(t)
}

func TestReadersAndWritersExcludeEachOther(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	a, b := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	held := func(locks ...*lockkeeper.Lock) {
		t.Helper()
		for _, l := range locks {
			_, err := l.TryAcquire(locktest.Within(t))
			locktest.IsError(t, err, lockkeeper.ErrHeld)
		}
	}
	reading, beside := locktest.Acquire(t, k.read(a)), locktest.Acquire(t, k.read(b))
	for _, owner := range k.heldAs(t, "read", "1", a, b) {
		if ttl := k.pttl(t, k.leaseKey(owner, 1)); ttl < time.Minute {
			t.Errorf("the lease key of %s has the TTL %v", owner, ttl)
		}
	}
	held(k.write(a), k.write(b))
	locktest.Release(t, beside)
	held(k.write(a), k.write(b))
	locktest.Release(t, reading)
	writing := locktest.Acquire(t, k.write(a))
	if _, holders := k.holders(t); len(holders) != 1 || holders[k.heldAs(t, "write", "1", a)[0]] != "1" {
		t.Errorf("held by %v", holders)
	}
	held(k.read(a), k.read(b), k.write(a), k.write(b))
	locktest.Release(t, writing)
	k.awaitNothing(t)
}

// In a process nobody overtakes a writer that waits, and what it waits for is told to it at once.
func TestReadersDoNotOvertakeAWriter(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	first := locktest.Acquire(t, k.read(s))
	writer := locktest.AcquireSoon(locktest.Within(t), k.write(s))
	locktest.AwaitWaiters(t, k.read(s), 1)
	_, err := k.read(s).TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	reader := locktest.AcquireSoon(locktest.Within(t), k.read(s))
	locktest.AwaitWaiters(t, k.read(s), 2)
	locktest.Pending(t, reader, "a writer waits before it")
	locktest.Release(t, first)
	writing := locktest.Got(t, writer).Hold
	locktest.Pending(t, reader, "a writer has the lock")
	locktest.Release(t, writing)
	locktest.Release(t, locktest.Got(t, reader).Hold)
	k.awaitNothing(t)
}

// A writer announces itself to readers elsewhere; wherever it goes, that is over.
func TestWriterIsAnnounced(t *testing.T) {
	for what, leave := range map[string]func(t *testing.T, writer *locktest.Site, reading *lockkeeper.Hold, giveUp func(), waiting <-chan locktest.Grant){
		"granted": func(t *testing.T, _ *locktest.Site, reading *lockkeeper.Hold, _ func(), waiting <-chan locktest.Grant) {
			locktest.Release(t, reading)
			locktest.Release(t, locktest.Got(t, waiting).Hold)
		},
		"gives up": func(t *testing.T, _ *locktest.Site, reading *lockkeeper.Hold, giveUp func(), waiting <-chan locktest.Grant) {
			giveUp()
			if g := locktest.Await(t, "the refusal", waiting); !errors.Is(g.Err, context.Canceled) {
				t.Error(g.Err)
			}
			defer locktest.Release(t, reading)
		},
		"closed": func(t *testing.T, writer *locktest.Site, reading *lockkeeper.Hold, _ func(), waiting <-chan locktest.Grant) {
			if err := writer.Close(locktest.Within(t)); err != nil {
				t.Error(err)
			}
			locktest.IsError(t, locktest.Await(t, "the refusal", waiting).Err, lockkeeper.ErrClosed)
			defer locktest.Release(t, reading)
		},
	} {
		for _, first := range []string{"waits only", "reads as well"} {
			t.Run(what+" "+first, func(t *testing.T) {
				t.Parallel()
				k := newRWKey(t, redistest.Shared(t))
				a, b, c := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
				reading := locktest.Acquire(t, k.read(a))
				ctx, giveUp := context.WithCancel(locktest.Within(t))
				defer giveUp()
				var waiting <-chan locktest.Grant
				if first == "waits only" {
					waiting = locktest.AcquireSoon(ctx, k.write(b))
				} else { // its process leaves the readers for its sake
					also := locktest.Acquire(t, k.read(b))
					waiting = locktest.AcquireSoon(ctx, k.write(b))
					locktest.AwaitWaiters(t, k.write(b), 1)
					locktest.Release(t, also)
				}
				k.awaitAnnounced(t)
				_, err := k.read(c).TryAcquire(locktest.Within(t))
				locktest.IsError(t, err, lockkeeper.ErrHeld)
				leave(t, b, reading, giveUp, waiting)
				redistest.Eventually(t, "the announcement to be gone", func() bool { return k.Number(t, "EXISTS", k.writer) == 0 })
				late := locktest.Acquire(t, k.read(c))
				locktest.Release(t, late)
				k.awaitNothing(t)
			})
		}
	}
}

// A writer that becomes a reader lets others read, here and elsewhere.
func TestDowngradeWakesReaders(t *testing.T) {
	k := newRWKey(t, redistest.Start(t))
	a, b := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	writing := locktest.Acquire(t, k.write(a))
	here, there := locktest.AcquireSoon(locktest.Within(t), k.read(a)), locktest.AcquireSoon(locktest.Within(t), k.read(b))
	locktest.AwaitWaiters(t, k.read(a), 1)
	k.AwaitSubscribers(t, 1)
	redistest.Eventually(t, "two refusals", func() bool { return k.Server.Calls(t)["hrandfield"] >= 2 })
	reading := locktest.AcquireIn(t, writing.Context(), k.read(a))
	mode, holders := k.holders(t)
	if mode != "write" || len(holders) != 2 {
		t.Errorf("held for %q by %v, want a writer that reads as well", mode, holders)
	}
	locktest.Pending(t, here, "there is a writer")
	locktest.Pending(t, there, "there is a writer")
	downgraded := time.Now()
	locktest.Release(t, writing)
	for _, granted := range []<-chan locktest.Grant{here, there} {
		g := locktest.Got(t, granted)
		if wait := g.At.Sub(downgraded); wait > locktest.Soon {
			t.Errorf("a reader got in %v after the downgrade", wait)
		}
		defer locktest.Release(t, g.Hold)
	}
	k.heldAs(t, "read", "1", a, b)
	if !reading.Valid() {
		t.Error("the writer does not read any more")
	}
	_, err := k.write(b).TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	locktest.Release(t, reading)
	k.heldAs(t, "read", "1", a, b)
}

// Nobody is upgraded: two readers that wanted it would wait for each other.
func TestUpgradeIsRefused(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	one, two := locktest.Acquire(t, k.read(s)), locktest.Acquire(t, k.read(s))
	for _, reading := range []*lockkeeper.Hold{one, two} {
		_, err := k.write(s).Acquire(reading.Context())
		if reason := locktest.IsError(t, err, lockkeeper.ErrReentry); reason != messages.Reason_REASON_REENTRY {
			t.Errorf("refused because of %v", reason)
		}
		_, err = k.write(s).TryAcquire(reading.Context())
		locktest.IsError(t, err, lockkeeper.ErrReentry)
		if !reading.Valid() {
			t.Error("the refusal has cost the reader its hold")
		}
	}
	reader := s.Users(k.Server).Client(t, "reader")
	reader.Request(&messages.Acquire{Lock: k.message(shared)})
	locktest.Expect[*messages.Acquired](t, reader)
	reader.Request(&messages.Acquire{Lock: k.message(0)})
	if refused := locktest.Expect[*messages.NotAcquired](t, reader); refused.Reason != messages.Reason_REASON_REENTRY {
		t.Errorf("refused with %v", refused)
	}
	reader.Request(&messages.Release{Lock: k.message(shared)})
	locktest.Expect[*messages.Released](t, reader)
	locktest.Release(t, one)
	locktest.Release(t, two)
	k.awaitNothing(t)
}

// Each nested read hold has a key of its own, as long as it lasts.
func TestNestedReads(t *testing.T) {
	t.Parallel()
	k := newRWKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: 3 * time.Second})
	outer := locktest.Acquire(t, k.read(s))
	owner := k.heldAs(t, "read", "1", s)[0]
	middle := locktest.AcquireIn(t, outer.Context(), k.read(s))
	inner := locktest.AcquireIn(t, middle.Context(), k.read(s))
	if inner.Count() != 3 {
		t.Errorf("hold count %d, want 3", inner.Count())
	}
	nested := func(n int) {
		t.Helper()
		k.heldAs(t, "read", fmt.Sprint(n), s)
		for i := 1; i <= 4; i++ {
			if left := k.pttl(t, k.leaseKey(owner, i)); (left > 0) != (i <= n) {
				t.Errorf("held %d times, and the key of hold %d has the TTL %v", n, i, left)
			}
		}
	}
	nested(3)
	if value, _ := k.Do(t, "GET", k.leaseKey(owner, 3)).ToString(); value != "1" {
		t.Errorf("a lease key says %q, want 1", value)
	}
	began := k.Expiry(t)
	redistest.Eventually(t, "renewals over the lease", func() bool { return k.Expiry(t).Sub(began) > 3*time.Second })
	nested(3)
	locktest.Release(t, inner)
	nested(2)
	locktest.Release(t, outer)
	nested(1)
	locktest.Release(t, middle)
	k.awaitNothing(t)
}

// What we do to our holds never shortens a foreign one, nor ends it.
func TestForeignReadersAreNotCutShort(t *testing.T) {
	t.Parallel()
	k := newRWKey(t, redistest.Shared(t))
	const watchdog = 1500 * time.Millisecond
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: watchdog})
	k.readAs(t, locktest.Redisson, 10*time.Minute, 20*time.Minute)
	untouched := func(when string) {
		t.Helper()
		if ttl, first, second := k.Ttl(t), k.pttl(t, k.leaseKey(locktest.Redisson, 1)), k.pttl(t, k.leaseKey(locktest.Redisson, 2)); ttl < 19*time.Minute ||
			first < 9*time.Minute || first > 10*time.Minute || second < 19*time.Minute {
			t.Errorf("%s: TTL %v, and the foreign leases are %v and %v", when, ttl, first, second)
		}
		if owners := k.Owners(t); owners["mode"] != "read" || owners[locktest.Redisson] != "2" {
			t.Errorf("%s: held by %v", when, owners)
		}
	}
	reading := locktest.Acquire(t, k.read(s))
	untouched("joined")
	again := locktest.AcquireIn(t, reading.Context(), k.read(s))
	untouched("re-entered")
	var ours string
	_, holders := k.holders(t)
	for field := range holders {
		if field != locktest.Redisson {
			ours = k.leaseKey(field, 1)
		}
	}
	began := k.Number(t, "PEXPIRETIME", ours)
	redistest.Eventually(t, "renewals", func() bool { return k.Number(t, "PEXPIRETIME", ours)-began > 2*watchdog.Milliseconds() })
	untouched("renewed")
	locktest.Release(t, again)
	untouched("given back once")
	locktest.Release(t, reading)
	untouched("given back")
	_, err := k.write(s).TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	if _, holders := k.holders(t); len(holders) != 1 {
		t.Errorf("held by %v", holders)
	}
	k.Do(t, "DEL", k.Name, k.leaseKey(locktest.Redisson, 1), k.leaseKey(locktest.Redisson, 2))
}

// A short foreign lease does not end ours, and when it alone is left it bounds the lock.
func TestForeignReaderWithAShortLease(t *testing.T) {
	t.Parallel()
	k := newRWKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	one := locktest.Acquire(t, k.read(s), lockkeeper.WithLease(time.Hour))
	k.readAs(t, locktest.Redisson, 2*time.Second)
	two := locktest.Acquire(t, k.read(s), lockkeeper.WithLease(time.Minute))
	if ttl := k.Ttl(t); ttl < 59*time.Minute {
		t.Errorf("the TTL is %v, and a reader has a lease of an hour", ttl)
	}
	redistest.Eventually(t, "the end of the foreign lease", func() bool { return k.pttl(t, k.leaseKey(locktest.Redisson, 1)) < 0 })
	for _, hold := range []*lockkeeper.Hold{one, two} {
		if !hold.Valid() {
			t.Errorf("our hold ended with the foreign one: %v", hold.Err())
		}
	}
	locktest.Release(t, one)
	locktest.Release(t, two)
	k.awaitNothing(t)

	reading := locktest.Acquire(t, k.read(s))
	k.readAs(t, locktest.Redisson, 2*time.Second)
	locktest.Release(t, reading)
	if ttl := k.Ttl(t); ttl > 2*time.Second {
		t.Errorf("the TTL is %v, and the last reader's lease was 2s", ttl)
	}
	locktest.Release(t, locktest.Acquire(t, k.write(s))) // nobody says that its lease is over
	k.awaitNothing(t)
}

func TestReadWriteByMessage(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	users := s.Users(k.Server)
	one, two, writer := users.Client(t, "one"), users.Client(t, "two"), users.Client(t, "writer")
	for _, reader := range []*locktest.Client{one, two} {
		reader.Request(&messages.Acquire{Lock: k.message(shared)})
		if granted := locktest.Expect[*messages.Acquired](t, reader); granted.HoldCount != 1 || granted.Lock.Mode != shared {
			t.Errorf("granted %v", granted)
		}
	}
	k.heldAs(t, "read", "1", s)
	writer.Request(&messages.Acquire{Lock: k.message(0)})
	locktest.AwaitWaiters(t, k.write(s), 1)
	for _, reader := range []*locktest.Client{one, two} {
		writer.ExpectNothing()
		reader.Request(&messages.Release{Lock: k.message(shared)})
		if released := locktest.Expect[*messages.Released](t, reader); released.HoldCount != 0 {
			t.Errorf("released %v", released)
		}
	}
	locktest.Expect[*messages.Acquired](t, writer)
	writer.Request(&messages.Acquire{Lock: k.message(shared)})
	if granted := locktest.Expect[*messages.Acquired](t, writer); granted.HoldCount != 1 {
		t.Errorf("granted %v", granted)
	}
	writer.Request(&messages.Release{Lock: k.message(0)})
	if released := locktest.Expect[*messages.Released](t, writer); released.HoldCount != 1 {
		t.Errorf("released %v, and it still reads", released)
	}
	k.heldAs(t, "read", "1", s)
	writer.Request(&messages.Release{Lock: k.message(0)})
	if refused := locktest.Expect[*messages.NotReleased](t, writer); refused.Reason != messages.Reason_REASON_NOT_HELD {
		t.Errorf("a reader released what it does not write: %v", refused)
	}
	writer.Request(&messages.Release{Lock: k.message(shared)})
	locktest.Expect[*messages.Released](t, writer)
	k.awaitNothing(t)
}
