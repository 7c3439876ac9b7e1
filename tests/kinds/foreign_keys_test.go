package kinds_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
)

// The queue and the timeouts of a fair lock may be keys of another application, or have entries of another application.
// They do not change. Requests are refused, also requests for a MultiLock. A hold can still be released, and the
// waiters of a fair lock in its process are refused.
func TestForeignQueue_IsRefusedAndUnchanged(t *testing.T) {
	t.Parallel()
	names := map[string]func(key string) string{"queue": keyspace.Queue, "timeouts": keyspace.Timeouts}
	multi := func(s *locktest.Site, name string) *lockkeeper.Lock {
		return lockkeeper.MultiLock(s.FairLock(name), s.Lock(name+" too"))
	}
	for kind, of := range map[string]func(*locktest.Site, string) *lockkeeper.Lock{"fair": locktest.Kinds["fair"], "multi": multi} {
		for which, name := range names {
			for what, command := range foreignKeys() {
				t.Run(kind+"/"+which+"/"+what, func(t *testing.T) {
					t.Parallel()
					s, k := locktest.New(t, lockkeeper.Config{})
					l := of(s, k.LockName)
					hold := locktest.Acquire(t, l)
					var waiting <-chan locktest.Grant
					if kind == "fair" { // a MultiLock is handed off in memory
						waiting = locktest.AcquireSoon(locktest.Within(t), l)
						locktest.AwaitWaiters(t, l, 1)
					}
					unchanged := foreignKey(t, k, name(k.Name), command...)
					locktest.Release(t, hold)
					if kind == "fair" {
						locktest.ExpectEnd(t, waiting, lockkeeper.ErrRejected)
					}
					k.AwaitFree(t)
					locktest.Fails(l.TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrRejected, "WRONGTYPE")
					unchanged("TryAcquire")
				})
			}
		}
	}
}

// A field of another application among many readers is not shown.
func TestForeignField_IsNeverShown(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	fields := []string{"HSET", k.Name, "mode", "read", "ann@example.com", "tiger"}
	for _, owner := range redissonOwners(900) {
		fields = append(fields, owner, "1")
	}
	k.Do(t, fields...)
	seen := 0
	for range 30 {
		status, err := s.ReadWriteLock(k.LockName).Read().Inspect(locktest.Within(t))
		if err == nil {
			seen++
		}
		if strings.Contains(fmt.Sprint(status, err), "ann") {
			t.Fatalf("shown: %+v, %v", status, err)
		}
	}
	if seen == 0 {
		t.Error("every Inspect chose the foreign field: the test proves nothing")
	}
}

// foreignTypes are commands that write a key of another application, one for each type of Redis. The name of the key
// comes after the first word.
var foreignTypes = map[string][]string{
	"string": {"SET", "tiger"},
	"list":   {"RPUSH", "tiger"},
	"hash":   {"HSET", "email", "tiger"},
	"set":    {"SADD", "tiger"},
	"zset":   {"ZADD", "100", "ann", "200", "tiger"},
}

// foreignKeys are such commands for the keys next to a lock. In the last two, 16 entries have the form of owners, and
// count as dead.
func foreignKeys() map[string][]string {
	list, set := []string{"RPUSH"}, []string{"ZADD"}
	for i, owner := range redissonOwners(16) {
		list, set = append(list, owner), append(set, strconv.Itoa(i), owner)
	}
	return map[string][]string{
		"string":                 {"SET", "tiger"},
		"list":                   {"RPUSH", "job 1", "job 2"},
		"hash":                   {"HSET", "email", "tiger"},
		"set":                    {"SADD", "ann", "bert"},
		"sorted set":             {"ZADD", "100", "ann", "200", "bert"},
		"list after dead owners": append(list, "job 17", "job 18"),
		"set after dead owners":  append(set, "1000", "ann"),
	}
}

// foreignKey replaces a key by one of another application. The returned function checks that the key has not changed.
func foreignKey(t *testing.T, k locktest.Key, key string, command ...string) (unchanged func(what string)) {
	t.Helper()
	k.Atomically(t, "redis.call('DEL', KEYS[1]) redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))", []string{key}, command...)
	t.Cleanup(func() { k.Server.Do(t, "DEL", key) })
	state := func() string {
		dump, err := k.Do(t, "DUMP", key).ToString()
		return fmt.Sprintf("%x %v, with a TTL: %t", dump, err, k.Number(t, "PTTL", key) >= 0)
	}
	before := state()
	return func(what string) {
		t.Helper()
		if after := state(); after != before {
			t.Errorf("%s: the key %q was %s, and is %s", what, key, before, after)
		}
	}
}
