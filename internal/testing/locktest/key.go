package locktest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Key is a lock as a foreign client sees it.
type Key struct {
	Server   *redistest.Server
	LockName string // the name for the API
	Name     string // the key in Redis
	Channel  string
}

// NewKey returns a lock with a name of the test's own.
func NewKey(t testing.TB, server *redistest.Server) Key { return KeyOf(server, redistest.Name(t)) }

// KeyOf returns the lock of that name, which has no braces.
func KeyOf(server *redistest.Server, name string) Key {
	return Key{Server: server, LockName: name, Name: name, Channel: "redisson_lock__channel:{" + name + "}"}
}

// Redisson is an owner in Redisson's form: client and thread.
const Redisson = "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:57"

func (k Key) Do(t testing.TB, args ...string) rueidis.RedisResult {
	t.Helper()
	result := k.Server.Do(t, args...)
	if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%q: %v", args, err)
	}
	return result
}

func (k Key) Number(t testing.TB, args ...string) int64 {
	t.Helper()
	n, err := k.Do(t, args...).AsInt64()
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return n
}

// Atomically runs a script like a script of Redisson. Several commands would not do: a command of Lockkeeper could run
// between them.
func (k Key) Atomically(t testing.TB, script string, keys []string, args ...string) {
	t.Helper()
	k.Do(t, slices.Concat([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys, args)...)
}

// TakeAs acquires the lock as Redisson would, for ttl; a negative ttl is without end.
func (k Key) TakeAs(t testing.TB, owner string, ttl time.Duration) {
	t.Helper()
	script := `redis.call('HSET', KEYS[1], ARGV[1], 1)`
	if ttl >= 0 {
		script += ` redis.call('PEXPIRE', KEYS[1], ARGV[2])`
	}
	k.Atomically(t, script, []string{k.Name}, owner, strconv.FormatInt(ttl.Milliseconds(), 10))
}

// Unlock releases the lock as Redisson would.
func (k Key) Unlock(t testing.TB) {
	t.Helper()
	k.Atomically(t, `redis.call('DEL', KEYS[1]) redis.call('PUBLISH', KEYS[2], '0')`, []string{k.Name, k.Channel})
}

// Owners is the hash: owner to hold count.
func (k Key) Owners(t testing.TB) map[string]string {
	t.Helper()
	m := Must(k.Do(t, "HGETALL", k.Name).AsStrMap())(t)
	return m
}

// HeldBy checks that the site is the only owner, with that hold count.
func (k Key) HeldBy(t testing.TB, s *Site, count string) (owner string) {
	t.Helper()
	owners := k.Owners(t)
	for owner = range owners {
		if len(owners) == 1 && len(owner) > len(s.ID()) && owner[:len(s.ID())] == s.ID() && owners[owner] == count {
			return owner
		}
	}
	t.Fatalf("%s is held by %v, want %s:<n> = %s", k.Name, owners, s.ID(), count)
	return ""
}

func (k Key) TTL(t testing.TB) time.Duration {
	t.Helper()
	return time.Duration(k.Number(t, "PTTL", k.Name)) * time.Millisecond
}

// Expiry is when the key expires; the zero time if it does not.
func (k Key) Expiry(t testing.TB) time.Time {
	t.Helper()
	if at := k.Number(t, "PEXPIRETIME", k.Name); at >= 0 {
		return time.UnixMilli(at)
	}
	return time.Time{}
}

func (k Key) Exists(t testing.TB) bool {
	t.Helper()
	return k.Number(t, "EXISTS", k.Name) == 1
}

func (k Key) IsFree(t testing.TB) {
	t.Helper()
	if owners := k.Owners(t); len(owners) > 0 {
		t.Fatalf("%s is held by %v", k.Name, owners)
	}
}

func (k Key) AwaitFree(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, k.Name+" to be free", func() bool { return !k.Exists(t) })
}

func (k Key) AwaitSubscribers(t testing.TB, n int64) {
	t.Helper()
	k.Server.AwaitSubscribers(t, k.Channel, n)
}

// AwaitListener waits until a client has subscribed to the channel and its next try was refused, so
// that only a message, the TTL or the poll bound causes another try. The server must belong to the
// test, without other refusals since the last ResetStats.
func (k Key) AwaitListener(t testing.TB) {
	t.Helper()
	k.AwaitSubscribers(t, 1)
	redistest.Eventually(t, "two refusals", func() bool { return k.Server.Calls(t)["hmget"] >= 2 }) // each reads the values
}

func (k Key) Message() *messages.Lock { return &messages.Lock{Name: k.LockName} }

// AgeServers makes servers of a RedLock old enough to vote: a server that has just started may
// have lost locks.
func AgeServers(t testing.TB, servers ...*redistest.Server) {
	t.Helper()
	for _, server := range servers {
		memory := infoField(t, server, "server", "run_id") + ":" + infoField(t, server, "replication", "master_replid") + ":ripe"
		OK(t, server.Do(t, "HSET", "lockkeeper_memory", "memory", memory, "age", "86400000").Error())
	}
}

func infoField(t testing.TB, server *redistest.Server, section, field string) string {
	t.Helper()
	info := Must(server.Do(t, "INFO", section).ToString())(t)
	_, value, _ := strings.Cut(info, "\n"+field+":")
	value, _, _ = strings.Cut(value, "\r")
	return value
}
