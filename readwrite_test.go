package lockkeeper_test

// The read/write lock: who holds it together with whom, and what that is in Redis.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A reader that comes to others of its process asks nobody.
func TestReadersShareWithoutRoundTrips(t *testing.T) {
	k := newRWKey(t, redistest.Start(t))
	s := open(t, k.server.URL(), lockkeeper.Config{Tenure: 10 * time.Second})
	first := obtain(t, k.read(s))
	k.server.ResetStats(t)
	var holds []*lockkeeper.Hold
	for range 100 {
		holds = append(holds, obtain(t, k.read(s)))
	}
	k.heldAs(t, "read", "1", s)
	for _, hold := range holds {
		release(t, hold)
	}
	if calls := k.server.Calls(t); calls["evalsha"]+calls["eval"] > 0 {
		t.Errorf("100 readers that joined another made %v", calls)
	}
	if !first.Valid() {
		t.Error("the first reader has lost the lock with the others")
	}
	release(t, first)
	k.awaitNothing(t)
}

// Nobody who reads for long keeps others from reading.
func TestReadersJoinALongReader(t *testing.T) {
	t.Parallel()
	k := newRWKey(t, redistest.Shared(t))
	s, other := open(t, k.server.URL(), lockkeeper.Config{}), open(t, k.server.URL(), lockkeeper.Config{})
	long := obtain(t, k.read(s))
	began := time.Now()
	for time.Since(began) < 3*time.Second {
		here, there := obtain(t, k.read(s)), obtain(t, k.read(other))
		release(t, here)
		release(t, there)
	}
	release(t, long)
	k.awaitNothing(t)
}

func TestReadersAndWritersExcludeEachOther(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	a, b := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
	held := func(locks ...*lockkeeper.Lock) {
		t.Helper()
		for _, l := range locks {
			_, err := l.TryAcquire(within(t))
			isError(t, err, lockkeeper.ErrHeld)
		}
	}
	reading, beside := obtain(t, k.read(a)), obtain(t, k.read(b))
	for _, owner := range k.heldAs(t, "read", "1", a, b) {
		if ttl := k.pttl(t, k.leaseKey(owner, 1)); ttl < time.Minute {
			t.Errorf("the lease key of %s has the TTL %v", owner, ttl)
		}
	}
	held(k.write(a), k.write(b))
	release(t, beside)
	held(k.write(a), k.write(b))
	release(t, reading)
	writing := obtain(t, k.write(a))
	if _, holders := k.holders(t); len(holders) != 1 || holders[k.heldAs(t, "write", "1", a)[0]] != "1" {
		t.Errorf("held by %v", holders)
	}
	held(k.read(a), k.read(b), k.write(a), k.write(b))
	release(t, writing)
	k.awaitNothing(t)
}

// In a process nobody overtakes a writer that waits, and what it waits for is told to it at once.
func TestReadersDoNotOvertakeAWriter(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	first := obtain(t, k.read(s))
	writer := obtainSoon(within(t), k.write(s))
	awaitWaiting(t, k.read(s), 1)
	_, err := k.read(s).TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrHeld)
	reader := obtainSoon(within(t), k.read(s))
	awaitWaiting(t, k.read(s), 2)
	pending(t, reader, "a writer waits before it")
	release(t, first)
	writing := got(t, writer).hold
	pending(t, reader, "a writer has the lock")
	release(t, writing)
	release(t, got(t, reader).hold)
	k.awaitNothing(t)
}

// A writer announces itself to readers elsewhere; wherever it goes, that is over.
func TestWriterIsAnnounced(t *testing.T) {
	for what, leave := range map[string]func(t *testing.T, writer *site, reading *lockkeeper.Hold, giveUp func(), waiting <-chan grant){
		"granted": func(t *testing.T, _ *site, reading *lockkeeper.Hold, _ func(), waiting <-chan grant) {
			release(t, reading)
			release(t, got(t, waiting).hold)
		},
		"gives up": func(t *testing.T, _ *site, reading *lockkeeper.Hold, giveUp func(), waiting <-chan grant) {
			giveUp()
			if g := await(t, "the refusal", waiting); !errors.Is(g.err, context.Canceled) {
				t.Error(g.err)
			}
			defer release(t, reading)
		},
		"closed": func(t *testing.T, writer *site, reading *lockkeeper.Hold, _ func(), waiting <-chan grant) {
			if err := writer.Close(within(t)); err != nil {
				t.Error(err)
			}
			isError(t, await(t, "the refusal", waiting).err, lockkeeper.ErrClosed)
			defer release(t, reading)
		},
	} {
		for _, first := range []string{"waits only", "reads as well"} {
			t.Run(what+" "+first, func(t *testing.T) {
				t.Parallel()
				k := newRWKey(t, redistest.Shared(t))
				a, b, c := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
				reading := obtain(t, k.read(a))
				ctx, giveUp := context.WithCancel(within(t))
				defer giveUp()
				var waiting <-chan grant
				if first == "waits only" {
					waiting = obtainSoon(ctx, k.write(b))
				} else { // its process leaves the readers for its sake
					also := obtain(t, k.read(b))
					waiting = obtainSoon(ctx, k.write(b))
					awaitWaiting(t, k.write(b), 1)
					release(t, also)
				}
				k.awaitAnnounced(t)
				_, err := k.read(c).TryAcquire(within(t))
				isError(t, err, lockkeeper.ErrHeld)
				leave(t, b, reading, giveUp, waiting)
				redistest.Eventually(t, "the announcement to be gone", func() bool { return k.number(t, "EXISTS", k.writer) == 0 })
				late := obtain(t, k.read(c))
				release(t, late)
				k.awaitNothing(t)
			})
		}
	}
}

