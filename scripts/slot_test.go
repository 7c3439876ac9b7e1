//go:build unix

package scripts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// slotCall is a call as in the tables, with the keys that are on the new server already. There is only one run:
// on the server that has the hash. after is the state when all keys have moved.
type slotCall struct {
	script                  *scripts.Script
	before, moved, args     string
	reply, after, published string
}

var slotCalls = []slotCall{
	{script: scripts.ForceRelease, before: "v:1=1 30s", moved: "QUEUE", args: "owners=v:1,v:2", reply: "1", published: "channel=0 turn:v:asked=1.0.0"},
	{
		script: scripts.FairForceRelease, moved: "TIMEOUTS", args: "owners=v:1", reply: "1", published: "channel:w:1=0 turn:v:asked=1.0.0",
		before: "v:1=1 30s, queue w:1@300s w:2@600s", after: "queue w:1@300s w:2@600s",
	},
	{
		script: scripts.FairForceRelease, moved: "QUEUE", args: "owners=v:1", reply: "1", published: "channel=0 turn:v:asked=1.0.0",
		before: "v:1=1 30s, queue w:1@300s w:2@600s", after: "queue w:1@300s w:2@600s",
	},
	{
		script: scripts.FairForceRelease, moved: "QUEUE TIMEOUTS", args: "owners=v:1", reply: "1", published: "channel=0 turn:v:asked=1.0.0",
		before: "v:1=1 30s, queue w:1@-5s w:2@600s", after: "queue w:1@-5s w:2@600s",
	},
	{script: scripts.ReadWriteForceRelease, before: "v:1=1 30s", moved: "QUEUE", args: "owners=v:1,v:2", reply: "1", published: "rwchannel=0 turn:v:asked=1.0.0"},
	{script: scripts.SyncQueue, before: "v:1=1 30s, queue w:1@300s w:2@-5s", moved: "TIMEOUTS", args: "listed=u:1", reply: "[0 30000 v:1 ]", after: same},
	{script: scripts.SyncQueue, before: "v:1=1 30s, queue w:1@300s", moved: "QUEUE TIMEOUTS", args: "listed=u:1", reply: "[0 30000 v:1 ]", after: same},
	{script: scripts.SyncQueue, before: "u:1=1 30s", args: "releases=u:1 listed=u:2", reply: "[0 0  1]"},
	{script: scripts.SyncQueue, before: "u:1=1 30s", args: "releases=u:1 listed=u:2+once", reply: "[0 0  1]", published: "channel=0"},
	{script: scripts.SyncQueue, before: "u:1=1 30s, queue u:2@300s v:1@600s", args: "releases=u:1 listed=u:2", reply: "[0 0  1]", after: "queue u:2@300s v:1@600s"},
	{
		script: scripts.ReadWriteSet, args: "writes=2", reply: "[1 0 ]",
		before: "mode=write u:1:write=1 u:1=1 30s, leases u:1#1=30s", after: "mode=write u:1:write=2 u:1=1 30s, leases u:1#1=30s",
	},
	{script: scripts.FencedAcquire, before: "u:1=1 30s, tokens '7'", moved: "TOKENS", args: "owner=u:1 count=2", reply: "[2 0 ]", after: "u:1=2 30s, tokens '7'"},
	{
		script: scripts.Release, moved: "WAITQUEUE", args: "lease=30000", reply: "0", published: "channel=0",
		before: "u:1=1 30s, waitqueue v=2.7+listens@-3s 15s", after: "waitqueue v=2.7+listens@-3s 15s",
	},
	{
		script: scripts.Release, args: "lease=30000", reply: "0", published: "channel=0",
		before: "u:1=1 30s, waitqueue v=2.7+listens@-3s 15s", after: "waitqueue v=2.7+listens@-3s 15s",
	},
	{
		script: scripts.Release, moved: "TOKENS", args: "lease=30000", reply: "0", published: "channel=0",
		before: "u:1=1 30s, waitqueue v=2.7+tokens1+listens@-3s 15s, tokens '7'",
		after:  "waitqueue v=2.7+tokens1+listens@-3s 15s, tokens '7'",
	},
	{
		script: scripts.ReadWriteRelease, reply: "0", published: "rwchannel=1",
		before: "mode=write u:1:write=1 30s, waitqueue v=2.7+reads+listens@-3s 15s",
		after:  "waitqueue v=2.7+reads+listens@-3s 15s",
	},
	{
		script: scripts.ReadWriteRelease, moved: "LEASES:v:1:rwlock_timeout:1", reply: "0",
		before: "mode=read u:1=1 v:1=1 30s, leases u:1#1=30s v:1#1=20s", after: "mode=read v:1=1 30s, leases v:1#1=20s",
	},
	{
		script: scripts.ReadWriteRelease, moved: "NAME", reply: "0",
		before: "mode=read u:1=1 v:1=1 30s, leases u:1#1=30s v:1#1=20s", after: "mode=read v:1=1 30s, leases u:1#1=30s v:1#1=20s",
	},
	{script: scripts.FairInspect, before: "v:1=1 30s, queue w:1@300s", moved: "QUEUE", reply: "[30000 0 v:1 1]", after: same},
	{
		script: scripts.ReadWriteSet, moved: "LEASES:u:1:rwlock_timeout:1", args: "lease=40000", reply: "-",
		before: "mode=read u:1=1 30s, leases u:1#1=30s", after: same,
	},
	{script: scripts.Yield, before: "u:1=1 30s", args: "lease=30000 forced=1 entry=2.7+listens", reply: "[1 1]", published: "channel=0"},
	{script: scripts.Acquire, before: "v:1=1 30s", args: "entry=1.4+listens", reply: "[30000 v:1]", after: same},
	{
		script: scripts.Acquire, moved: "WAITQUEUE", args: "entry=1.4+listens", reply: "[30000 v:1]",
		before: "v:1=1 30s, waitqueue w=2.7+listens@-3s 15s", after: same,
	},
	{
		script: scripts.Acquire, args: "entry=1.4+listens", reply: "[30000 v:1]",
		before: "v:1=1 30s, waitqueue u=1.3+listens@-3s 15s", after: "v:1=1 30s, waitqueue u=1.4+listens@-3s seen@0s 20s",
	},
	{
		script: scripts.Release, moved: "WAITORDER", args: "lease=30000", reply: "0", published: "channel=0",
		before: "u:1=1 30s, waitqueue v=2.7+listens@-3s 15s", after: "waitqueue v=2.7+listens@-3s 15s",
	},
	{
		script: scripts.Acquire, moved: "WAITORDER", args: "entry=1.4+listens", reply: "[30000 v:1]",
		before: "v:1=1 30s, waitqueue u=1.3+listens@-3s 15s", after: same,
	},
	{
		script: scripts.Acquire, moved: "WAITORDER", args: "entry=1.4+listens", reply: "[30000 v:1]",
		before: "v:1=1 30s, waitqueue w=2.7+listens@-3s 15s", after: same,
	},
	{
		script: scripts.Acquire, moved: "NAME WAITORDER", args: "entry=1.4+listens", reply: "[30000 v:1]",
		before: "v:1=1 30s, waitqueue u=1.3+listens@-3s 15s", after: same,
	},
	{
		script: scripts.Acquire, moved: "NAME WAITORDER", args: "entry=1.4+listens", reply: "[30000 v:1]",
		before: "v:1=1 30s, waitqueue w=2.7+listens@-3s 15s", after: same,
	},
	{
		script: scripts.Acquire, moved: "NAME WAITQUEUE", args: "entry=1.4+listens", reply: "[30000 v:1]",
		before: "v:1=1 30s, waitqueue u=1.3+listens@-3s 15s", after: same,
	},
	{
		script: scripts.Acquire, moved: "NAME WAITQUEUE", args: "entry=1.4+listens", reply: "[30000 v:1]",
		before: "v:1=1 30s, waitqueue w=2.7+listens@-3s 15s", after: same,
	},
	{
		script: scripts.ReadWriteSet, moved: "WAITQUEUE", args: "owner=v:1 releases=1", reply: "[1 0 ]",
		before: "mode=read v:1=1 30s, leases v:1#1=30s, waitqueue w=2.7+listens@-3s 15s", after: same,
	},
}

