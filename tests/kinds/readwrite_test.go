package kinds_test

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
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// rwKey is a read/write lock as a foreign client sees it.
type rwKey struct {
	locktest.Key
	line string // the key of the line of processes
}

func newRWKey(t testing.TB, server *redistest.Server) rwKey {
	k := locktest.NewKey(t, server)
	k.Channel = "redisson_rwlock:{" + k.Name + "}"
	return rwKey{k, "lockkeeper_wait_queue:{" + k.Name + "}"}
}

// readWrite gives a lock on the shared server, and processes that use it.
func readWrite(t testing.TB, cfg lockkeeper.Config) (k rwKey, a, b *locktest.Site) {
	t.Helper()
	k = newRWKey(t, redistest.Shared(t))
	s := sites(t, k.Key, cfg, 2)
	return k, s[0], s[1]
}

func (k rwKey) read(s *locktest.Site) *lockkeeper.Lock { return s.ReadWriteLock(k.LockName).Read() }

func (k rwKey) write(s *locktest.Site) *lockkeeper.Lock { return s.ReadWriteLock(k.LockName).Write() }

func (k rwKey) message() *messages.Lock { return locktest.KindMessage("read", k.LockName) }

// leaseKey tells of an owner's i-th read hold.
func (k rwKey) leaseKey(owner string, i int) locktest.Key {
	return locktest.Key{Server: k.Server, Name: fmt.Sprintf("{%s}:%s:rwlock_timeout:%d", k.Name, owner, i)}
}

// holders is the hash without its mode.
func (k rwKey) holders(t testing.TB) (mode string, holders map[string]string) {
	t.Helper()
	holders = k.Owners(t)
	mode = holders["mode"]
	delete(holders, "mode")
	return mode, holders
}

// heldAs checks the hash: its mode, and that its fields are those of the sites, each
// with that count. It gives the fields.
func (k rwKey) heldAs(t testing.TB, mode, count string, by ...*locktest.Site) (owners []string) {
	t.Helper()
	now, holders := k.holders(t)
	for _, s := range by {
		for owner, n := range holders {
			if strings.HasPrefix(owner, s.ID()) && n == count {
				owners = append(owners, owner)
			}
		}
	}
	if now != mode || len(holders) != len(by) || len(owners) != len(by) {
		t.Fatalf("held for %q by %v, want %q by %d, %s times each", now, holders, mode, len(by), count)
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

// remove deletes the lock and the keys of its leases, and then runs a script, all at once.
func (k rwKey) remove(t testing.TB, then string) {
	t.Helper()
	k.Atomically(t, "redis.call('DEL', unpack(KEYS)) "+then, append([]string{k.Name}, k.Server.Keys(t, "*{"+k.Name+"}*")...), locktest.Redisson+":write")
}

// awaitNothing waits until the lock has left nothing in Redis, and nobody listens.
func (k rwKey) awaitNothing(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, "nothing to be left in Redis", func() bool {
		return !k.Exists(t) && len(k.Server.Keys(t, "*{"+k.Name+"}*")) == 0
	})
	k.AwaitSubscribers(t, 0)
}

// awaitPlaces waits until so many processes stand in the line, and listen: others keep nobody waiting.
func (k rwKey) awaitPlaces(t testing.TB, want int) {
	t.Helper()
	redistest.Eventually(t, "the places in the line", func() bool {
		fields, err := k.Server.Do(t, "HVALS", k.line).AsStrSlice()
		return err == nil && len(slices.DeleteFunc(fields, func(place string) bool { return !strings.HasSuffix(place, " 1") })) == want
	})
}

// Nobody who reads for longer than a process may keep a lock keeps others from reading.
func TestReadersJoinALongReader(t *testing.T) {
	t.Parallel()
	const limit = 30 * time.Millisecond
	k, s, other := readWrite(t, lockkeeper.Config{HandOffLimit: limit})
	long, began := locktest.Acquire(t, k.read(s)), time.Now()
	for time.Since(began) < 20*limit {
		here, there := locktest.Acquire(t, k.read(s)), locktest.Acquire(t, k.read(other))
		locktest.Release(t, here)
		locktest.Release(t, there)
	}
	locktest.Release(t, long)
	k.awaitNothing(t)
}

func TestReadersAndWritersExcludeEachOther(t *testing.T) {
	t.Parallel()
	k, a, b := readWrite(t, locktest.NoPolling)
	reading, beside := locktest.Acquire(t, k.read(a)), locktest.Acquire(t, k.read(b))
	for _, owner := range k.heldAs(t, "read", "1", a, b) {
		if ttl := k.leaseKey(owner, 1).Ttl(t); ttl < time.Minute {
			t.Errorf("the lease key of %s has the TTL %v", owner, ttl)
		}
	}
	if status, err := k.read(b).Inspect(locktest.Within(t)); err != nil || !status.Locked || !status.Shared || status.Holders != 2 {
		t.Errorf("held by readers in 2 processes, and the state is %+v, %v", status, err)
	}
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, k.write(a), k.write(b))
	locktest.Release(t, beside)
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, k.write(a), k.write(b))
	locktest.Release(t, reading)
	writing := locktest.Acquire(t, k.write(a))
	k.heldAs(t, "write", "1", a)
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, k.read(a), k.read(b), k.write(a), k.write(b))
	locktest.Release(t, writing)
	k.awaitNothing(t)
	tagged := "{" + k.LockName + "}:abc:key"
	writing = locktest.Acquire(t, a.ReadWriteLock(tagged).Write())
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, b.ReadWriteLock(tagged).Read())
	locktest.Release(t, writing)
	locktest.ExpectGranted(t, b.ReadWriteLock(tagged).Read())
}

