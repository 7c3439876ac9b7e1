//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// runCommand runs a subcommand in this process, and returns its output.
func runCommand(t *testing.T, server *redistest.Server, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	env := environment{variables: []string{"REDIS_URL=" + server.URL()}, stdout: &out, stderr: &errs}
	if got := dispatch(args, env); got != code {
		t.Errorf("%q: exit code %d, want %d: %s%s", args, got, code, &out, &errs)
	}
	return out.String(), errs.String()
}

// read reads the lines of JSON that a subcommand prints.
func read[T any](t *testing.T, server *redistest.Server, code int, args ...string) (all []T) {
	t.Helper()
	out, _ := runCommand(t, server, code, args...)
	for line := range strings.Lines(out) {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%q printed %q: %v", args, line, err)
		}
		all = append(all, one)
	}
	return all
}

// After a process that holds a lock was killed, inspect and Inspect return its host, process id and start time, for
// every kind of lock.
func TestDeadHolder_IsTraced(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	host, _ := os.Hostname()
	ours := must(lockkeeper.Open(t.Context(), server.URL()))
	t.Cleanup(func() { check(ours.Close(context.Background())) })
	for kind, form := range kinds.Forms {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name, began := redistest.Name(t), time.Now()
			p := under(t, server, "-lock", name, "-lock", name+"2", "-kind", kind, "sh", "-c", patient)
			p.expectLine("ready")
			check(p.cmd.Process.Kill())
			for _, lock := range []string{name, name + "2"} {
				v := read[inspect.Lock](t, server, 0, "inspect", "--json", lock)[0]
				holder := v.Owners[0].Process
				if holder.PID != p.cmd.Process.Pid || holder.Host != host || holder.Application != "lockkeeper run sh" ||
					holder.Since.Before(began.Add(-time.Second)) || holder.Since.After(time.Now()) {
					t.Errorf("the holder of %s is %+v, want pid %d, started after %v", lock, holder, p.cmd.Process.Pid, began)
				}
			}
			if status, err := ours.LockOf(form.Of(name)).Inspect(t.Context()); err != nil ||
				status.Process.PID != p.cmd.Process.Pid || status.Process.Host != host {
				t.Errorf("Inspect returns the holder %v, %v", status.Process, err)
			}
			text, _ := runCommand(t, server, 0, "inspect", name)
			for _, want := range []string{"lockkeeper run sh on " + host, fmt.Sprintf("pid %d,", p.cmd.Process.Pid), "up since " + began.UTC().Format("2006-01-02T15:")} {
				if !strings.Contains(text, want) {
					t.Errorf("inspect does not print %q: %s", want, text)
				}
			}
			for _, lock := range []string{name, name + "2"} {
				runCommand(t, server, 0, "release", "--force", lock)
				runCommand(t, server, exitNo, "release", "--force", lock)
				runCommand(t, server, exitNo, "inspect", lock)
			}
		})
	}
}

// inRedis returns a lock as read with plain commands.
func inRedis(t *testing.T, server *redistest.Server, name, kind string) inspect.Lock {
	t.Helper()
	number := func(args ...string) int64 {
		n, err := server.Do(t, args...).AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) {
			t.Fatal(args, err)
		}
		return n
	}
	fields, _ := server.Do(t, "HGETALL", name).AsStrMap()
	v := inspect.Lock{Name: name, Kind: kind, Held: true, TTL: number("PTTL", name), Token: number("GET", "redisson_lock_token:{"+name+"}")}
	waitQueue := "lockkeeper_wait_queue:{" + name + "}"
	switch kind {
	case "fair":
		queue, _ := server.Do(t, "LRANGE", "redisson_lock_queue:{"+name+"}", "0", "-1").AsStrSlice()
		for _, owner := range queue {
			v.Queue = append(v.Queue, inspect.Waiter{Field: owner})
		}
		v.Waiters = inspect.Known(int64(len(v.Queue)))
	case "read_write":
		waitQueue = "lockkeeper_read_write_queue:{" + name + "}"
		v.Waiters = inspect.Known(server.Subscribers(t, "redisson_rwlock:{"+name+"}"))
	default:
		v.Waiters = inspect.Known(server.Subscribers(t, "redisson_lock__channel:{"+name+"}"))
	}
	clients, _ := server.Do(t, "HKEYS", waitQueue).AsStrSlice()
	for _, client := range clients {
		if client != "open" && client != "turns" {
			v.Queue = append(v.Queue, inspect.Waiter{Field: client})
			v.Waiters.N = max(v.Waiters.N, int64(len(v.Queue)))
		}
	}
	for field, count := range fields {
		n, _ := strconv.ParseInt(count, 10, 64)
		owner := inspect.Owner{Field: field, Count: inspect.Known(n)}
		switch f, writes := strings.CutSuffix(field, ":write"); {
		case field == "mode":
			continue
		case writes:
			owner.Field, owner.Mode = f, "write"
		case kind == "read_write":
			owner.Mode = "read"
		}
		v.Owners = append(v.Owners, owner)
	}
	slices.SortFunc(v.Owners, func(a, b inspect.Owner) int { return strings.Compare(b.Mode+a.Field, a.Mode+b.Field) })
	return v
}

