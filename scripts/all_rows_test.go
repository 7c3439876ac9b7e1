package scripts_test

import (
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// The signs in these rows: see state_test.go.
var allTables = []table{
	{script: scripts.AcquireAll, call: "/ owner=u:1 lease=30000 tokens=5 SETTINGS entry=- notified=0", rows: []row{
		{
			name: "all kinds", reply: "[1 0 5,12 ]", again: "[1 0 10,17 ]",
			locks: []part{
				{kind: "plain", after: "u:1=1 30s"},
				{kind: "fenced", after: "u:1=1 30s, tokens '5'", afterAgain: "u:1=1 30s, tokens '10'"},
				{kind: "fair", after: "u:1=1 30s"},
				{kind: "read", after: "mode=read u:1=1 30s, leases u:1#1=30s"},
				{kind: "fenced", before: "tokens '7'", after: "u:1=1 30s, tokens '12'", afterAgain: "u:1=1 30s, tokens '17'"},
				{kind: "write", after: "mode=write u:1:write=1 30s"},
			},
		},
		{
			name: "own, from an earlier request", reply: "[1 0 12 ]", again: "[1 0 17 ]",
			locks: []part{
				{kind: "plain", before: "u:1=1 20s", after: "u:1=1 30s"},
				{kind: "fenced", before: "u:1=1 20s, tokens '7'", after: "u:1=1 30s, tokens '12'", afterAgain: "u:1=1 30s, tokens '17'"},
				{kind: "fair", before: "u:1=1 20s, queue v:1@300s", after: "u:1=1 30s, queue v:1@300s"},
				{kind: "read", before: "mode=read u:1=1 20s, leases u:1#1=20s", after: "mode=read u:1=1 30s, leases u:1#1=30s"},
				{kind: "write", before: "mode=write u:1:write=1 20s", after: "mode=write u:1:write=1 30s"},
			},
		},
		{
			name: "a counter that would end", kind: "fenced", reply: "[1 0 12 ]", again: "[1 0 17 ]",
			before: "tokens '7' 60s", after: "u:1=1 30s, tokens '12'", afterAgain: "u:1=1 30s, tokens '17'",
		},
		{
			name: "too few tokens are left", reply: "-BADVALUE redisson_lock_token",
			locks: []part{
				{kind: "plain", after: same},
				{kind: "fenced", before: "tokens '9007199254740989'", after: same},
			},
		},
		{name: "a counter of another type", kind: "fenced", before: "tokens a=1", after: same, reply: "-WRONGTYPE"},
		{name: "a queue of the dead", kind: "fair", before: "queue v:1@-5s w:1 x:1@-7s", after: "u:1=1 30s", reply: "[1 0  ]"},
		{name: "a queue of one dead since now", kind: "fair", before: "queue v:1@0s", after: "u:1=1 30s", reply: "[1 0  ]"},
		{
			name: "among longer readers", kind: "read", reply: "[1 0  ]",
			before: "mode=read v:1=1 60s, leases v:1#1=60s", after: "mode=read u:1=1 v:1=1 60s, leases u:1#1=30s v:1#1=60s",
		},
		{
			name: "past a lapsed one, and leaves", args: "entry=1.4", reply: "[1 0 12 ]", again: "[1 0 17 ]",
			locks: []part{
				{kind: "plain", before: "waitqueue v=2.7+lapsed@-9s 15s", after: "u:1=1 30s, waitqueue v=2.7+lapsed@-9s 15s"},
				{kind: "fenced", before: "waitqueue u=1.3@-4s reserved@-2s 15s, tokens '7'", after: "u:1=1 30s, tokens '12'", afterAgain: "u:1=1 30s, tokens '17'"},
				{kind: "read", before: "waitqueue u=2.3+reserves@-4s 15s", after: "mode=read u:1=1 30s, leases u:1#1=30s, waitqueue u=2.3+reserves@-4s 15s"},
			},
		},
		{
			name: "refused, entries had lapsed", args: "entry=1.4+reserves", reply: "[0 40000 v:1 1]",
			locks: []part{
				{kind: "plain", before: "v:1=2 40s, waitqueue u=1.3+lapsed@-5s 15s", after: "v:1=2 40s, waitqueue u=1.4+reserves@-5s seen@0s 20s"},
				{kind: "plain", before: "waitqueue u=1.3+lapsed@-5s 15s", after: "waitqueue u=1.4+lapsed@-5s seen@0s 20s"},
			},
		},
		{
			name: "refused, an entry was missing", args: "entry=1.4+reserves", reply: "[0 40000 v:1 1]",
			locks: []part{
				{kind: "plain", before: "v:1=2 40s, waitqueue u=1.3+reserves@-5s 15s", after: "v:1=2 40s, waitqueue u=1.4+reserves@0s seen@0s 20s"},
				{kind: "plain", before: "waitqueue u=1.3@-40s seen@-25s reserved@-30s 15s", after: "waitqueue u=1.4+reserves@0s seen@0s 20s"},
			},
		},
		{
			name: "refused, and a writer before a reader has gone", kind: "read", args: "entry=1.4+reserves", reply: "[0 40000 v:1 1]", published: "turn:w=1.1.0",
			before: "mode=read v:1=1 40s, leases v:1#1=40s, waitqueue x=2.7+listens@-5s w=1.1+reads+listens@-4s v=8.8+listens@-3s u=1.3+reads+reserves@-2s 15s",
			after:  "mode=read v:1=1 w:1=1 40s, leases v:1#1=40s w:1#1=20s, waitqueue v=8.8+listens@-3s u=1.4+reads+reserves@-2s seen@0s 20s",
		},
		{
			name: "refused, with a foreign hash", args: "entry=1.4+reserves", reply: "-WRONGTYPE",
			locks: []part{
				{kind: "plain", before: "v:1=2 40s", after: same},
				{
					kind: "write", before: "mode=read path=7, waitqueue u=1.3+reserves@-5s w=1.1+reads+listens@-4s 15s", after: same,
				},
			},
		},
		{
			name: "refused, and readers may join", args: "entry=1.4+reserves", reply: "[0 40000 v:1 1]", published: "rwchannel=0 turn:w=1.1.0",
			locks: []part{
				{
					kind: "write", before: "mode=read v:1=1 40s, leases v:1#1=40s, waitqueue u=1.3+reserves@-5s w=1.1+reads+listens@-4s x=8.8+reads+reserves@-2s 15s",
					after: "mode=read v:1=1 w:1=1 40s, leases v:1#1=40s w:1#1=20s, waitqueue x=8.8+reads+reserves@-2s u=1.4+reserves@0s seen@0s 20s",
				},
				{kind: "plain", after: "waitqueue u=1.4+reserves@0s seen@0s 20s"},
			},
		},
		{
			name: "refused by the first in the queue", kind: "plain", args: "entry=1.4+reserves", reply: "[0 20000 v:2 1]", published: "turn:v:asked=2.0.0 turn:v=2.7.10",
			before: "waitqueue v=2.7+tokens3+listens@-3s 15s, tokens '7'", after: "v:2=1 20s, waitqueue u=1.4+reserves@0s seen@0s 20s, tokens '10'",
		},
		{
			name: "reads with the first in the queue", kind: "read", reply: "[1 0  ]", published: "turn:v=2.7.0",
			before: "waitqueue v=2.7+reads+listens@-3s 15s", after: "mode=read u:1=1 v:2=1 30s, leases u:1#1=30s v:2#1=20s",
		},
	}},
	{script: scripts.YieldAll, call: "/ owner=u:1 SETTINGS entry=-", rows: []row{
		{
			name: "a queue of another type", args: "entry=1.4+reserves", reply: "-WRONGTYPE",
			locks: []part{
				{kind: "plain", before: "u:1=1 30s", after: same},
				{kind: "plain", before: "u:1=1 30s, waitqueue 'x' 30s", after: same},
			},
		},
		{
			name: "all kinds, alone", args: "entry=1.4+reserves", reply: "[1 0]", again: "[-1 0]", published: "channel=0",
			locks: []part{
				{kind: "plain", before: "u:1=1 30s", after: "waitqueue u=1.4+reserves@0s seen@0s 20s"},
				{kind: "fenced", before: "u:1=1 30s, tokens '7'", after: "waitqueue u=1.4+reserves@0s seen@0s 20s, tokens '7'"},
				{kind: "read", before: "mode=read u:1=1 30s, leases u:1#1=30s", after: "waitqueue u=1.4+reads+reserves@0s seen@0s 20s"},
				{kind: "write", before: "mode=write u:1:write=1 30s", after: "waitqueue u=1.4+reserves@0s seen@0s 20s"},
			},
		},
		{
			name: "without an entry", reply: "[1 0]", again: "[-1 0]", published: "channel=0",
			locks: []part{
				{kind: "plain", before: "u:1=1 30s"},
				{kind: "write", before: "mode=write u:1:write=1 30s"},
			},
		},
		{
			name: "to the next", args: "entry=1.4+reserves", reply: "[1 0]", again: "[-1 0]", published: "turn:v=2.7.0",
			locks: []part{
				{kind: "plain", before: "u:1=1 30s, waitqueue u=1.3+reserves@-5s v=2.7+listens@-3s 15s", after: "v:2=1 20s, waitqueue u=1.4+reserves@0s seen@0s 20s"},
				{kind: "plain", before: "u:1=1 30s", after: "waitqueue u=1.4+reserves@0s seen@0s 20s"},
			},
		},
		{
			name: "to another MultiLock", args: "entry=1.4+reserves", reply: "[1 0]", again: "[-1 0]", published: "channel=0",
			locks: []part{
				{kind: "plain", before: "u:1=1 30s, waitqueue v=2.7+reserves@-3s 15s", after: "waitqueue v=2.7@-3s reserved@0s u=1.4+reserves@0s seen@0s 20s"},
				{kind: "plain", before: "u:1=1 30s, waitqueue v=2.7+reserves@-3s 15s", after: "waitqueue v=2.7@-3s reserved@0s u=1.4+reserves@0s seen@0s 20s"},
			},
		},
		{
			name: "to the next, with tokens", kind: "fenced", reply: "[1 0]", again: "[-1 0]", published: "turn:v=2.7.10",
			before: "u:1=1 30s, waitqueue v=2.7+tokens3+listens@-3s 15s, tokens '7'", after: "v:2=1 20s, tokens '10'",
		},
		{
			name: "a foreign hash", kind: "write", reply: "[-1 0]",
			before: "mode=read path=7, waitqueue u=1.1+reserves@-5s w=1.1+reads+listens@-4s 15s",
			after:  "mode=read path=7, waitqueue w=1.1+reads+listens@-4s 15s",
		},
	}},
}

// refusing are locks of other applications, or malformed ones, because of which acquire_all is refused.
var refusing = []part{
	{kind: "plain", before: "'x'"},
	{kind: "plain", before: "email=7"},
	{kind: "plain", before: "email=7 v:1=1 40s"},
	{kind: "fenced", before: "email=7, tokens '3'"},
	{kind: "fair", before: "email=7"},
	{kind: "fair", before: "queue some:7@-5s"},
	{kind: "read", before: "mode=read path=7"},
	{kind: "write", before: "mode=read path=7 u:1=1, leases u:1#1=40s"},
}

// refusedRows are rows of acquire_all in which the last of several locks of all kinds refuses; the others stay
// unchanged.
func refusedRows() (rows []row) {
	for _, r := range refusing {
		locks := []part{{kind: "fenced", before: "tokens '7' 60s"}, {kind: "plain"}, {kind: "fair", before: "queue v:1@-5s"}, {kind: "read"}, {kind: "write"}, r}
		for i := range locks {
			locks[i].after = same
		}
		rows = append(rows, row{name: fmt.Sprintf("%s %s", r.kind, r.before), reply: "-WRONGTYPE", locks: locks})
	}
	return rows
}
