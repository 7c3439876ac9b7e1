package scripts_test

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// The instance with the highest token decides each field, and the fields do not depend on each other. Tokens are
// compared as numbers.
func TestSingleton_TheHighestTokenWins(t *testing.T) {
	d := onRedis(t)
	name := redistest.Name(t)
	key, counter := keyspace.Whereabouts(name), keyspace.Token(name)
	most := map[string]string{"at": "1", "left": "3"}
	set := func(field, token, value, want string) {
		t.Helper()
		if reply := d.run(t, scripts.SingletonSet, []string{key}, []string{field, token, value, most[field], "60000", counter}); reply != want {
			t.Errorf("%s of %s: reply %s, want %s", field, token, reply, want)
		}
	}
	reads := func(want string) {
		t.Helper()
		if reply := d.run(t, scripts.SingletonInspect, []string{key}, nil); reply != want {
			t.Errorf("read %s, want %s", reply, want)
		}
	}
	reads("[ ]")
	set("at", "9", "a b", "1")
	set("at", "9", "a c", "1") // the same instance again
	reads("[9 a c ]")
	set("at", "10", "d", "1")
	set("at", "9", "a c", "0")
	set("left", "9", "l", "1")
	set("left", "8", "k", "0")
	reads("[10 d 9 l]")
	for _, token := range []string{"10", "11", "11", "12"} {
		set("left", token, "m", "1")
	}
	reads("[10 d 12 m\n11 m\n10 m]")
	if ttl := number(t, d.do(t, "PTTL", key)); ttl <= 0 || ttl > 60_000 {
		t.Errorf("the TTL is %d", ttl)
	}
	for _, fields := range [][]string{{"at", "foreign"}, {"left", "long"}, {"password", "secret"}, {"at", "1 a", "password", "secret"}} {
		d.must(t, "DEL", key)
		d.must(t, append([]string{"HSET", key}, fields...)...)
		if fields[1] == "long" { // made by Redis, which takes less time
			d.must(t, "EVAL", "return redis.call('HSET', KEYS[1], 'left', string.rep('1 ', 2000001))", "1", key)
		}
		for script, reply := range map[string]string{
			"set":     d.run(t, scripts.SingletonSet, []string{key}, []string{"at", "1", "e", "1", "1", counter}),
			"inspect": d.run(t, scripts.SingletonInspect, []string{key}, nil),
		} {
			if !strings.Contains(reply, "WRONGTYPE") || strings.Contains(reply, "secret") {
				t.Errorf("%s of a foreign hash: reply %s", script, reply)
			}
		}
		if ttl := number(t, d.do(t, "PTTL", key)); ttl != -1 {
			t.Errorf("a foreign hash has a TTL of %d", ttl)
		}
	}
	d.must(t, "DEL", key)

	// Redis has lost its data, and the counter has started over: the instances of before are gone.
	set("at", "1000", "old", "1")
	set("left", "1000", "old", "1")
	d.must(t, "SET", counter, "2")
	set("at", "1000", "old", "0")
	set("at", "1", "first", "1")
	set("at", "2", "second", "1")
	set("at", "3", "not granted", "0")
	set("left", "2", "second", "1")
	reads("[2 second 2 second]")
	d.must(t, "SET", counter, "foreign")
	set("at", "3", "third", "1")
	reads("[3 third 2 second]")
	d.must(t, "DEL", counter)

	d.must(t, "DEL", key)
	d.must(t, "SET", key, "foreign")
	if reply := d.run(t, scripts.SingletonSet, []string{key}, []string{"at", "1", "e", "1", "1", counter}); !strings.Contains(reply, "WRONGTYPE") {
		t.Errorf("a string under the key: reply %s", reply)
	}
	d.must(t, "DEL", key)
}

// However much the last instances had begun, of very many proxies, the whereabouts can be read and written: older lines
// make room, and a line that is too long is not written.
func TestSingleton_LongLinesMakeRoom(t *testing.T) {
	d := onRedis(t)
	name := redistest.Name(t)
	key, counter := keyspace.Whereabouts(name), keyspace.Token(name)
	set := func(field, token, text, most string) string {
		return d.run(t, scripts.SingletonSet, []string{key}, []string{field, token, text, most, "60000", counter})
	}
	d.must(t, "EVAL", `local w = string.rep('w', 1999990)
		return redis.call('HSET', KEYS[1], 'left', '2 ' .. w .. '\n1 ' .. w)`, "1", key) // which is as long as may be read
	if reply := set("left", "3", strings.Repeat("y", 100), "8") + set("at", "3", "a b", "1"); reply != "11" {
		t.Errorf("another line: replies %.200s", reply)
	}
	tooLong := "ARGV[3] = string.rep('z', 4000000) " + scripts.SingletonSet.Source
	if reply := d.do(t, "EVAL", tooLong, "1", key, "left", "4", "", "8", "60000", counter); reply != "0" {
		t.Errorf("a line that is too long: reply %.200s", reply)
	}
	if n := d.do(t, "HSTRLEN", key, "left"); n != "2000095" { // "3 yyy…", a line end and "2 www…"
		t.Errorf("the lines have %s bytes", n)
	}
	d.must(t, "DEL", key)
}

// A user who may not set a TTL leaves no whereabouts without one.
func TestSingleton_RefusedLeavesNoEndlessKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}})
	admin.must(t, "ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all", "-pexpire")
	limited := connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}, Username: "limited", Password: "secret"})
	args := []string{"at", "1", "a b", "1", "60000", keyspace.Token("a")}
	if reply := limited.run(t, scripts.SingletonSet, []string{keyspace.Whereabouts("a")}, args); !strings.HasPrefix(reply, "-") {
		t.Errorf("reply %s", reply)
	}
	if keys := server.Keys(t, "*"); len(keys) > 0 {
		t.Errorf("it has left %q", keys)
	}
}
