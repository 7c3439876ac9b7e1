package scripts_test

import (
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/scripts"
)

var allTables = []table{
	{script: scripts.AcquireAll, call: "/ owner=u:1 lease=30000 tokens=5 SETTINGS entry=- notified=0", rows: []row{
		{
			name: "all kinds", reply: "[1 0 5,12 ]", again: "[1 0 10,17 ]",
			locks: []part{
				{kind: "plain", after: "u:1=1 30000"},
				{kind: "fenced", after: "u:1=1 30000 /'5'", afterAgain: "u:1=1 30000 /'10'"},
				{kind: "fair", after: "u:1=1 30000"},
				{kind: "read", after: "mode=read u:1=1 30000, u:1#1 30000"},
				{kind: "fenced", before: "/'7'", after: "u:1=1 30000 /'12'", afterAgain: "u:1=1 30000 /'17'"},
				{kind: "write", after: "mode=write u:1:write=1 30000"},
			},
		},
		{
			name: "own, from an earlier request", reply: "[1 0 12 ]", again: "[1 0 17 ]",
			locks: []part{
				{kind: "plain", before: "u:1=1 20000", after: "u:1=1 30000"},
				{kind: "fenced", before: "u:1=1 20000 /'7'", after: "u:1=1 30000 /'12'", afterAgain: "u:1=1 30000 /'17'"},
				{kind: "fair", before: "u:1=1 20000 /v:1@300", after: "u:1=1 30000 /v:1@300"},
				{kind: "read", before: "mode=read u:1=1 20000, u:1#1 20000", after: "mode=read u:1=1 30000, u:1#1 30000"},
				{kind: "write", before: "mode=write u:1:write=1 20000", after: "mode=write u:1:write=1 30000"},
			},
		},
		{
			name: "a counter that would end", kind: "fenced", reply: "[1 0 12 ]", again: "[1 0 17 ]",
			before: "/'7' 60000", after: "u:1=1 30000 /'12'", afterAgain: "u:1=1 30000 /'17'",
		},
		{
			name: "too few tokens are left", reply: "-BADVALUE redisson_lock_token",
			locks: []part{
				{kind: "plain", after: same},
				{kind: "fenced", before: "/'9007199254740989'", after: same},
			},
		},
		{name: "a counter of another type", kind: "fenced", before: "/a=1", after: same, reply: "-WRONGTYPE"},
		{name: "a queue of the dead", kind: "fair", before: "/v:1@-5 w:1 x:1@-7", after: "u:1=1 30000", reply: "[1 0  ]"},
		{name: "a queue of one dead since now", kind: "fair", before: "/v:1@0", after: "u:1=1 30000", reply: "[1 0  ]"},
		{
			name: "among longer readers", kind: "read", reply: "[1 0  ]",
			before: "mode=read v:1=1 60000, v:1#1 60000", after: "mode=read u:1=1 v:1=1 60000, u:1#1 30000, v:1#1 60000",
		},
		{
			name: "past a lapsed one, and leaves", args: "entry=1.4", reply: "[1 0 12 ]", again: "[1 0 17 ]",
			locks: []part{
				{kind: "plain", before: ">v=2.7+lapsed@-9 seen@-1 >15000", after: "u:1=1 30000, >v=2.7+lapsed@-9 seen@-1 >15000"},
				{kind: "fenced", before: ">u=1.3+reserved-2@-4 seen@-1 >15000 /'7'", after: "u:1=1 30000 /'12'", afterAgain: "u:1=1 30000 /'17'"},
				{kind: "read", before: ">u=2.3+reserves@-4 seen@-1 >15000", after: "mode=read u:1=1 30000, u:1#1 30000, >u=2.3+reserves@-4 seen@-1 >15000"},
			},
		},
		{
			name: "refused, entries had lapsed", args: "entry=1.4+reserves", reply: "[0 40000 v:1 1]",
			locks: []part{
				{kind: "plain", before: "v:1=2 40000, >u=1.3+lapsed@-5 seen@-1 >15000", after: "v:1=2 40000, >u=1.4+reserves@-5 seen@0 >20000"},
				{kind: "plain", before: ">u=1.3+lapsed@-5 seen@-1 >15000", after: ">u=1.4+lapsed@-5 seen@0 >20000"},
			},
		},
		{
			name: "refused, an entry was missing", args: "entry=1.4+reserves", reply: "[0 40000 v:1 1]",
			locks: []part{
				{kind: "plain", before: "v:1=2 40000, >u=1.3+reserves@-5 seen@-1 >15000", after: "v:1=2 40000, >u=1.4+reserves@0 seen@0 >20000"},
				{kind: "plain", before: ">u=1.3+reserved-30@-40 seen@-25 >15000", after: ">u=1.4+reserves@0 seen@0 >20000"},
			},
		},
		{
			name: "refused, and a writer before a reader has gone", kind: "read", args: "entry=1.4+reserves", reply: "[0 40000 v:1 1]", published: "w>1.1.0",
			before: "mode=read v:1=1 40000, v:1#1 40000, >x=2.7+listens@-5 seen@-1 >w=1.1+reads+listens@-4 seen@-1 >v=8.8+listens@-3 seen@-1 >u=1.3+reads+reserves@-2 seen@-1 >15000",
			after:  "mode=read v:1=1 w:1=1 40000, v:1#1 40000, w:1#1 20000, >v=8.8+listens@-3 seen@-1 >u=1.4+reads+reserves@-2 seen@0 >20000",
		},
		{
			name: "refused, beside a foreign hash", args: "entry=1.4+reserves", reply: "-WRONGTYPE",
			locks: []part{
				{kind: "plain", before: "v:1=2 40000", after: same},
				{
					kind: "write", before: "mode=read path=7, >u=1.3+reserves@-5 seen@-1 >w=1.1+reads+listens@-4 seen@-1 >15000", after: same,
				},
			},
		},
		{
			name: "refused, and readers may join", args: "entry=1.4+reserves", reply: "[0 40000 v:1 1]", published: "rw0 w>1.1.0",
			locks: []part{
				{
					kind: "write", before: "mode=read v:1=1 40000, v:1#1 40000, >u=1.3+reserves@-5 seen@-1 >w=1.1+reads+listens@-4 seen@-1 >x=8.8+reads+reserves@-2 seen@-1 >15000",
					after: "mode=read v:1=1 w:1=1 40000, v:1#1 40000, w:1#1 20000, >x=8.8+reads+reserves@-2 seen@-1 >u=1.4+reserves@0 seen@0 >20000",
				},
				{kind: "plain", after: ">u=1.4+reserves@0 seen@0 >20000"},
			},
		},
		{
			name: "refused by the first in the queue", kind: "plain", args: "entry=1.4+reserves", reply: "[0 20000 v:2 1]", published: "v:asked>2.0.0 v>2.7.10",
			before: ">v=2.7+tokens3+listens@-3 seen@-1 >15000 /'7'", after: "v:2=1 20000, >u=1.4+reserves@0 seen@0 >20000 /'10'",
		},
		{
			name: "reads with the first in the queue", kind: "read", reply: "[1 0  ]", published: "v>2.7.0",
			before: ">v=2.7+reads+listens@-3 seen@-1 >15000", after: "mode=read u:1=1 v:2=1 30000, u:1#1 30000, v:2#1 20000",
		},
	}},
	{script: scripts.YieldAll, call: "/ owner=u:1 SETTINGS entry=-", rows: []row{
		{
			name: "a queue of another type", args: "entry=1.4+reserves", reply: "-WRONGTYPE",
			locks: []part{
				{kind: "plain", before: "u:1=1 30000", after: same},
				{kind: "plain", before: "u:1=1 30000, waitqueue 'x' 30000", after: same},
			},
		},
		{
			name: "all kinds, alone", args: "entry=1.4+reserves", reply: "[1 0]", again: "[-1 0]", published: "0",
			locks: []part{
				{kind: "plain", before: "u:1=1 30000", after: ">u=1.4+reserves@0 seen@0 >20000"},
				{kind: "fenced", before: "u:1=1 30000 /'7'", after: ">u=1.4+reserves@0 seen@0 >20000 /'7'"},
				{kind: "read", before: "mode=read u:1=1 30000, u:1#1 30000", after: ">u=1.4+reads+reserves@0 seen@0 >20000"},
				{kind: "write", before: "mode=write u:1:write=1 30000", after: ">u=1.4+reserves@0 seen@0 >20000"},
			},
		},
		{
			name: "without an entry", reply: "[1 0]", again: "[-1 0]", published: "0",
			locks: []part{
				{kind: "plain", before: "u:1=1 30000"},
				{kind: "write", before: "mode=write u:1:write=1 30000"},
			},
		},
		{
			name: "to the next", args: "entry=1.4+reserves", reply: "[1 0]", again: "[-1 0]", published: "v>2.7.0",
			locks: []part{
				{kind: "plain", before: "u:1=1 30000, >u=1.3+reserves@-5 seen@-1 >v=2.7+listens@-3 seen@-1 >15000", after: "v:2=1 20000, >u=1.4+reserves@0 seen@0 >20000"},
				{kind: "plain", before: "u:1=1 30000", after: ">u=1.4+reserves@0 seen@0 >20000"},
			},
		},
		{
			name: "to another MultiLock", args: "entry=1.4+reserves", reply: "[1 0]", again: "[-1 0]", published: "0",
			locks: []part{
				{kind: "plain", before: "u:1=1 30000, >v=2.7+reserves@-3 seen@-1 >15000", after: ">v=2.7+reserved0@-3 seen@-1 >u=1.4+reserves@0 seen@0 >20000"},
				{kind: "plain", before: "u:1=1 30000, >v=2.7+reserves@-3 seen@-1 >15000", after: ">v=2.7+reserved0@-3 seen@-1 >u=1.4+reserves@0 seen@0 >20000"},
			},
		},
		{
			name: "to the next, with tokens", kind: "fenced", reply: "[1 0]", again: "[-1 0]", published: "v>2.7.10",
			before: "u:1=1 30000, >v=2.7+tokens3+listens@-3 seen@-1 >15000 /'7'", after: "v:2=1 20000 /'10'",
		},
		{
			name: "a foreign hash", kind: "write", reply: "[-1 0]",
			before: "mode=read path=7, >u=1.1+reserves@-5 seen@-1 >w=1.1+reads+listens@-4 seen@-1 >15000",
			after:  "mode=read path=7, >w=1.1+reads+listens@-4 seen@-1 >15000",
		},
	}},
}

// refusing are locks of other applications, or malformed ones, because of which acquire_all is refused.
var refusing = []part{
	{kind: "plain", before: "'x'"},
	{kind: "plain", before: "email=7"},
	{kind: "plain", before: "email=7 v:1=1 40000"},
	{kind: "fenced", before: "email=7 /'3'"},
	{kind: "fair", before: "email=7"},
	{kind: "fair", before: "/some:7@-5"},
	{kind: "read", before: "mode=read path=7"},
	{kind: "write", before: "mode=read path=7 u:1=1, u:1#1 40000"},
}

// refusedRows are rows of acquire_all in which the last of several locks of all kinds refuses; the others stay unchanged.
func refusedRows() (rows []row) {
	for _, r := range refusing {
		locks := []part{{kind: "fenced", before: "/'7' 60000"}, {kind: "plain"}, {kind: "fair", before: "/v:1@-5"}, {kind: "read"}, {kind: "write"}, r}
		for i := range locks {
			locks[i].after = same
		}
		rows = append(rows, row{name: fmt.Sprintf("%s %s", r.kind, r.before), reply: "-WRONGTYPE", locks: locks})
	}
	return rows
}