// In a process nobody overtakes a writer that waits, and what it waits for is told to it at once.
func TestReadersDoNotOvertakeAWriter(t *testing.T) {
	t.Parallel()
	k, s, _ := readWrite(t, locktest.NoPolling)
	first := locktest.Acquire(t, k.read(s))
	writer := locktest.AcquireSoon(locktest.Within(t), k.write(s))
	locktest.AwaitWaiters(t, k.read(s), 1)
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, k.read(s))
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

// A writer that waits keeps readers elsewhere out; wherever it goes, that is over.
func TestWriterKeepsReadersOut(t *testing.T) {
	t.Parallel()
	for what, leave := range map[string]func(t *testing.T, writer *locktest.Site, reading *lockkeeper.Hold, giveUp func()) (want error){
		"granted": func(t *testing.T, _ *locktest.Site, reading *lockkeeper.Hold, _ func()) error {
			locktest.Release(t, reading)
			return nil
		},
		"gives up": func(_ *testing.T, _ *locktest.Site, _ *lockkeeper.Hold, giveUp func()) error {
			giveUp()
			return context.Canceled
		},
		"closed": func(t *testing.T, writer *locktest.Site, _ *lockkeeper.Hold, _ func()) error {
			locktest.Stop(t, writer)
			return lockkeeper.ErrClosed
		},
	} {
		for _, readsToo := range []bool{false, true} {
			t.Run(fmt.Sprint(what, ", reads as well: ", readsToo), func(t *testing.T) {
				t.Parallel()
				k, a, b := readWrite(t, locktest.NoPolling)
				reading := locktest.Acquire(t, k.read(a))
				ctx, giveUp := context.WithCancel(locktest.Within(t))
				defer giveUp()
				var also *lockkeeper.Hold
				if readsToo {
					also = locktest.Acquire(t, k.read(b))
				}
				waiting := locktest.AcquireSoon(ctx, k.write(b))
				if readsToo { // its process leaves the readers for its sake
					locktest.AwaitWaiters(t, k.write(b), 1)
					locktest.Release(t, also)
				}
				k.awaitPlaces(t, 1)
				late := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
				locktest.ExpectRefused(t, lockkeeper.ErrHeld, k.read(late))
				want := leave(t, b, reading, giveUp)
				g := locktest.Await(t, "an answer", waiting)
				if !errors.Is(g.Err, want) {
					t.Errorf("the writer got %v, want %v", g.Err, want)
				}
				if g.Err == nil {
					locktest.Release(t, g.Hold)
				}
				k.awaitPlaces(t, 0)
				locktest.ExpectGranted(t, k.read(late))
				if want != nil {
					locktest.Release(t, reading)
				}
				k.awaitNothing(t)
			})
		}
	}
}