// ls and inspect print the data in Redis, and no other key is taken for a lock.
func TestList_MatchesRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	open := func(application, prefix string) *lockkeeper.System {
		s := must(lockkeeper.Open(ctx, server.URL(), lockkeeper.WithConfig(lockkeeper.Config{Application: application, KeyPrefix: prefix})))
		t.Cleanup(func() { check(s.Close(context.WithoutCancel(ctx))) })
		return s
	}
	a, b, c := open("a", ""), open("b", ""), open("c", "app:")
	must(c.Lock("of c").Acquire(ctx))
	first := must(a.Lock("plain").Acquire(ctx))
	must(a.Lock("plain").Acquire(first.Context()))
	must(a.FencedLock("fenced").Acquire(ctx))
	must(a.FairLock("fair").Acquire(ctx))
	writer := must(a.ReadWriteLock("written").Write().Acquire(ctx))
	must(a.ReadWriteLock("written").Read().Acquire(writer.Context()))
	must(a.ReadWriteLock("read").Read().Acquire(ctx))
	must(b.ReadWriteLock("read").Read().Acquire(ctx))
	for _, l := range []*lockkeeper.Lock{b.Lock("plain"), b.FairLock("fair"), b.ReadWriteLock("written").Write()} {
		wait, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = l.Acquire(wait)
		}()
		t.Cleanup(func() { stop(); <-done })
		redistest.Eventually(t, "it waits", func() bool { s, err := l.Inspect(ctx); return err == nil && s.Waiters == 1 && s.Subscribers == 1 })
	}
	for _, command := range []string{"HSET java 9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:57 2", "HSET user 1 2", "HSET mode mode read x y", "SET text x",
		"HSET counts 9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:57 1 9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:58 1", "HSET words 9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:57 many"} {
		server.Do(t, strings.Fields(command)...)
	}
	now := time.Now().UnixMicro()
	server.Do(t, "HSET", "lockkeeper_wait_queue:{java}", b.ID(), fmt.Sprintf("%d %d 7 1 0 0 1", now, now), "open", "1", "turns", "2")
	for i := range 2 * inspect.PageSize { // so that several pages are needed
		server.Do(t, "HSET", "more"+strconv.Itoa(i), "x", "1")
	}

	var want []inspect.Lock
	for name, kind := range map[string]string{
		"plain": "plain", "fenced": "fenced", "fair": "fair", "written": "read_write", "read": "read_write",
		"java": "plain", "app:of c": "plain",
	} {
		want = append(want, inRedis(t, server, name, kind))
	}
	slices.SortFunc(want, func(a, b inspect.Lock) int { return strings.Compare(a.Name, b.Name) })
	applications := map[string]string{a.ID(): "a", b.ID(): "b", c.ID(): "c", "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88": ""}
	compare := func(got, want []inspect.Lock) {
		t.Helper()
		for i := range got {
			if late := want[min(i, len(want)-1)].TTL - got[i].TTL; late < -10_000 || late > 10_000 {
				t.Errorf("%s: TTL %d ms", got[i].Name, got[i].TTL)
			} else {
				got[i].TTL += late // time has passed, or it was renewed
			}
			for j := range got[i].Owners {
				o := &got[i].Owners[j]
				if application, known := applications[o.Process.Client]; !known ||
					!strings.HasPrefix(o.Field, o.Process.Client+":") || o.Process.Application != application {
					t.Errorf("%s: the process of %s is %+v", got[i].Name, o.Field, o.Process)
				}
				o.Process, o.HeldAtLeast, o.Waiters = inspect.Process{}, inspect.Number{}, inspect.Number{}
			}
			for j := range got[i].Queue {
				w := &got[i].Queue[j]
				if w.Process.Client != b.ID() || w.Process.Application != "b" ||
					w.Waiting.Known == (want[min(i, len(want)-1)].Kind == inspect.KindFair) || w.Waiting.N > 60_000 {
					t.Errorf("%s: the waiter is %+v", got[i].Name, w)
				}
				w.Process, w.Waiting = inspect.Process{}, inspect.Number{}
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("printed\n%+v\nand in Redis is\n%+v", got, want)
		}
	}
	compare(read[inspect.Lock](t, server, 0, "ls", "--json"), want)
	compare(read[inspect.Lock](t, server, 0, "ls", "--json", "f*"), want[1:3])
	for i := range want {
		compare(read[inspect.Lock](t, server, 0, "inspect", want[i].Name, "--json"), want[i:i+1])
	}
	prefixed := want[0]
	prefixed.Name = "of c"
	compare(read[inspect.Lock](t, server, 0, "ls", "--json", "-prefix", "app:"), []inspect.Lock{prefixed})
	compare(read[inspect.Lock](t, server, 0, "inspect", "--json", "-prefix", "app:", "of c"), []inspect.Lock{prefixed})
	table, _ := runCommand(t, server, 0, "ls")
	for _, v := range want {
		more := `\+[\d?]+` // the waiters in the holder's process
		if v.Kind == "fair" {
			more = ""
		}
		row := fmt.Sprintf(`(?m)^%s +%s +%v +(\d+s|never) +(\?|≥\S+) +%v%s +`, v.Name, kindOf(v, 0), v.Owners[0].Count, v.Waiters, more)
		if !regexp.MustCompile(row).MatchString(table) {
			t.Errorf("ls prints no %s:\n%s", row, table)
		}
	}
	if lines := strings.Count(table, "\n"); lines != 1+7+2 { // two locks have two owners
		t.Errorf("ls printed %d lines:\n%s", lines, table)
	}
	for _, other := range []string{"text", "user"} {
		runCommand(t, server, exitUnavailable, "inspect", other)
		runCommand(t, server, exitUnavailable, "release", "--force", other)
	}
	systems := read[inspect.Process](t, server, 0, "ls", "-systems", "--json")
	if len(systems) != 2 || systems[0].Application != "a" || systems[1].Client != b.ID() || systems[0].PID != os.Getpid() {
		t.Errorf("the Systems are %+v", systems)
	}

	// A System without a key prefix may hold a lock with a key prefix.
	must(a.Lock("app:of a").Acquire(ctx))
	if v := read[inspect.Lock](t, server, 0, "inspect", "--json", "-prefix", "app:", "of a"); v[0].Owners[0].Process.Application != "a" {
		t.Errorf("it is held by %+v", v[0].Owners)
	}
	if _, stderr := runCommand(t, server, exitHeld, "run", "-prefix", "app:", "-lock", "of c", "-wait", "0", "true"); !strings.Contains(stderr, "the holder is c on ") {
		t.Errorf("the error does not name the holder: %s", stderr)
	}
	if _, stderr := runCommand(t, server, 0, "ls", "-systems", "-prefix", "no:"); !strings.Contains(stderr, `"no:"`) {
		t.Errorf("the error does not name the prefix without Systems: %s", stderr)
	}
}

