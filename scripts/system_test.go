package scripts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A System is on the list for as long as it has a record, and both have a TTL.
func TestSystem_IsListedWhileItHasARecord(t *testing.T) {
	d := onRedis(t)
	prefix := redistest.Name(t)
	list, long, short := keyspace.Systems(prefix), "00000000-0000-4001", "00000000-0000-4002"
	keys := func(system string) []string { return []string{list, keyspace.System(prefix, system)} }
	renew := func(system, says, ttl string) {
		if reply := d.run(t, scripts.SystemRenew, keys(system), []string{system, says, ttl}); reply != "1" {
			t.Errorf("renewal of %s: reply %s", system, reply)
		}
	}
	listed := func(want string) {
		t.Helper()
		if reply := d.run(t, scripts.SystemList, []string{list}, []string{"0", "9"}); !agree(reply, want, time.Minute) {
			t.Errorf("listed %q, want %q", reply, want)
		}
	}
	listed("[0 0 ]")
	renew(long, "one", "300000")
	renew(short, "two", "1")
	redistest.Eventually(t, "the short record has expired", func() bool {
		return d.run(t, scripts.SystemInspect, []string{list}, []string{short}) == "[-2 ]"
	})
	listed("[2 2 300000 one]")
	d.frozenAt = time.Now().Truncate(time.Millisecond)
	renew(long, "three", "200000")
	if ends := number(t, d.do(t, "ZSCORE", list, long)); ends != int(d.frozenAt.UnixMilli())+200_000 {
		t.Errorf("the record ends at %d", ends)
	}
	d.frozenAt = time.Time{}
	listed("[1 1 200000 three]")
	// A member that is not a System stays on the list, whatever its score.
	d.must(t, "ZADD", list, "1", "ann")
	renew(short, "two", "100000")
	if d.do(t, "ZSCORE", list, "ann") != "1" {
		t.Error("the member that is not a System has left the list")
	}
	d.must(t, "ZREM", list, "ann", short)
	// A foreign value hides only its own record.
	for system, write := range map[string][]string{"set": {"SADD", "x"}, "lines": {"SET", "x\n1000 {}"}} {
		d.must(t, "ZADD", list, "9999999999999", system)
		d.must(t, append([]string{write[0], keyspace.System(prefix, system)}, write[1:]...)...)
		listed("[2 2 200000 three]")
		d.must(t, "ZREM", list, system)
		d.must(t, "DEL", keyspace.System(prefix, system))
	}
	if left := number(t, d.do(t, "PTTL", list)); left <= 200_000 || left > 300_000 {
		t.Errorf("the list ends in %d ms, before the record with the longest TTL did", left)
	}
	if reply := d.run(t, scripts.SystemInspect, []string{list}, []string{long}); !agree(reply, "[200000 three]", time.Minute) {
		t.Errorf("inspected %s", reply)
	}
	for _, want := range []string{"1", "0"} {
		if reply := d.run(t, scripts.SystemRemove, keys(long), []string{long}); reply != want {
			t.Errorf("removal: reply %s, want %s", reply, want)
		}
	}
	if left := d.do(t, "EXISTS", keys(long)[0], keys(long)[1]); left != "0" {
		t.Errorf("%s keys are left", left)
	}
}

// A refused renewal leaves no key without a TTL, whatever command the user lacks.
func TestSystemRenew_RefusedLeavesNoEndlessKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}})
	admin.must(t, "ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all")
	limited := connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}, Username: "limited", Password: "secret"})
	keys := []string{keyspace.Systems(""), keyspace.System("", "one")}
	for _, m := range inScript.FindAllStringSubmatch(scripts.SystemRenew.Source, -1) {
		admin.must(t, "DEL", keys[0], keys[1])
		admin.must(t, "ZADD", keys[0], "1", "00000000-0000-4000") // it has expired
		admin.must(t, "PEXPIRE", keys[0], "300000")
		admin.must(t, "ACL", "SETUSER", "limited", "reset", "on", ">secret", "~*", "+@all", "-"+strings.ToLower(m[1]))
		reply := limited.run(t, scripts.SystemRenew, keys, []string{"one", "x", "300000"})
		if !strings.HasPrefix(reply, "-") {
			t.Errorf("without %s: reply %s", m[1], reply)
		}
		for _, key := range keys {
			if admin.do(t, "PTTL", key) == "-1" {
				t.Errorf("without %s: %s has no TTL", m[1], key)
			}
		}
	}
}

// A full Redis does not refuse the renewal of a record, whose System would be taken for dead, but a new one.
func TestSystemRenew_WorksWhileRedisIsFull(t *testing.T) {
	t.Parallel()
	d := connect(t, rueidis.ClientOption{InitAddress: []string{redistest.Start(t).Addr()}})
	const one, two = "00000000-0000-4001", "00000000-0000-4002"
	renew := func(system, says, ttl string) string {
		return d.run(t, scripts.SystemRenew, []string{keyspace.Systems(""), keyspace.System("", system)}, []string{system, says, ttl})
	}
	renew(one, "early", "100000")
	d.must(t, "CONFIG", "SET", "maxmemory", "1")
	if reply := renew(one, "late", "300000"); reply != "1" {
		t.Errorf("renewal: reply %s", reply)
	}
	if reply := renew(two, "late", "300000"); !strings.HasPrefix(reply, "-OOM") {
		t.Errorf("a new record: reply %s", reply)
	}
	if reply := d.run(t, scripts.SystemList, []string{keyspace.Systems("")}, []string{"0", "9"}); !agree(reply, "[1 1 300000 late]", time.Minute) {
		t.Errorf("listed %q", reply)
	}
}
