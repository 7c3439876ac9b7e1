package readwrite_test

// A read/write lock as it is in Redis.

import (
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
	writer string // where a writer announces itself
}

func newRWKey(t testing.TB, server *redistest.Server) rwKey {
	k := locktest.NewKey(t, server)
	k.Channel = "redisson_rwlock:{" + k.Name + "}"
	return rwKey{k, "lockkeeper_writer:{" + k.Name + "}"}
}

func (k rwKey) read(s *locktest.Site) *lockkeeper.Lock { return s.ReadWriteLock(k.LockName).Read() }

func (k rwKey) write(s *locktest.Site) *lockkeeper.Lock { return s.ReadWriteLock(k.LockName).Write() }

func (k rwKey) message(mode messages.Mode) *messages.Lock {
	return &messages.Lock{Name: k.LockName, Kind: messages.Kind_KIND_READ_WRITE, Mode: mode}
}

const shared = messages.Mode_MODE_SHARED

// leaseKey tells of an owner's i-th read hold.
func (k rwKey) leaseKey(owner string, i int) string {
	return fmt.Sprintf("{%s}:%s:rwlock_timeout:%d", k.Name, owner, i)
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
	if now != mode || len(holders) != len(by) {
		t.Fatalf("held for %q by %v, want %q by %d", now, holders, mode, len(by))
	}
	for _, s := range by {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(holders)), func(owner string) bool {
			if !locktest.QueuedBy([]string{owner}, s) {
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
	k.Do(t, "HSET", k.Name, "mode", "read")
	for _, lease := range leases {
		i, ms := k.Number(t, "HINCRBY", k.Name, owner, "1"), lease.Milliseconds()
		k.Do(t, "SET", k.leaseKey(owner, int(i)), "1", "PX", fmt.Sprint(ms))
		k.Do(t, "PEXPIRE", k.Name, fmt.Sprint(max(ms, k.Number(t, "PTTL", k.Name))))
	}
}

// pttl is the TTL of any key; negative if there is none.
func (k rwKey) pttl(t testing.TB, key string) time.Duration {
	t.Helper()
	return time.Duration(k.Number(t, "PTTL", key)) * time.Millisecond
}

// awaitNothing waits until the lock has left nothing in Redis, and nobody listens.
func (k rwKey) awaitNothing(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, "nothing to be left in Redis", func() bool {
		return !k.Exists(t) && len(k.Server.Keys(t, "*{"+k.Name+"}*")) == 0
	})
	k.AwaitSubscribers(t, 0)
}

// awaitAnnounced waits until a writer has announced itself.
func (k rwKey) awaitAnnounced(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, "the announcement", func() bool { return k.Number(t, "EXISTS", k.writer) == 1 })
}