// While a cluster moves the slot of a lock, the hash may still be here and the other keys elsewhere:
// those stay unchanged. A hash that was just deleted cannot be created here again, so the lock is not
// transferred when a hold ends, no client gets an entry in a wait queue that is elsewhere, and a writer that
// reads re-enters the hold that it has.
func TestScripts_WhileASlotMoves(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	var from, to *db
	for i, d := range []**db{&from, &to} {
		*d = connect(t, rueidis.ClientOption{InitAddress: []string{servers[i].Addr()}})
	}
	gone := map[int]bool{} // the slots that have moved
	for _, r := range slotCalls {
		forms := map[string]*scripts.Script{"": r.script}
		if !strings.Contains(r.before, "waitqueue") { // the clients with entries there do not listen to shard channels
			forms["sharded"] = r.script.Sharded
		}
		for form, run := range forms {
			t.Run(r.script.Name+"/"+r.before+"/"+r.moved+"/"+form, func(t *testing.T) { between(t, servers, from, to, gone, run, r) })
		}
	}
}

// between runs a script while the slot of its lock is between two servers.
func between(t *testing.T, servers []*redistest.Server, from, to *db, gone map[int]bool, s *scripts.Script, r slotCall) {
	lock := redistest.Name(t)
	slot := number(t, from.do(t, "CLUSTER", "KEYSLOT", lock))
	for ; slot >= 8192 || gone[slot]; slot = number(t, from.do(t, "CLUSTER", "KEYSLOT", lock)) {
		lock += "x"
	}
	gone[slot] = true
	start := time.Now()
	from.put(t, lock, r.before, start)
	servers[0].BeginMove(t, slot, servers[1])
	if r.moved != "" {
		servers[0].MigrateKeys(t, slot, servers[1], longWords(strings.Fields("- " + names(lock).Replace(r.moved)))[1:]...)
	}
	keys, argv := call(r.script, lock, r.args)
	for i := range argv { // no server of a cluster knows all subscribers
		argv[i] = strings.Replace(argv[i], names("").Replace("SETTINGS"), "5000 0 0", 1)
	}
	at := from
	if strings.HasPrefix(r.moved, "NAME") {
		at = to
		at.must(t, "ASKING")
	}
	reply := at.run(t, s, keys, argv)
	servers[0].MigrateKeys(t, slot, servers[1])
	servers[0].EndMove(t, slot, servers[1])
	after := r.after
	if after == same {
		after = r.before
	}
	to.expectState(t, "after the move", lock, start, after)
	if published := from.published(t, lock); !agree(reply, r.reply, time.Since(start)) || published != r.published && s.Sharded != nil {
		t.Errorf("reply %q, want %q; published %q, want %q", reply, r.reply, published, r.published)
	}
}
