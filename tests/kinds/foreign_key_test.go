package kinds_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

// readers are owners as Redisson writes them.
func readers(n int) (owners []string) {
	for i := range n {
		owners = append(owners, strings.TrimSuffix(locktest.Redisson, "57")+strconv.Itoa(i))
	}
	return owners
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

// foreignKeys are such commands for the keys beside a lock. In the last two, 16 entries have the form of owners, and
// count as dead.
func foreignKeys() map[string][]string {
	list, set := []string{"RPUSH"}, []string{"ZADD"}
	for i, owner := range readers(16) {
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