// A forced release frees the owner that is named, or that it has read, and prints it. If another owner has the lock when
// the command arrives at Redis, nothing is released.
func TestRelease_NotOfAnotherHolder(t *testing.T) {
	t.Parallel()
	const one, two = "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1", "00000000-6b1d-4a53-9a5e-2f4b7c1d0e88:1"
	for kind, fields := range map[string][]string{"plain": nil, "write": {"mode", "write"}, "read": {"mode", "read"}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server, name := redistest.Start(t), redistest.Name(t)
			proxy := redistest.NewProxy(t, server.Addr())
			take := func(owner string) {
				if kind == "write" {
					owner += ":write"
				}
				server.Do(t, "DEL", name)
				server.Do(t, append([]string{"HSET", name, owner, "1"}, fields...)...)
				server.Do(t, "SET", "{"+name+"}:"+owner+":rwlock_timeout:1", "1")
			}
			take(one)
			var changed sync.Once
			forces := redistest.Script(scripts.ForceRelease.SHA, scripts.ReadWriteForceRelease.SHA)
			proxy.See(func(cmd []string) {
				if forces(cmd) { // another takes the lock just before the command arrives
					changed.Do(func() { take(two) })
				}
			})
			var out, errs strings.Builder
			env := environment{variables: []string{"REDIS_URL=" + proxy.URL()}, stdout: &out, stderr: &errs}
			if code := dispatch([]string{"release", "--force", name}, env); code != exitNo {
				t.Errorf("exit code %d: %s%s", code, &out, &errs)
			}
			if text := out.String(); !strings.Contains(text, "no longer held by") || !strings.Contains(text, strings.TrimSuffix(one, ":1")) {
				t.Errorf("it printed %q", text)
			}
			if n, _ := server.Do(t, "HLEN", name).AsInt64(); n == 0 {
				t.Error("the next holder was released")
			}
			server.Do(
				t, "SET", keyspace.System("", keyspace.SystemOf(two)),
				`{"client":"`+two[:36]+`","application":"billing","host":"web-3","pid":7,"since":"2026-11-29T20:00:00Z","every":5000,"ttl":60000}`,
				"PX", "100000",
			)
			text, _ := runCommand(t, server, exitNo, "release", "--force", "-owner", one, name)
			if !strings.Contains(text, "is held by billing on web-3, pid 7") || !strings.Contains(text, "and not by "+one) {
				t.Errorf("it printed %q", text)
			}
			if n, _ := server.Do(t, "HLEN", name).AsInt64(); n == 0 {
				t.Error("another owner than the named one was released")
			}
			text, _ = runCommand(t, server, 0, "release", "--force", "-owner", two, name)
			if !strings.Contains(text, "billing on web-3, pid 7") {
				t.Errorf("it printed %q", text)
			}
			runCommand(t, server, exitNo, "inspect", name)
		})
	}
}

