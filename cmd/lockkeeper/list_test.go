//go:build unix

package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// With a pattern, ls scans the keys once for all kinds, and asks for the types of no other keys than those that match. It
// lists what Redis's own patterns match.
func TestList_ScansOnceForAPattern(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "10000")
	const client, far = "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88", "922337203685477"
	for _, command := range []string{
		"HSET lock:1 " + client + ":1 1", "HSET lock:2 " + client + ":1 1", "HSET lock:[ " + client + ":1 1", "HSET clock:1 " + client + ":1 1",
		"SET lock:s 4", "ZADD {lock:s}:timeout " + far + " abcdefghijklmnop",
		"SET {lock}:t 4", "ZADD {lock}:t:timeout " + far + " abcdefghijklmnop",
		"SET lock:u 5", "SET lockkeeper_calls:{lock:u}:" + client + " 1",
		// Data of other applications:
		"SET lock:v 5", "RPUSH {lock:v}:timeout x", "SET lock:w 5", "HSET lockkeeper_calls:{lock:w}:" + client + " x 1",
		"HSET lock:x name ann", "SET lock:y 5",
	} {
		check(server.Do(t, strings.Fields(command)...).Error())
	}
	for _, c := range []struct {
		pattern, names string
		passes         int
	}{
		{"", "clock:1 lock:1 lock:2 lock:[ lock:s lock:u {lock}:t", 2},
		{"lock:*", "lock:1 lock:2 lock:[ lock:s lock:u", 1},
		{"lock:[12]", "lock:1 lock:2", 1},
		{"[^a-z]*k?:*", "{lock}:t", 1},
		{"?lock[:}]*[1t]", "clock:1 {lock}:t", 1},
		{`lock:\[`, "lock:[", 1},
		{"lock:[", "", 1},
		{"lock:[s", "lock:s", 1}, // Redis closes it
		{`lock:1\`, "", 1},
	} {
		check(server.Do(t, "SLOWLOG", "RESET").Error())
		args := []string{"ls", "--json", c.pattern}
		if c.pattern == "" {
			args = args[:2]
		}
		var names, types []string
		for _, v := range read[struct{ Name string }](t, server, 0, args...) {
			names = append(names, v.Name)
		}
		passes := 0
		for _, entry := range must(server.Do(t, "SLOWLOG", "GET", "-1").ToArray()) {
			call := must(must(entry.ToArray())[3].AsStrSlice())
			switch {
			case call[0] == "SCAN" && call[1] == "0":
				passes++
			case call[0] == "TYPE":
				types = append(types, call[1])
			}
		}
		slices.Sort(names)
		slices.Sort(types)
		if got := strings.Join(names, " "); got != c.names || passes != c.passes {
			t.Errorf("ls %q lists %q in %d passes, want %q in %d", c.pattern, got, passes, c.names, c.passes)
		}
		if got := strings.Join(types, " "); c.pattern == "lock:[12]" && got != c.names {
			t.Errorf("ls %q asks for the types of %q", c.pattern, got)
		}
	}
}

// A few locks among many keys are read together, although each SCAN finds one or two, and nothing else is.
func TestList_ReadsLocksTogether(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const fill = `for i = 1, 20 * tonumber(ARGV[1]) do redis.call('SET', 'text:' .. i, i) end
		for i = 1, 100 do redis.call('HSET', 'lock:of:others:' .. i, 'name', i) end
		for i = 1, 20 do redis.call('HSET', 'lock:' .. i, '9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1', 1) end
		return 1`
	check(server.Do(t, "EVAL", fill, "0", strconv.Itoa(inspect.PageSize)).Error())
	for _, pattern := range []string{"*", "lock:*"} {
		server.ResetStats(t)
		locks := read[inspect.Lock](t, server, 0, "ls", "--json", pattern)
		if calls := server.Calls(t); len(locks) != 20 || calls["time"] != 1 || calls["hlen"] != 20 { // each read of locks has one TIME
			t.Errorf("ls %s lists %d locks with the calls %v", pattern, len(locks), calls)
		}
	}
}

// ls and inspect read nothing that the user may not read, so they leave no line in Redis's ACL LOG.
func TestList_ReadsOnlyWhatAReaderMayRead(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	s := must(lockkeeper.Open(ctx, server.URL(), lockkeeper.WithConfig(lockkeeper.Config{KeyPrefix: "app:", Application: "billing"})))
	t.Cleanup(func() { check(s.Close(context.WithoutCancel(ctx))) })
	must(s.Lock("orders:7").Acquire(ctx))
	reader := asReader(t, server, "app:")
	redistest.Eventually(t, "the record of the System to be there", func() bool {
		text, _ := runCommand(t, server, 0, "ls", "-prefix", "app:")
		return strings.Contains(text, "billing")
	})
	server.Do(t, "ACL", "LOG", "RESET")
	runCommand(t, server, 0, "ls", "-redis", reader, "-prefix", "app:")
	runCommand(t, server, 0, "inspect", "-redis", reader, "-prefix", "app:", "orders:7")
	log, _ := server.Do(t, "ACL", "LOG").ToArray()
	for _, entry := range log {
		if refused, _ := entry.AsStrMap(); refused["reason"] == "key" {
			t.Errorf("refused: %v", refused)
		}
	}
}
