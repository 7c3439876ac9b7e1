//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// watch prints each change once, until it is interrupted.
func TestWatch_PrintsEachChangeOnce(t *testing.T) {
	t.Parallel()
	server, name := redistest.Start(t), redistest.Name(t)
	cmd := program(t, "watch", "-every", "10ms", name)
	cmd.Env = append(cmd.Env, "REDIS_URL="+server.URL())
	p := start(t, cmd)
	expect := func(want string) {
		t.Helper()
		if line, _ := p.line(); len(line) < 10 || line[10:] != name+"  "+want {
			t.Fatalf("printed %q, want %q; stderr: %s", line, want, p.stderrText())
		}
	}
	const one, two = "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88", "00000000-6b1d-4a53-9a5e-2f4b7c1d0e88"
	expect("is free")
	server.Do(t, "HSET", name, one+":1", "1")
	expect("is held by client " + one + ", which has no record")
	server.Do(t, "PEXPIRE", name, "1000000")
	server.Do(t, "EVAL", `redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], 1)`, "1", name, two+":1")
	expect("is held by client " + two + ", which has no record")
	server.Kill(t)
	redistest.Eventually(t, "the outage", func() bool { return strings.Contains(p.stderrText(), "Redis is unavailable") })
	server.Restart(t)
	redistest.Eventually(t, "its end", func() bool { return strings.Contains(p.stderrText(), "Redis is available again") })
	expect("is free")
	p.signal("INT")
	p.expectExit(0)
}

// watch prints the minimum time for which an owner has held a lock, from its record or since it was seen first, and the
// number of waiters.
func TestWatch_PrintsMinimumHoldTimes(t *testing.T) {
	const client = "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88"
	held := func(field string, record inspect.Number) inspect.Lock {
		return inspect.Lock{Name: "x", Kind: inspect.KindPlain, Held: true, Owners: []inspect.Owner{
			{Field: field, HeldAtLeast: record, Process: inspect.Process{Client: client}},
		}}
	}
	var last change
	began := time.Now()
	for _, c := range []struct {
		after  time.Duration
		field  string
		record inspect.Number
		want   inspect.Number
	}{
		{0, "a:1", inspect.Number{}, inspect.Number{}},
		{5 * time.Second, "a:1", inspect.Number{}, inspect.Known(5000)},
		{6 * time.Second, "a:1", inspect.Known(60_000), inspect.Known(60_000)},
		{7 * time.Second, "a:2", inspect.Number{}, inspect.Number{}},
		{9 * time.Second, "a:2", inspect.Number{}, inspect.Known(2000)},
		{10 * time.Second, "a:1", inspect.Number{}, inspect.Number{}}, // another owner has held it meanwhile
	} {
		v := held(c.field, c.record)
		last.age(v.Owners, began.Add(c.after))
		if got := v.Owners[0].HeldAtLeast; got != c.want {
			t.Errorf("after %v it has been held for %v, want %v", c.after, got, c.want)
		}
		last = change{At: began.Add(c.after), Lock: v}
	}
	by := "is held by client " + client + ", which has no record"
	waited := held("a:1", inspect.Known(60_000))
	waited.Waiters, waited.Queue = inspect.Known(2), []inspect.Waiter{{Waiting: inspect.Known(1000)}, {Waiting: inspect.Known(3000)}, {}}
	known := held("a:1", inspect.Number{})
	known.Owners[0].Waiters = inspect.Known(3)
	for want, v := range map[string]inspect.Lock{
		by: held("a:1", inspect.Number{}), by + ", for at least 1m0s; waiters: 2+?, the first for 3s": waited, by + "; waiters: ?+3": known,
	} {
		if got := heldBy(v); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (change{Before: waited.Owners}).before(); got != "; it was held for at least 1m0s before" {
		t.Errorf("before, it was %q", got)
	}
	if got := (change{Before: known.Owners}).before(); got != "" {
		t.Errorf("before, it was %q", got)
	}
}

// While a master of a cluster is down, watch prints the changes of locks on the others, names the master, and does not
// report locks as free that it cannot read.
func TestWatch_NamesTheMasterThatIsDown(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 3)
	owner := func(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }
	names := make([]string, len(servers))
	for i := 0; slices.Contains(names, ""); i++ {
		name := fmt.Sprintf("lock-%02d", i)
		if at := int(keyspace.Slot(name)) * len(servers) / 16384; names[at] == "" {
			names[at] = name
			check(servers[at].Do(t, "HSET", name, owner(1)+":1", "1").Error())
		}
	}
	for what, args := range map[string][]string{"all locks": nil, "named locks": names} {
		for _, s := range servers {
			check(s.Do(t, "CONFIG", "SET", "cluster-require-full-coverage", "no").Error())
		}
		cmd := program(t, append([]string{"watch", "-every", "50ms"}, args...)...)
		cmd.Env = append(cmd.Env, "REDIS_URL="+servers[0].URL())
		p := start(t, cmd)
		for range names {
			if line, _ := p.line(); !strings.Contains(line, "is held by client "+owner(1)) {
				t.Fatalf("%s: printed %q", what, line)
			}
		}
		servers[2].Kill(t)
		redistest.Eventually(t, what+": the master that is missing", func() bool {
			return strings.Contains(p.stderrText(), "not all locks are seen: ") && (strings.Contains(p.stderrText(), servers[2].Addr()) || strings.Contains(p.stderrText(), names[2]))
		})
		check(servers[0].Do(t, "DEL", names[0]).Error())
		if line, _ := p.line(); !strings.Contains(line, names[0]+"  is free") {
			t.Errorf("%s: printed %q, want that %s is free", what, line, names[0])
		}
		servers[2].Restart(t)
		redistest.Eventually(t, "the cluster", func() bool {
			return servers[2].Do(t, "HSET", names[2], owner(1)+":1", "1").Error() == nil && servers[0].Do(t, "HSET", names[0], owner(1)+":1", "1").Error() == nil
		})
		redistest.Eventually(t, what+": the end", func() bool { return strings.Contains(p.stderrText(), "Redis is available again") })
		for line, ok := p.line(); !strings.Contains(line, names[0]+"  is held by"); line, ok = p.line() {
			if !ok || !strings.Contains(line, names[2]) { // the restarted master has lost this lock
				t.Fatalf("%s: printed %q, want that %s is held", what, line, names[0])
			}
		}
		p.signal("INT")
		p.expectExit(0)
	}
}