// bench takes all measurements, and leaves no keys in Redis.
func TestBench_LeavesNoKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	all := read[measurement](t, server, 0, "bench", "--json", "-for", "100ms")
	if len(all) != 5 {
		t.Fatalf("it measured %+v", all)
	}
	for i, m := range all {
		if m.N == 0 || i < 4 && (m.P50 <= 0 || m.P99 < m.P50) || (i == 4) != (m.PerSecond > 0) {
			t.Errorf("it measured %+v", m)
		}
	}
	if keys := server.Keys(t, "*"); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
	if calls := server.Calls(t); calls["ping"] == 0 || calls["evalsha"] == 0 {
		t.Errorf("the calls to the server are %v", calls)
	}
	table, _ := runCommand(t, server, 0, "bench", "-for", "100ms")
	if !regexp.MustCompile(`(?m)^transfer between Systems +\d+ +\d+\.\d+ +\d+\.\d+`).MatchString(table) {
		t.Errorf("it printed %s", table)
	}
	runCommand(t, server, exitUsage, "bench", "-for", "0")
}

// The error names the first right that the user lacks, and doctor does not refer to itself.
func TestInspect_NamesTheRightThatIsMissing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "inspector", "on", ">secret", "~*", "&*", "+ping", "+hello")
	url := strings.Replace(server.URL(), "://", "://inspector:secret@", 1)
	if _, why := runCommand(t, server, exitUnavailable, "inspect", "-redis", url, "x"); !strings.Contains(why, "+hlen") ||
		strings.Contains(why, "semaphores") {
		t.Errorf("inspect prints %s", why)
	}
	if text, _ := runCommand(t, server, exitNo, "doctor", "-redis", url); strings.Contains(text, "docs/acl.md") ||
		!strings.Contains(text, "+evalsha") {
		t.Errorf("doctor prints %s", text)
	}
}

// ls leaves out what Redis refuses to read, and says so.
func TestList_WarnsOfUnreadKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const owner = "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1"
	server.Do(t, "HSET", "open", owner, "1")
	server.Do(t, "ACL", "SETUSER", "locker", "on", ">secret", "~open*", "~redisson_lock*", "~lockkeeper_*", "~{lockkeeper_systems}*", "&*", "+@all")
	url := strings.Replace(server.URL(), "//", "//locker:secret@", 1)
	for _, c := range []struct{ write, warning string }{
		{"", ""},
		{"HSET closed " + owner + " 1", `read: 1;.*"closed": NOPERM`},
		{"SET redisson_lock_queue:{open} foreign", `read: 2;.*"(closed|redisson_lock_queue:\{open\})"`},
	} {
		if c.write != "" {
			server.Do(t, strings.Fields(c.write)...)
		}
		for _, pattern := range []string{"*", "[co]*"} {
			out, warning := runCommand(t, server, 0, "ls", "-redis", url, pattern)
			if !strings.Contains(out, "\nopen ") || strings.Contains(out, "closed") ||
				(warning != "") != (c.warning != "") || !regexp.MustCompile(c.warning).MatchString(warning) {
				t.Errorf("after %q ls %s prints %s%s", c.write, pattern, out, warning)
			}
		}
	}
}
