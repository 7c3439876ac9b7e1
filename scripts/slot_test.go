//go:build unix

package scripts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// slotRows are like those of the other tables, but the third cell has the keys that are on the new server
// already, and there is only one run: on the server that has the hash. The state is that after all keys
// have moved.
const slotRows = `
force_release      | v:1=1 30000                                     | QUEUE          | v:1 v:2               | 1              |                                                 | 0
fair_force_release | v:1=1 30000 /w:1@300 w:2@600                    | TIMEOUTS       | v:1                   | 1              | /w:1@300 w:2@600                                | w:1
fair_force_release | v:1=1 30000 /w:1@300 w:2@600                    | QUEUE          | v:1                   | 1              | /w:1@300 w:2@600                                | 0
fair_force_release | v:1=1 30000 /w:1@-5 w:2@600                     | QUEUE TIMEOUTS | v:1                   | 1              | /w:1@-5 w:2@600                                 | 0
read_write_force_release | v:1=1 30000                               | QUEUE          | read v:1 v:2          | 1              |                                                 | rw0
sync_queue         | v:1=1 30000 /w:1@300 w:2@-5                     | TIMEOUTS       | u - 1 9 u:1 30000 1   | [0 30000 v:1 ] | v:1=1 30000 /w:1@300 w:2@-5                     |
sync_queue         | v:1=1 30000 /w:1@300                            | QUEUE TIMEOUTS | u - 1 9 u:1 30000 1   | [0 30000 v:1 ] | v:1=1 30000 /w:1@300                            |
sync_queue         | u:1=1 30000                                     |                | u u:1 1 9 u:2 30000 1 | [0 0  1]       |                                                 |
sync_queue         | u:1=1 30000                                     |                | u u:1 1 9 u:2 30000 0 | [0 0  1]       |                                                 | 0
sync_queue         | u:1=1 30000 /u:2@300 v:1@600                    |                | u u:1 1 9 u:2 30000 1 | [0 0  1]       | /u:2@300 v:1@600                                |
read_write_set     | mode=write u:1:write=1 u:1=1 30000, u:1#1 30000 |                | u:1 2 1 30000 0     | [1 0 ]         | mode=write u:1:write=2 u:1=1 30000, u:1#1 30000 |
fenced_acquire     | u:1=1 30000 /'7'                                | TOKENS         | u:1 2 30000 1         | [2 0 ]         | u:1=2 30000 /'7'                                |
release            | u:1=1 30000, >v=2.7.0.0.1@-3 ^@-1 >15000        | WAITQUEUE      | u:1 0 30000           | 0              | >v=2.7.0.0.1@-3 ^@-1 >15000                     | 0
release            | u:1=1 30000, >v=2.7.0.0.1@-3 ^@-1 >15000        |                | u:1 0 30000           | 0              | >v=2.7.0.0.1@-3 ^@-1 >15000            | 0
release            | u:1=1 30000, >v=2.7.0.1.1@-3 ^@-1 >15000 /'7'   | TOKENS         | u:1 0 30000           | 0              | >v=2.7.0.1.1@-3 ^@-1 >15000 /'7'       | 0
read_write_release | mode=write u:1:write=1 30000, >v=2.7.1.0.1@-3 ^@-1 >15000 |      | u:1                   | 0              | >v=2.7.1.0.1@-3 ^@-1 >15000            | rw1
read_write_release | mode=read u:1=1 v:1=1 30000, u:1#1 30000, v:1#1 20000 | HOLDS:v:1:rwlock_timeout:1 | u:1      | 0              | mode=read v:1=1 30000, v:1#1 20000 |
read_write_release | mode=read u:1=1 v:1=1 30000, u:1#1 30000, v:1#1 20000 | NAME     | u:1                   | 0              | mode=read v:1=1 30000, u:1#1 30000, v:1#1 20000 |
fair_inspect       | v:1=1 30000 /w:1@300                            | QUEUE          |                       | [30000 0 v:1 1] | v:1=1 30000 /w:1@300                           |
read_write_set     | mode=read u:1=1 30000, u:1#1 30000              | HOLDS:u:1:rwlock_timeout:1 | u:1 0 1 40000 0 | -          | mode=read u:1=1 30000, u:1#1 30000 |
yield              | u:1=1 30000                                     |                | u:1 30000 1 2.7.0.0.1 | [1 1]          |                                                 | 0
acquire            | v:1=1 30000                                     |                | u:1 1 30000 1.4.0.0.1 | [30000 v:1]    | v:1=1 30000                                     |
acquire            | v:1=1 30000, >w=2.7.0.0.1@-3 ^@-1 >15000        | WAITQUEUE      | u:1 1 30000 1.4.0.0.1 | [30000 v:1]    | v:1=1 30000, >w=2.7.0.0.1@-3 ^@-1 >15000        |
acquire            | v:1=1 30000, >u=1.3.0.0.1@-3 ^@-1 >15000        |                | u:1 1 30000 1.4.0.0.1 | [30000 v:1]    | v:1=1 30000, >u=1.4.0.0.1@-3 ^@0 >20000         |
read_write_set     | mode=read v:1=1 30000, v:1#1 30000, >w=2.7.0.0.1@-3 ^@-1 >15000 | WAITQUEUE | v:1 0 1 30000 1 | [1 0 ]     | mode=read v:1=1 30000, v:1#1 30000, >w=2.7.0.0.1@-3 ^@-1 >15000 |
`