// A writer that becomes a reader lets others read, here and elsewhere, all of them together.
func TestDowngradeWakesReaders(t *testing.T) {
	t.Parallel()
	k := newRWKey(t, redistest.Start(t))
	s := sites(t, k.Key, lockkeeper.Config{Poll: time.Minute, Watchdog: 2 * time.Minute, Renewal: 200 * time.Millisecond}, 2)
	a, b := s[0], s[1]
	writing := locktest.Acquire(t, k.write(a))
	waiting := []<-chan locktest.Grant{locktest.AcquireSoon(locktest.Within(t), k.read(a))}
	for range 20 {
		waiting = append(waiting, locktest.AcquireSoon(locktest.Within(t), k.read(b)))
	}
	locktest.AwaitWaiters(t, k.read(a), 1)
	locktest.AwaitWaiters(t, k.read(b), 20)
	k.AwaitListener(t)
	// Without its end, since the context of the write hold ends with that.
	reading := locktest.AcquireIn(t, context.WithoutCancel(writing.Context()), k.read(a))
	k.heldTwice(t, "1")
	for _, granted := range waiting {
		locktest.Pending(t, granted, "there is a writer")
	}
	locktest.Release(t, writing)
	var readers []*lockkeeper.Hold
	for _, granted := range waiting { // they do not look by themselves
		readers = append(readers, locktest.Got(t, granted).Hold)
	}
	k.heldAs(t, "read", "1", a, b)
	k.AwaitRenewals(t, 500*time.Millisecond) // renewal survives the change
	locktest.ExpectValid(t, reading)
	_, err := k.write(a).TryAcquire(reading.Context())
	locktest.IsError(t, err, lockkeeper.ErrReentry)
	locktest.Release(t, reading)
	k.heldAs(t, "read", "1", a, b)
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, k.write(a), k.write(b))
	for _, hold := range readers {
		locktest.Release(t, hold)
	}
	k.awaitNothing(t)
}

// The death of a reader ends its hold, however often it has it, and nobody else's.
func TestDeathOfAReader(t *testing.T) {
	t.Parallel()
	k, s, other := readWrite(t, locktest.NoPolling)
	dies, stays := s.Probe(t), s.Probe(t)
	for _, p := range []*locktest.Probe{dies, dies, stays} {
		locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.message()})
	}
	k.heldAs(t, "read", "2", s)
	dies.Die()
	redistest.Eventually(t, "the dead reader's holds to be gone", func() bool {
		_, holders := k.holders(t)
		return slices.Equal(slices.Collect(maps.Values(holders)), []string{"1"})
	})
	status := locktest.Ask[*messages.Status](t, s.Probe(t), &messages.Inspect{Lock: k.message()})
	if !status.Locked || !status.HeldHere || status.Mode != messages.Mode_MODE_SHARED || status.Holders != 1 || len(stays.Mail) > 0 {
		t.Errorf("status %v, and who stays has %d messages", status, len(stays.Mail))
	}
	writer := locktest.AcquireSoon(locktest.Within(t), k.write(other))
	k.awaitPlaces(t, 1)
	stays.Die()
	locktest.Release(t, locktest.Got(t, writer).Hold)
	k.awaitNothing(t)
}