// A writer that becomes a reader lets others read, here and elsewhere.
func TestDowngradeWakesReaders(t *testing.T) {
	k := newRWKey(t, redistest.Start(t))
	a, b := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
	writing := obtain(t, k.write(a))
	here, there := obtainSoon(within(t), k.read(a)), obtainSoon(within(t), k.read(b))
	awaitWaiting(t, k.read(a), 1)
	k.awaitSubscribers(t, 1)
	redistest.Eventually(t, "two refusals", func() bool { return k.server.Calls(t)["hrandfield"] >= 2 })
	reading := obtainIn(t, writing.Context(), k.read(a))
	mode, holders := k.holders(t)
	if mode != "write" || len(holders) != 2 {
		t.Errorf("held for %q by %v, want a writer that reads as well", mode, holders)
	}
	pending(t, here, "there is a writer")
	pending(t, there, "there is a writer")
	downgraded := time.Now()
	release(t, writing)
	for _, granted := range []<-chan grant{here, there} {
		g := got(t, granted)
		if wait := g.at.Sub(downgraded); wait > soon {
			t.Errorf("a reader got in %v after the downgrade", wait)
		}
		defer release(t, g.hold)
	}
	k.heldAs(t, "read", "1", a, b)
	if !reading.Valid() {
		t.Error("the writer does not read any more")
	}
	_, err := k.write(b).TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrHeld)
	release(t, reading)
	k.heldAs(t, "read", "1", a, b)
}

// Nobody is upgraded: two readers that wanted it would wait for each other.
func TestUpgradeIsRefused(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	one, two := obtain(t, k.read(s)), obtain(t, k.read(s))
	for _, reading := range []*lockkeeper.Hold{one, two} {
		_, err := k.write(s).Acquire(reading.Context())
		if reason := isError(t, err, lockkeeper.ErrReentry); reason != messages.Reason_REASON_REENTRY {
			t.Errorf("refused because of %v", reason)
		}
		_, err = k.write(s).TryAcquire(reading.Context())
		isError(t, err, lockkeeper.ErrReentry)
		if !reading.Valid() {
			t.Error("the refusal has cost the reader its hold")
		}
	}
	reader := s.users(k.server).client(t, "reader")
	reader.request(&messages.Acquire{Lock: k.message(shared)})
	expect[*messages.Acquired](t, reader)
	reader.request(&messages.Acquire{Lock: k.message(0)})
	if refused := expect[*messages.NotAcquired](t, reader); refused.Reason != messages.Reason_REASON_REENTRY {
		t.Errorf("refused with %v", refused)
	}
	reader.request(&messages.Release{Lock: k.message(shared)})
	expect[*messages.Released](t, reader)
	release(t, one)
	release(t, two)
	k.awaitNothing(t)
}

// Each nested read hold has a key of its own, as long as it lasts.
func TestNestedReads(t *testing.T) {
	t.Parallel()
	k := newRWKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{Watchdog: 3 * time.Second})
	outer := obtain(t, k.read(s))
	owner := k.heldAs(t, "read", "1", s)[0]
	middle := obtainIn(t, outer.Context(), k.read(s))
	inner := obtainIn(t, middle.Context(), k.read(s))
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
	if value, _ := k.do(t, "GET", k.leaseKey(owner, 3)).ToString(); value != "1" {
		t.Errorf("a lease key says %q, want 1", value)
	}
	began := k.expiry(t)
	redistest.Eventually(t, "renewals over the lease", func() bool { return k.expiry(t).Sub(began) > 3*time.Second })
	nested(3)
	release(t, inner)
	nested(2)
	release(t, outer)
	nested(1)
	release(t, middle)
	k.awaitNothing(t)
}

