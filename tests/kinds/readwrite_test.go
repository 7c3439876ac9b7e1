package kinds_test

// The read/write lock: which holds exclude each other, and their keys in Redis.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// rwKey is a read/write lock as a foreign client sees it.
type rwKey struct {
	locktest.Key
	waitQueue string // the key of the wait queue
}

func newRWKey(t testing.TB, server *redistest.Server) rwKey {
	k := locktest.NewKey(t, server)
	k.Channel = "redisson_rwlock:{" + k.Name + "}"
	return rwKey{k, "lockkeeper_read_write_queue:{" + k.Name + "}"}
}

// readWrite returns a lock on the shared server, and processes that use it.
func readWrite(t testing.TB, cfg lockkeeper.Config) (k rwKey, a, b *locktest.Site) {
	t.Helper()
	k = newRWKey(t, redistest.Shared(t))
	s := openSites(t, k.Key, cfg, 2)
	return k, s[0], s[1]
}

func (k rwKey) read(s *locktest.Site) *lockkeeper.Lock { return s.ReadWriteLock(k.LockName).Read() }

func (k rwKey) write(s *locktest.Site) *lockkeeper.Lock { return s.ReadWriteLock(k.LockName).Write() }

func (k rwKey) message() *messages.Lock { return locktest.KindMessage("read", k.LockName) }

// leaseKey is the key of an owner's i-th read hold.
func (k rwKey) leaseKey(owner string, i int) locktest.Key {
	return locktest.Key{Server: k.Server, Name: fmt.Sprintf("{%s}:%s:rwlock_timeout:%d", k.Name, owner, i)}
}

// holders returns the hash without its mode.
func (k rwKey) holders(t testing.TB) (mode string, holders map[string]string) {
	t.Helper()
	holders = k.Owners(t)
	mode = holders["mode"]
	delete(holders, "mode")
	return mode, holders
}

// heldAs checks the mode of the hash, and that its fields are the fields of the sites, each with that count. It returns
// the fields.
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

// heldTwice checks that one owner writes, and reads that many times. It returns the owner.
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

// awaitNothing waits until the lock has no keys and no subscribers in Redis.
func (k rwKey) awaitNothing(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, "nothing to be left in Redis", func() bool {
		return !k.Exists(t) && len(k.Server.Keys(t, "*{"+k.Name+"}*")) == 0
	})
	k.AwaitSubscribers(t, 0)
}

// awaitEntries waits for so many subscribed entries in the wait queue: only these keep others waiting.
func (k rwKey) awaitEntries(t testing.TB, want int) {
	t.Helper()
	redistest.Eventually(t, "the entries of the wait queue", func() bool {
		fields, err := k.Server.Do(t, "HVALS", k.waitQueue).AsStrSlice()
		return err == nil && len(slices.DeleteFunc(fields, func(entry string) bool { return !strings.HasSuffix(entry, " 1") })) == want
	})
}

