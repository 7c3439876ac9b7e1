package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

// The signs in these rows: see state_test.go.
var latchTables = []table{
	{script: scripts.LatchSet, call: "NAME CALLS:u / number=3 count=2 LATCH", rows: []row{
		{name: "none yet", reply: "[1 2]", after: "'2', calls u=3.1.2", published: "latch=1"},
		{name: "there is one", before: "'5'", reply: "[0 5]", after: "'5', calls u=3.0.5"},
		{name: "carried out before", before: "'1', calls u=3.1.2", reply: "[1 2]", after: same},
		{name: "late", before: "'1', calls u=4.1.2", reply: "-LATE", after: same},
		{name: "wrong type", before: "a=1", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.LatchCountDown, call: "NAME CALLS:u COUNTED / number=3 LATCH count=1 ids...", rows: []row{
		{name: "one", before: "'5'", reply: "[4]", after: "'4', calls u=3.4"},
		{name: "several", before: "'5'", args: "count=3", reply: "[2]", after: "'2', calls u=3.2"},
		{name: "none", before: "'5'", args: "count=0", reply: "[5]", after: "'5', calls u=3.5"},
		{name: "the last", before: "'1', calls v=7.1", reply: "[0]", after: "calls u=3.0 v=7.1", published: "latch=0"},
		{name: "more than are missing", before: "'2'", args: "count=5", reply: "[0]", after: "calls u=3.0", published: "latch=0"},
		{name: "open", reply: "[0]", after: "calls u=3.0"},
		{name: "open, but still there", before: "'-1'", reply: "[0]", after: "'-1', calls u=3.0"},
		{name: "carried out before", before: "'4', calls u=3.4", reply: "[4]", after: same},
		{name: "opened before", before: "'9', calls u=3.0", reply: "[0]", after: same},
		{name: "late", before: "'4', calls u=10.4", args: "number=9", reply: "-LATE", after: same},
		{name: "no record of ours", before: "'4', calls u=2026-11-25", args: "number=9999", reply: "-WRONGTYPE", after: same},
		{name: "wrong type", before: "a=1", reply: "-WRONGTYPE", after: same},
		{name: "no number", before: "'1.5'", reply: "-WRONGTYPE", after: same},
		// by id
		{name: "the first", before: "'5'", args: "count=0 ids=a,b", reply: "[3]", after: "'3' 876600h, calls u=3.3, counted a b"},
		{name: "one more", before: "'3' 876600h, counted a b", args: "count=0 ids=c", reply: "[2]", after: "'2' 876600h, calls u=3.2, counted a b c"},
		{name: "counted before", before: "'3' 876600h, counted a b", args: "count=0 ids=b", reply: "[3]", after: "'3' 876600h, calls u=3.3, counted a b"},
		{name: "twice in one command", before: "'5'", args: "count=0 ids=a,a", reply: "[4]", after: "'4' 876600h, calls u=3.4, counted a"},
		{name: "with others", before: "'5' 876600h, counted a", args: "count=2 ids=a,c", reply: "[2]", after: "'2' 876600h, calls u=3.2, counted a c"},
		{name: "only others", before: "'5' 876600h, counted a", args: "count=2", reply: "[3]", after: "'3' 876600h, calls u=3.3, counted a"},
		{name: "the ids have ended", before: "'5' 876600h", args: "count=0 ids=a", reply: "[4]", after: "'4' 876600h, calls u=3.4, counted a"},
		{name: "the last, of many", before: "'1' 876600h, counted a b c", args: "count=0 ids=d", reply: "[0]", after: "calls u=3.0", published: "latch=0"},
		{name: "of an earlier latch", before: "'5', counted a b", args: "count=0 ids=a", reply: "[4]", after: "'4' 876600h, calls u=3.4, counted a"},
		{name: "opened by an id of an earlier latch", before: "'1', counted a", args: "count=0 ids=a", reply: "[0]", after: "calls u=3.0", published: "latch=0"},
	}},
	{script: scripts.LatchInspect, call: "NAME /", rows: []row{
		{name: "closed", before: "'5' 876600h, counted a", reply: "5", after: same},
		{name: "nearly open", before: "'1' 876600h, counted a", reply: "1", after: same},
		{name: "open", reply: "0"},
		{name: "opened by Redisson", before: "counted a b", reply: "0", after: same},
		{name: "open, but still there", before: "'-1'", reply: "0", after: same},
		{name: "wrong type", before: "a=1", reply: "-WRONGTYPE", after: same},
	}},
}
