package lockkeeper_test

// The read/write lock: who holds it together with whom, and what that is in Redis.

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
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// rwKey is a read/write lock as a foreign client sees it.
type rwKey struct {
	key
	writer string // where a writer announces itself
}

func newRWKey(t testing.TB, server *redistest.Server) rwKey {
	k := newKey(t, server)
	k.channel = "redisson_rwlock:{" + k.name + "}"
	return rwKey{k, "lockkeeper_writer:{" + k.name + "}"}
}

func (k rwKey) read(s *site) *lockkeeper.Lock  { return s.ReadWriteLock(k.lock).Read() }
func (k rwKey) write(s *site) *lockkeeper.Lock { return s.ReadWriteLock(k.lock).Write() }

func (k rwKey) message(mode messages.Mode) *messages.Lock {
	return &messages.Lock{Name: k.lock, Kind: messages.Kind_KIND_READ_WRITE, Mode: mode}
}

const shared = messages.Mode_MODE_SHARED

// leaseKey tells of an owner's i-th read hold.
func (k rwKey) leaseKey(owner string, i int) string {
	return fmt.Sprintf("{%s}:%s:rwlock_timeout:%d", k.name, owner, i)
}

// holders is the hash without its mode.
func (k rwKey) holders(t testing.TB) (mode string, holders map[string]string) {
	t.Helper()
	holders = k.owners(t)
	mode = holders["mode"]
	delete(holders, "mode")
	return mode, holders
}

// heldAs checks the hash: its mode, and that its fields are those of the sites, each
// with that count. It gives the fields.
func (k rwKey) heldAs(t testing.TB, mode, count string, by ...*site) (owners []string) {
	t.Helper()
	now, holders := k.holders(t)
	if now != mode || len(holders) != len(by) {
		t.Fatalf("held for %q by %v, want %q by %d", now, holders, mode, len(by))
	}
	for _, s := range by {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(holders)), func(owner string) bool {
			if !queuedBy([]string{owner}, s) {
				return false
			}
			owners = append(owners, owner)
			return holders[owner] == count
		}) {
			t.Fatalf("held by %v, want %s %s times", holders, s.ID(), count)
		}
	}
	return owners
}

// heldTwice checks that one owner writes, and reads that many times. It gives the owner.
func (k rwKey) heldTwice(t testing.TB, reads string) (owner string) {
	t.Helper()
	mode, holders := k.holders(t)
	for field := range holders {
		owner = strings.TrimSuffix(field, ":write")
	}
	if mode != "write" || len(holders) != 2 || holders[owner] != reads || holders[owner+":write"] != "1" {
		t.Fatalf("held for %q by %v", mode, holders)
	}
	return owner
}

// readAs reads as Redisson would, once more for each lease.
func (k rwKey) readAs(t testing.TB, owner string, leases ...time.Duration) {
	t.Helper()
	k.do(t, "HSET", k.name, "mode", "read")
	for _, lease := range leases {
		i, ms := k.number(t, "HINCRBY", k.name, owner, "1"), lease.Milliseconds()
		k.do(t, "SET", k.leaseKey(owner, int(i)), "1", "PX", fmt.Sprint(ms))
		k.do(t, "PEXPIRE", k.name, fmt.Sprint(max(ms, k.number(t, "PTTL", k.name))))
	}
}

// pttl is the TTL of any key; negative if there is none.
func (k rwKey) pttl(t testing.TB, key string) time.Duration {
	t.Helper()
	return time.Duration(k.number(t, "PTTL", key)) * time.Millisecond
}

// awaitNothing waits until the lock has left nothing in Redis, and nobody listens.
func (k rwKey) awaitNothing(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, "nothing to be left in Redis", func() bool {
		return !k.exists(t) && len(k.server.Keys(t, "*{"+k.name+"}*")) == 0
	})
	k.awaitSubscribers(t, 0)
}

// awaitAnnounced waits until a writer has announced itself.
func (k rwKey) awaitAnnounced(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, "the announcement", func() bool { return k.number(t, "EXISTS", k.writer) == 1 })
}

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
			cfg.Middleware = append(cfg.Middleware, crashing.middleware)
			shaky := open(t, k.server.URL(), cfg)
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
