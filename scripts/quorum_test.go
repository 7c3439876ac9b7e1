package scripts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestQuorumAcquire(t *testing.T) {
	memories(t, func(t *testing.T, db *db, record string) {
		for _, r := range []row{
			{name: "free", args: "a 1 30000", reply: "[1 0  ]", after: "a=1 30000"},
			{name: "free, to re-enter", args: "a 2 30000", reply: "[-1 0  ]"},
			{name: "own", before: "a=1 30000", args: "a 1 60000", reply: "[1 0  ]", after: "a=1 60000"},
			{name: "own, one more", before: "a=1 30000", args: "a 2 60000", reply: "[1 0  ]", after: "a=2 60000"},
			{name: "own, fewer", before: "a=3 30000", args: "a 1 60000", reply: "[1 0  ]", after: "a=1 60000"},
			{name: "other, without end", before: "b=2", args: "a 1 30000", reply: "[0 -1 b ]", after: "b=2"},
			{name: "wrong type", before: "'x'", args: "a 1 30000", reply: "-WRONGTYPE", after: "'x'"},
		} {
			t.Run(r.name, func(t *testing.T) {
				name, start := redistest.Name(t), time.Now()
				db.put(t, name, r.before)
				for range 2 {
					reply := db.run(t, scripts.QuorumAcquire, []string{name, record}, strings.Fields(r.args+" 0 fresh known 0"))
					if reply != r.reply && !isError(reply, r.reply) {
						t.Errorf("reply %q, want %q", reply, r.reply)
					}
					if state := db.state(t, name, r.after, start); state != r.after {
						t.Errorf("state %q, want %q", state, r.after)
					}
				}
			})
		}
	})
}

// memories are the servers whose memory has something to it, by how they got it.
func memories(t *testing.T, test func(t *testing.T, db *db, record string)) {
	for _, resp2 := range []bool{false, true} {
		server := redistest.Start(t)
		t.Run(map[bool]string{false: "RESP3", true: "RESP2"}[resp2], func(t *testing.T) {
			db := connect(t, server.Addr(), resp2)
			db.load(t, scripts.QuorumAcquire)
			db.load(t, scripts.Memory)
			test(t, db, redistest.Name(t)+" record")
		})
	}
}

// A server takes part in nothing but what it knows of until its memory is known to be old
// enough, by the clocks of those who ask: how long it has been up by its own does not count.
func TestQuorumQuarantine(t *testing.T) {
	memories(t, func(t *testing.T, db *db, record string) {
		lock := redistest.Name(t)
		vote := func(owner, count, needed, fresh, known, age string) (status, left, memory string) {
			t.Helper()
			reply := strings.Split(strings.Trim(db.run(t, scripts.QuorumAcquire, []string{lock, record}, []string{owner, count, "30000", needed, fresh, known, age}), "[]"), " ")
			if len(reply) != 4 {
				t.Fatalf("reply %q", reply)
			}
			return reply[0], reply[1], reply[3]
		}
		is := func(what, status, left, wantStatus, wantLeft string) {
			t.Helper()
			if status != wantStatus || left != wantLeft {
				t.Errorf("%s: %s %s, want %s %s", what, status, left, wantStatus, wantLeft)
			}
		}
		time.Sleep(2100 * time.Millisecond) // by its own clock the server has been up for that long
		status, left, memory := vote("a", "1", "1000", "one", "", "0")
		is("never seen", status, left, "-3", "1000")
		if !strings.HasSuffix(memory, ":one") {
			t.Errorf("its memory is %q", memory)
		}
		status, left, again := vote("a", "1", "1000", "two", "another", "5000")
		is("known by another memory", status, left, "-3", "1000")
		if again != memory {
			t.Errorf("its memory is %q, and was %q", again, memory)
		}
		status, left, _ = vote("a", "1", "1000", "two", memory, "999")
		is("known for almost long enough", status, left, "-3", "1")
		status, left, _ = vote("a", "1", "1000", "two", "", "0")
		is("what one has seen is good for others", status, left, "-3", "1")
		status, left, _ = vote("a", "1", "1000", "two", memory, "1000")
		is("known for long enough", status, left, "1", "0")
		status, left, _ = vote("a", "2", "5000", "two", "", "0")
		is("one's own lock", status, left, "1", "0")
		status, left, _ = vote("b", "1", "5000", "two", "", "0")
		is("who needs more", status, left, "-3", "4000")
		db.do(t, "FLUSHALL")
		status, left, flushed := vote("a", "1", "1000", "three", memory, "60000")
		is("flushed", status, left, "-3", "1000")
		if flushed == memory {
			t.Errorf("a flushed memory is still %q", flushed)
		}
	})
}

// Who looks at the memory learns the same as who votes.
func TestMemory(t *testing.T) {
	memories(t, func(t *testing.T, db *db, record string) {
		look := func(fresh string) string { return db.run(t, scripts.Memory, []string{record}, []string{fresh}) }
		first := look("one")
		if !strings.HasPrefix(first, "[0 ") || !strings.HasSuffix(first, ":one]") {
			t.Errorf("a new memory is %s", first)
		}
		if again := look("two"); again != first {
			t.Errorf("looked at again it is %s, and was %s", again, first)
		}
		db.do(t, "HSET", record, "age", "77")
		if aged := look("two"); aged != "[77"+strings.TrimPrefix(first, "[0") {
			t.Errorf("when it is older it is %s, and was %s", aged, first)
		}
		db.do(t, "HSET", record, "memory", "another:one")
		if replaced := look("two"); !strings.HasPrefix(replaced, "[0 ") || !strings.HasSuffix(replaced, ":two]") {
			t.Errorf("that of another run is %s", replaced)
		}
	})
}