// A reader that holds the lock for longer than a process may keep it does not keep other readers out.
func TestReadWrite_ReadersJoinLongReader(t *testing.T) {
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

func TestReadWrite_ReadersAndWritersExcludeEachOther(t *testing.T) {
	t.Parallel()
	k, a, b := readWrite(t, locktest.NoPolling)
	reading, second := locktest.Acquire(t, k.read(a)), locktest.Acquire(t, k.read(b))
	for _, owner := range k.heldAs(t, "read", "1", a, b) {
		if ttl := k.leaseKey(owner, 1).TTL(t); ttl < time.Minute {
			t.Errorf("the lease key of %s has the TTL %v", owner, ttl)
		}
	}
	if status, err := k.read(b).Inspect(locktest.Within(t)); err != nil || !status.Locked || !status.Shared || status.Holders != 2 {
		t.Errorf("held by readers in 2 processes, and the state is %+v, %v", status, err)
	}
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, k.write(a), k.write(b))
	locktest.Release(t, second)
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

// In a process, no request overtakes a waiting writer. The writer is notified at once of what it waits for.
func TestReadWrite_ReadersDoNotOvertakeWriter(t *testing.T) {
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

// A writer that becomes a reader lets readers here and elsewhere in, all of them together.
func TestReadWrite_DowngradeWakesReaders(t *testing.T) {
	t.Parallel()
	k := newRWKey(t, redistest.Start(t))
	s := openSites(t, k.Key, lockkeeper.Config{Poll: time.Hour, Watchdog: 2 * time.Hour, Renewal: 200 * time.Millisecond}, 2)
	a, b := s[0], s[1]
	writing := locktest.Acquire(t, k.write(a))
	waiting := []<-chan locktest.Grant{locktest.AcquireSoon(locktest.Within(t), k.read(a))}
	for range 20 {
		waiting = append(waiting, locktest.AcquireSoon(locktest.Within(t), k.read(b)))
	}
	locktest.AwaitWaiters(t, k.read(a), 1)
	locktest.AwaitWaiters(t, k.read(b), 20)
	k.AwaitListener(t)
	// Without its end: the context of the write hold ends with that hold.
	reading := locktest.AcquireIn(t, context.WithoutCancel(writing.Context()), k.read(a))
	k.heldTwice(t, "1")
	for _, granted := range waiting {
		locktest.Pending(t, granted, "there is a writer")
	}
	locktest.Release(t, writing)
	var readers []*lockkeeper.Hold
	for _, granted := range waiting { // they do not poll
		readers = append(readers, locktest.Got(t, granted).Hold)
	}
	k.heldAs(t, "read", "1", a, b)
	k.AwaitRenewals(t, 500*time.Millisecond) // renewal survives the change
	locktest.ExpectValid(t, reading)
	locktest.Fails(k.write(a).TryAcquire(reading.Context()))(t, lockkeeper.ErrReentry)
	locktest.Release(t, reading)
	k.heldAs(t, "read", "1", a, b)
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, k.write(a), k.write(b))
	for _, hold := range readers {
		locktest.Release(t, hold)
	}
	k.awaitNothing(t)
}

// A writer that has become a reader by message, and has released both, keeps the lock actor no longer.
func TestReadWrite_ActorLeavesAfterADowngrade(t *testing.T) {
	t.Parallel()
	k, s, _ := readWrite(t, lockkeeper.Config{Idle: 10 * time.Millisecond})
	p := s.Probe(t)
	before := s.Processes()
	for _, kind := range []string{"write", "read", "write"} {
		locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: locktest.KindMessage(kind, k.LockName)})
	}
	for _, kind := range []string{"write", "write", "read"} {
		locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: locktest.KindMessage(kind, k.LockName)})
	}
	redistest.Eventually(t, "the lock actor to leave", func() bool { return s.Processes() == before })
}

// The death of a reader ends all its holds, and no others.
func TestReadWrite_DeathOfReaderEndsOnlyItsHolds(t *testing.T) {
	t.Parallel()
	k, s, other := readWrite(t, locktest.NoPolling)
	dies, stays := s.Probe(t), s.Probe(t)
	for _, p := range []*locktest.Probe{dies, dies, stays} {
		locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.message()})
	}
	k.heldAs(t, "read", "2", s)
	dies.Die()
	redistest.Eventually(t, "the end of the dead reader's holds", func() bool {
		_, holders := k.holders(t)
		return slices.Equal(slices.Collect(maps.Values(holders)), []string{"1"})
	})
	status := locktest.Ask[*messages.Status](t, s.Probe(t), &messages.Inspect{Lock: k.message()})
	if !status.Locked || !status.HeldHere || status.Mode != messages.Mode_MODE_SHARED || status.Holders != 1 || len(stays.Mail) > 0 {
		t.Errorf("status %v, and the other reader has %d messages", status, len(stays.Mail))
	}
	writer := locktest.AcquireSoon(locktest.Within(t), k.write(other))
	k.awaitEntries(t, 1)
	stays.Die()
	locktest.Release(t, locktest.Got(t, writer).Hold)
	k.awaitNothing(t)
}
