package scripts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// shortCalls are calls as in the tables, each with the commands that the script runs. The pattern of connect hears
// each message: if no client did, a release would not ask for the numbers of subscribers (pubsub).
var shortCalls = []struct {
	script                  *scripts.Script
	before, listeners, args string
	commands                string
}{
	{script: scripts.Acquire, args: "owner=a", commands: "exists hset pexpire"},
	{script: scripts.Acquire, before: "a=1 30s", args: "owner=a count=2 lease=60000", commands: "hlen hrandfield hset pexpire"},
	{script: scripts.Acquire, before: "a=1 30s", args: "owner=a count=2 lease=60000 entry=1.4+listens", commands: "hlen hrandfield hset pexpire"},
	{script: scripts.Acquire, before: "b=1 30s", args: "owner=a", commands: "exists hlen hmget hrandfield hstrlen pttl publish"},
	{script: scripts.Acquire, before: "b=1 30s, waitqueue v=2.7+listens@-3s 15s", args: "owner=a", commands: "exists hlen hmget*2 hrandfield hstrlen pttl publish"},
	{
		script: scripts.Acquire, before: "waitqueue u=1.3+listens@-3s 15s", args: "entry=1.4+listens",
		commands: "exists hdel hlen hmget hrandfield*2 hset pexpire time zcount zrange*2 zrem",
	},
	{
		script: scripts.Acquire, before: "b=1 30s, waitqueue u=1.3+listens@-3s 15s", args: "entry=1.4+listens",
		commands: "exists hmget*2 hrandfield hset hstrlen pexpire*2 pttl*2 time zadd*2",
	},
	{script: scripts.FencedAcquire, commands: "exists hlen hrandfield hset incrby pexpire pttl"},
	{script: scripts.Release, before: "a=1 30s", args: "owner=a lease=30000", commands: "exists hdel publish pubsub"},
	{script: scripts.Release, before: "a=2 30s", args: "owner=a count=1 lease=30000", commands: "hexists hset pexpire"},
	{
		script: scripts.Release, before: "u:1=1 30s, waitqueue v=2.7+listens@-3s 15s", listeners: "ours",
		args: "lease=30000", commands: "exists hdel*2 hlen hmget hset pexpire publish pubsub time zcard zrange zrem",
	},
	{script: scripts.ReadWriteSet, args: "owner=a writes=1 reads=0", commands: "exists hlen hmget hset pexpire"},
	{script: scripts.ReadWriteSet, before: "mode=write a:write=1 30s", args: "owner=a writes=2 reads=0", commands: "exists hdel hget hlen hmget hset hstrlen pexpire pttl"},
	{script: scripts.ReadWriteSet, before: "mode=write a:write=2 30s", args: "owner=a writes=1 reads=0 releases=1", commands: "exists hdel hget hmget hset hstrlen pexpire pttl"},
	{script: scripts.ReadWriteSet, args: "owner=a writes=1 reads=0 entry=1.4+listens", commands: "exists hlen hmget hset pexpire"},
	{script: scripts.SyncQueue, args: "listed=u:1", commands: "exists hrandfield hset pexpire time"},
	{script: scripts.SemaphoreAdd, before: "'7', calls u=3.1.7", commands: "getrange pexpire"},
	{script: scripts.ReadWriteRelease, before: "mode=write a:write=1 30s", args: "owner=a", commands: "hdel hget hlen hmget hrandfield hstrlen publish pubsub"},
	{script: scripts.ReadWriteRenew, before: "mode=read a=1 30s, leases a#1=30s", args: "owner=a", commands: "hmget pexpire*2 pttl"},
	{script: scripts.ReadWriteForceRelease, before: "mode=write a:write=1 30s", args: "mode=write owners=a", commands: "hdel hget*3 hmget hrandfield*2 hstrlen*6 publish"},
}

// Most acquires and releases run few commands: only contended ones pay for the wait queue.
func TestScripts_RunFewCommands(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}})
	for _, r := range shortCalls {
		lock := redistest.Name(t)
		keys, args := call(r.script, lock, r.args)
		d.put(t, lock, r.before, time.Now())
		d.listen(t, lock, r.listeners)
		server.ResetStats(t)
		d.run(t, r.script, keys, args)
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
		if slices.Sort(ran); strings.Join(ran, " ") != r.commands {
			t.Errorf("%s of %q with %q runs %s", r.script.Name, r.before, r.args, ran)
		}
	}
}

// At the beginning of every period a lock is left for a moment to foreign clients that are not seen to wait;
// otherwise it goes to the next in the wait queue. This also applies in a cluster.
func TestRelease_ServesForeignClientsOncePerPeriod(t *testing.T) {
	d := onRedis(t)
	const start = 1_700_000_000_000 // a multiple of all periods, in ms
	for _, test := range []struct {
		settings  string
		ms        int64 // since the period began
		published string
	}{
		{"5000 1 100000", 0, "channel=0"}, {"5000 1 100000", 999, "channel=0"}, {"5000 1 100000", 1000, "turn:v=2.7.0"},
		{"5000 1 10000000", 4999, "channel=0"}, {"5000 1 10000000", 5000, "turn:v=2.7.0"},
		{"5000 1 0", 0, "turn:v=2.7.0"}, {"5000 0 0", 0, "turn:v=2.7.0"},
	} {
		for _, others := range []string{"", "w=8.8+listens@-1s "} {
			lock := redistest.Name(t)
			d.frozenAt = time.UnixMilli(start + test.ms)
			d.put(t, lock, "u:1=1 30s, waitqueue v=2.7+listens@-2s "+others+"15s", d.frozenAt)
			keys, args := call(scripts.Release, lock, "lease=30000")
			args[slices.Index(args, names("").Replace("SETTINGS"))] = test.settings
			if reply, published := d.run(t, scripts.Release, keys, args), d.published(t, lock); reply != "0" || published != test.published {
				t.Errorf("%d ms after the period began, with %q and %q: reply %s, published %q", test.ms, test.settings, others, reply, published)
			}
		}
	}
	// If no entry listens, all waiters are notified of every release, so the lock is not left to foreign clients.
	lock := redistest.Name(t)
	d.frozenAt = time.UnixMilli(start)
	d.put(t, lock, "u:1=1 30s, waitqueue v=2.7@-2s 15s", d.frozenAt)
	keys, args := call(scripts.Release, lock, "lease=30000")
	args[slices.Index(args, names("").Replace("SETTINGS"))] = "5000 1 100000"
	d.run(t, scripts.Release, keys, args)
	if open := d.do(t, "HEXISTS", names(lock).Replace("WAITQUEUE"), "open"); open != "0" {
		t.Error("the lock is left to foreign clients, though no entry listens")
	}
}
