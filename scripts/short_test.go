package scripts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// shortRows are like those of the other tables, but the third cell is followed by the commands that the
// script runs.
const shortRows = `
acquire |                                                      | a 1 30000      | exists hset pexpire
acquire | a=1 30000                                            | a 2 60000      | hlen hrandfield hset pexpire
acquire | a=1 30000                                            | a 2 60000 1.4.0.0.1 | hlen hrandfield hset pexpire
acquire | b=1 30000                                            | a 1 30000      | exists hlen hmget hrandfield hstrlen pttl
acquire | b=1 30000, >v=2.7.0.0.1@-3 ^@-1 >15000               | a 1 30000      | exists hgetall hlen hmget hrandfield hstrlen pttl time
acquire | >u=1.3.0.0.1@-3 ^@-1 >15000                          | u:1 1 30000 1.4.0.0.1 | exists hdel hgetall hlen hrandfield hset pexpire time
fenced_acquire |                                               | a 1 30000 1    | exists hlen hrandfield hset incrby pexpire pttl
release | a=1 30000                                            | a 0 30000      | exists hdel publish
release | a=2 30000                                            | a 1 30000      | hexists hset pexpire
release | u:1=1 30000, >v=2.7.0.0.1@-3 ^@-1 >15000 <1-1        | u:1 0 30000    | exists hdel*2 hgetall hlen hset pexpire publish pubsub time
read_write_set |                                               | a 1 0 30000 0  | exists hlen hmget hset pexpire
read_write_set | mode=write a:write=1 30000                    | a 2 0 30000 0  | exists hdel hget hlen hmget hset hstrlen pexpire pttl
read_write_set | mode=write a:write=2 30000                    | a 1 0 30000 1  | exists hdel hget hmget hset hstrlen pexpire pttl
read_write_set |                                               | a 1 0 30000 0 1.4.0.0.1 | exists hlen hmget hset pexpire
sync_queue |                                                   | u - 1 9 u:1 30000 1 | exists hrandfield hset pexpire time
semaphore_add | '7', %u.3.1.7                                  | 3 2            | getrange pexpire
read_write_release | mode=write a:write=1 30000                | a              | del hdel hget hlen hmget hrandfield hstrlen publish
read_write_renew | mode=read a=1 30000, a#1 30000              | a 60000        | hmget pexpire*2 pttl
read_write_force_release | mode=write a:write=1 30000          | write a        | del hdel hget*3 hmget hrandfield*2 hstrlen*6 publish
`

// Most acquires and releases run few commands: only contended ones pay for the wait queue.
func TestScripts_RunFewCommands(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}})
	for line := range strings.Lines(strings.TrimSpace(shortRows)) {
		cells := split(line, "|")
		s, lock := script(cells[0]), redistest.Name(t)
		keys, args := call(s, lock, cells[2])
		before, waiting, _ := strings.Cut(cells[1], "<")
		d.put(t, lock, before, time.Now())
		d.listen(t, lock, waiting)
		server.ResetStats(t)
		d.run(t, s, keys, args)
		var ran []string
		for command, times := range server.Calls(t) {
			command, _, _ = strings.Cut(command, "|")
			if times > 1 {
				command += fmt.Sprint("*", times)
			}
			if command != "config" && command != "evalsha" && command != "ping" {
				ran = append(ran, command)
			}
		}
		if slices.Sort(ran); strings.Join(ran, " ") != cells[3] {
			t.Errorf("%s runs %s", line, ran)
		}
	}
}

// At the beginning of every period a lock is left for a moment to foreign clients that are not seen to wait;
// otherwise it goes to the next in the wait queue. This also applies in a cluster.
func TestRelease_ServesForeignClientsOncePerPeriod(t *testing.T) {
	eachRedis(t, func(t *testing.T, d *db) {
		const start = 1_700_000_000_000 // a multiple of all periods, in ms
		for _, test := range []struct {
			settings  string
			ms        int64 // since the period began
			published string
		}{
			{"5000 1 100000", 0, "0"}, {"5000 1 100000", 999, "0"}, {"5000 1 100000", 1000, "v>2.7.0"},
			{"5000 1 10000000", 4999, "0"}, {"5000 1 10000000", 5000, "v>2.7.0"},
			{"5000 1 0", 0, "v>2.7.0"}, {"5000 0 0", 0, "v>2.7.0"},
		} {
			for _, others := range []string{"", ">w=8.8.0.0.1@-1 ^@-1 "} {
				lock := redistest.Name(t)
				d.frozenAt = time.UnixMilli(start + test.ms)
				d.put(t, lock, "u:1=1 30000, >v=2.7.0.0.1@-2 ^@-1 "+others+">15000", d.frozenAt)
				keys, args := call(scripts.Release, lock, "u:1 0 30000")
				args[slices.Index(args, names("").Replace("SETTINGS"))] = test.settings
				if reply, published := d.run(t, scripts.Release, keys, args), d.published(t, lock); reply != "0" || published != test.published {
					t.Errorf("%d ms after the period began, with %q and %q: reply %s, published %q", test.ms, test.settings, others, reply, published)
				}
			}
		}
		// If no entry listens, all waiters are notified of every release, so the lock is not left to foreign clients.
		lock := redistest.Name(t)
		d.frozenAt = time.UnixMilli(start)
		d.put(t, lock, "u:1=1 30000, >v=2.7.0.0.0@-2 ^@-1 >15000", d.frozenAt)
		keys, args := call(scripts.Release, lock, "u:1 0 30000")
		args[slices.Index(args, names("").Replace("SETTINGS"))] = "5000 1 100000"
		d.run(t, scripts.Release, keys, args)
		if open := d.do(t, "HEXISTS", names(lock).Replace("WAITQUEUE"), "open"); open != "0" {
			t.Error("the lock is left to foreign clients, though no entry listens")
		}
	})
}