// What we do to our holds never shortens a foreign one, nor ends it.
func TestForeignReadersAreNotCutShort(t *testing.T) {
	t.Parallel()
	k := newRWKey(t, redistest.Shared(t))
	const watchdog = 1500 * time.Millisecond
	s := open(t, k.server.URL(), lockkeeper.Config{Watchdog: watchdog})
	k.readAs(t, redisson, 10*time.Minute, 20*time.Minute)
	untouched := func(when string) {
		t.Helper()
		if ttl, first, second := k.ttl(t), k.pttl(t, k.leaseKey(redisson, 1)), k.pttl(t, k.leaseKey(redisson, 2)); ttl < 19*time.Minute ||
			first < 9*time.Minute || first > 10*time.Minute || second < 19*time.Minute {
			t.Errorf("%s: TTL %v, and the foreign leases are %v and %v", when, ttl, first, second)
		}
		if owners := k.owners(t); owners["mode"] != "read" || owners[redisson] != "2" {
			t.Errorf("%s: held by %v", when, owners)
		}
	}
	reading := obtain(t, k.read(s))
	untouched("joined")
	again := obtainIn(t, reading.Context(), k.read(s))
	untouched("re-entered")
	var ours string
	_, holders := k.holders(t)
	for field := range holders {
		if field != redisson {
			ours = k.leaseKey(field, 1)
		}
	}
	began := k.number(t, "PEXPIRETIME", ours)
	redistest.Eventually(t, "renewals", func() bool { return k.number(t, "PEXPIRETIME", ours)-began > 2*watchdog.Milliseconds() })
	untouched("renewed")
	release(t, again)
	untouched("given back once")
	release(t, reading)
	untouched("given back")
	_, err := k.write(s).TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrHeld)
	if _, holders := k.holders(t); len(holders) != 1 {
		t.Errorf("held by %v", holders)
	}
	k.do(t, "DEL", k.name, k.leaseKey(redisson, 1), k.leaseKey(redisson, 2))
}

// A short foreign lease does not end ours, and when it alone is left it bounds the lock.
func TestForeignReaderWithAShortLease(t *testing.T) {
	t.Parallel()
	k := newRWKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	one := obtain(t, k.read(s), lockkeeper.WithLease(time.Hour))
	k.readAs(t, redisson, 2*time.Second)
	two := obtain(t, k.read(s), lockkeeper.WithLease(time.Minute))
	if ttl := k.ttl(t); ttl < 59*time.Minute {
		t.Errorf("the TTL is %v, and a reader has a lease of an hour", ttl)
	}
	redistest.Eventually(t, "the end of the foreign lease", func() bool { return k.pttl(t, k.leaseKey(redisson, 1)) < 0 })
	for _, hold := range []*lockkeeper.Hold{one, two} {
		if !hold.Valid() {
			t.Errorf("our hold ended with the foreign one: %v", hold.Err())
		}
	}
	release(t, one)
	release(t, two)
	k.awaitNothing(t)

	reading := obtain(t, k.read(s))
	k.readAs(t, redisson, 2*time.Second)
	release(t, reading)
	if ttl := k.ttl(t); ttl > 2*time.Second {
		t.Errorf("the TTL is %v, and the last reader's lease was 2s", ttl)
	}
	release(t, obtain(t, k.write(s))) // nobody says that its lease is over
	k.awaitNothing(t)
}

func TestReadWriteByMessage(t *testing.T) {
	k := newRWKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	users := s.users(k.server)
	one, two, writer := users.client(t, "one"), users.client(t, "two"), users.client(t, "writer")
	for _, reader := range []*client{one, two} {
		reader.request(&messages.Acquire{Lock: k.message(shared)})
		if granted := expect[*messages.Acquired](t, reader); granted.HoldCount != 1 || granted.Lock.Mode != shared {
			t.Errorf("granted %v", granted)
		}
	}
	k.heldAs(t, "read", "1", s)
	writer.request(&messages.Acquire{Lock: k.message(0)})
	awaitWaiting(t, k.write(s), 1)
	for _, reader := range []*client{one, two} {
		writer.expectNothing()
		reader.request(&messages.Release{Lock: k.message(shared)})
		if released := expect[*messages.Released](t, reader); released.HoldCount != 0 {
			t.Errorf("released %v", released)
		}
	}
	expect[*messages.Acquired](t, writer)
	writer.request(&messages.Acquire{Lock: k.message(shared)})
	if granted := expect[*messages.Acquired](t, writer); granted.HoldCount != 1 {
		t.Errorf("granted %v", granted)
	}
	writer.request(&messages.Release{Lock: k.message(0)})
	if released := expect[*messages.Released](t, writer); released.HoldCount != 1 {
		t.Errorf("released %v, and it still reads", released)
	}
	k.heldAs(t, "read", "1", s)
	writer.request(&messages.Release{Lock: k.message(0)})
	if refused := expect[*messages.NotReleased](t, writer); refused.Reason != messages.Reason_REASON_NOT_HELD {
		t.Errorf("a reader released what it does not write: %v", refused)
	}
	writer.request(&messages.Release{Lock: k.message(shared)})
	expect[*messages.Released](t, writer)
	k.awaitNothing(t)
}