// While a cluster moves the slot of a lock, the hash may still be here and the keys beside it elsewhere:
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
	for line := range strings.Lines(strings.TrimSpace(slotRows)) {
		cells := split(line, "|")
		s, before, moved := script(cells[0]), cells[1], cells[2]
		forms := map[string]*scripts.Script{"": s}
		if !strings.Contains(before, ">") { // the clients with entries there do not listen to shard channels
			forms["sharded"] = s.Sharded
		}
		for form, run := range forms {
			t.Run(s.Name+"/"+before+"/"+moved+"/"+form, func(t *testing.T) { between(t, servers, from, to, gone, run, cells) })
		}
	}
}

// between runs a script while the slot of its lock is between two servers.
func between(t *testing.T, servers []*redistest.Server, from, to *db, gone map[int]bool, s *scripts.Script, cells []string) {
	before, moved, args := cells[1], cells[2], cells[3]
	lock := redistest.Name(t)
	slot := number(t, from.do(t, "CLUSTER", "KEYSLOT", lock))
	for ; slot >= 8192 || gone[slot]; slot = number(t, from.do(t, "CLUSTER", "KEYSLOT", lock)) {
		lock += "x"
	}
	gone[slot] = true
	start := time.Now()
	from.put(t, lock, before, start)
	servers[0].BeginMove(t, slot, servers[1])
	if moved != "" {
		servers[0].MigrateKeys(t, slot, servers[1], longWords(strings.Fields("- " + names(lock).Replace(moved)))[1:]...)
	}
	keys, argv := call(script(s.Name), lock, args)
	for i := range argv { // no server of a cluster knows all subscribers
		argv[i] = strings.Replace(argv[i], names("").Replace("SETTINGS"), "5000 0 0", 1)
	}
	at := from
	if strings.HasPrefix(moved, "NAME") {
		at = to
		at.must(t, "ASKING")
	}
	reply := at.run(t, s, keys, argv)
	servers[0].MigrateKeys(t, slot, servers[1])
	servers[0].EndMove(t, slot, servers[1])
	to.expectState(t, "after the move", lock, start, cells[5])
	if published := from.published(t, lock); !agree(reply, cells[4], time.Since(start)) || published != cells[6] && s.Sharded != nil {
		t.Errorf("reply %q, want %q; published %q, want %q", reply, cells[4], published, cells[6])
	}
}
