package kinds_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// readers are owners as Redisson writes them.
func readers(n int) (owners []string) {
	for i := range n {
		owners = append(owners, strings.TrimSuffix(locktest.Redisson, "57")+strconv.Itoa(i))
	}
	return owners
}

// foreignKeys are the commands that make keys of other applications; the name of the key comes behind the first word.
// In the last two, 16 entries have the form of owners, and count as dead.
func foreignKeys() map[string][]string {
	list, set := []string{"RPUSH"}, []string{"ZADD"}
	for i, owner := range readers(16) {
		list, set = append(list, owner), append(set, strconv.Itoa(i), owner)
	}
	return map[string][]string{
		"string":               {"SET", "tiger"},
		"list":                 {"RPUSH", "job 1", "job 2"},
		"hash":                 {"HSET", "email", "tiger"},
		"set":                  {"SADD", "ann", "bert"},
		"sorted set":           {"ZADD", "100", "ann", "200", "bert"},
		"list behind the dead": append(list, "job 17", "job 18"),
		"set behind the dead":  append(set, "1000", "ann"),
	}
}

// putForeign replaces a key by one of another application, and returns a function that checks that it stays as it is.
func putForeign(t *testing.T, k locktest.Key, key string, command []string) (check func()) {
	t.Helper()
	k.Atomically(t, "redis.call('DEL', KEYS[1]) redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))", []string{key}, command...)
	t.Cleanup(func() { k.Server.Do(t, "DEL", key) })
	state := func() string {
		dump, _ := k.Server.Do(t, "DUMP", key).ToString()
		return fmt.Sprintf("%x, ends: %t", dump, k.Number(t, "PTTL", key) >= 0)
	}
	before := state()
	return func() {
		t.Helper()
		if after := state(); after != before {
			t.Errorf("the key %q was %s, and is %s", key, before, after)
		}
	}
}

// The queue and the timeouts of a fair lock may be keys of another application, or have entries of one. They stay as
// they are. Requests are refused, also those of a MultiLock; a hold is released all the same, and the waiters of a fair
// lock in its process are refused.
func TestForeignQueue(t *testing.T) {
	t.Parallel()
	names := map[string]func(key string) string{"queue": redisio.Queue, "timeouts": redisio.Timeouts}
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
					if kind == "fair" { // a MultiLock is handed over in memory
						waiting = locktest.AcquireSoon(locktest.Within(t), l)
						locktest.AwaitWaiters(t, l, 1)
					}
					unchanged := putForeign(t, k, name(k.Name), command)
					locktest.Release(t, hold)
					if kind == "fair" {
						locktest.ExpectEnd(t, waiting, lockkeeper.ErrRejected)
					}
					k.AwaitFree(t)
					_, err := l.TryAcquire(locktest.Within(t))
					locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
					unchanged()
				})
			}
		}
	}
}

// A look at a fair lock tells nothing of a queue that is not ours.
func TestInspectOfAForeignQueue(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	unchanged := putForeign(t, k, redisio.Queue(k.Name), foreignKeys()["list"])
	_, err := s.FairLock(k.LockName).Inspect(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE", "queue")
	unchanged()
}

// A counter of another application keeps its end: a transfer draws no token from it, and re-entry needs none.
func TestForeignCounterKeepsItsEnd(t *testing.T) {
	t.Parallel()
	for what, command := range foreignKeys() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a, k := locktest.New(t, locktest.NoPolling)
			b := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
			hold := locktest.Acquire(t, a.FencedLock(k.LockName))
			waiting := locktest.AcquireSoon(locktest.Within(t), b.FencedLock(k.LockName))
			redistest.Eventually(t, "an entry that listens", func() bool {
				entry, _ := k.Do(t, "HGET", redisio.WaitQueue(k.Name), b.ID()).ToString()
				return strings.HasSuffix(entry, " 1")
			})
			k.Do(t, "DEL", redisio.Token(k.Name))
			putForeign(t, k, redisio.Token(k.Name), command)
			k.Do(t, "PEXPIRE", redisio.Token(k.Name), "100000")
			ends := func(when string) {
				t.Helper()
				if k.Number(t, "PTTL", redisio.Token(k.Name)) < 0 {
					t.Errorf("%s: the counter does not end any more", when)
				}
			}
			locktest.Release(t, locktest.AcquireIn(t, hold.Context(), a.FencedLock(k.LockName)))
			ends("re-entry")
			locktest.Release(t, hold)
			locktest.ExpectEnd(t, waiting, lockkeeper.ErrRejected)
			ends("a transfer")
		})
	}
}

// A field of another application among many readers is not shown.
func TestForeignFieldAmongReaders(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	fields := []string{"HSET", k.Name, "mode", "read", "ann@example.com", "tiger"}
	for _, owner := range readers(900) {
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
		t.Error("each look chose the field: the test has shown nothing")
	}
}
