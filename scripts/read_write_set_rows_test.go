package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

// The signs in these rows: see state_test.go.
var readWriteSetTable = table{
	script: scripts.ReadWriteSet,
	call:   "NAME / owner=u:1 writes=0 reads=1 lease=30000 LEASES releases=0 RWCHANNEL WAITQUEUE SETTINGS entry=- notified=0",
	rows: []row{
		// a writer
		{name: "free", args: "writes=1 reads=0", reply: "[1 0 ]", after: "mode=write u:1:write=1 30s"},
		{
			name: "own, once more", args: "writes=2 reads=0 lease=40000", reply: "[1 0 ]",
			before: "mode=write u:1:write=1 30s", after: "mode=write u:1:write=2 40s",
		},
		{
			name: "own, and read", args: "writes=1 reads=2 lease=40000", reply: "[1 0 ]",
			before: "mode=write u:1:write=1 30s", after: "mode=write u:1:write=1 u:1=2 40s, leases u:1#1=40s u:1#2=40s",
		},
		{
			name: "own, and no longer read", args: "writes=1 reads=0 lease=40000", reply: "[1 0 ]",
			before: "mode=write u:1:write=1 u:1=1 30s, leases u:1#1=30s", after: "mode=write u:1:write=1 40s",
		},
		{
			name: "other, without end", args: "writes=1 reads=0", reply: "[0 -1 v:1:write]",
			before: "mode=write v:1:write=1", after: same,
		},
		{name: "foreign", before: "mode=read path=x", args: "writes=1 reads=0", reply: "-WRONGTYPE", after: same},
		{name: "another mode, to re-enter", before: "mode=dark u:1:write=1 30s", args: "writes=2 reads=0 lease=40000", reply: "-WRONGTYPE", after: same},
		// a reader that wants to write, too
		{
			name: "one of two", args: "writes=1 reads=2", reply: "[0 40000 v:1]",
			before: "mode=read u:1=2 v:1=1 90s, leases u:1#1=20s u:1#2=90s v:1#1=40s",
			after:  "mode=read v:1=1 40s, leases v:1#1=40s",
		},
		{
			name: "alone", args: "writes=1", reply: "[1 0 ]",
			before: "mode=read u:1=1 20s, leases u:1#1=20s", after: "mode=write u:1:write=1 u:1=1 30s, leases u:1#1=30s",
		},
		{
			name: "besides a dead one", args: "writes=1", reply: "[1 0 ]",
			before: "mode=read u:1=1 v:1=1 20s, leases u:1#1=20s", after: "mode=write u:1:write=1 u:1=1 30s, leases u:1#1=30s",
		},
		// a reader
		{
			name: "own, more", args: "reads=3 lease=20000", reply: "[1 0 ]",
			before: "mode=read u:1=1 30s, leases u:1#1=30s", after: "mode=read u:1=3 20s, leases u:1#1=20s u:1#2=20s u:1#3=20s",
		},
		// with a wait queue
		{
			name: "free, another writer's turn", args: "writes=1 reads=0 entry=1.4+listens", reply: "[0 20000 v:2:write]",
			published: "turn:v=2.7.0",
			before:    "waitqueue v=2.7+listens@-3s 15s", after: "mode=write v:2:write=1 20s, waitqueue u=1.4+listens@0s seen@0s 20s",
		},
		{
			name: "free, left to others", args: "entry=1.4+reads+listens", reply: "[0 3000 ]",
			before: "waitqueue open@3s 15s", after: "waitqueue u=1.4+reads+listens@0s seen@0s open@3s 20s",
		},
		{
			name: "a writer before a MultiLock that reads has gone", args: "entry=1.4+reads+listens", reply: "[1 0 ]", published: "rwchannel=0",
			before: "mode=read w:1=1 40s, leases w:1#1=40s, waitqueue x=2.7+listens@-3s v=2.7+reads+reserves@-2s 15s",
			after:  "mode=read u:1=1 w:1=1 40s, leases u:1#1=30s w:1#1=40s, waitqueue v=2.7+reads+reserves@-2s 15s",
		},
		{
			name: "a writer before another reader has gone", args: "entry=1.4+reads+listens", reply: "[0 40000 w:1]", published: "turn:v=2.7.0",
			before: "mode=read w:1=1 40s, leases w:1#1=40s, waitqueue x=2.7+listens@-3s v=2.7+reads+listens@-2s w=8.8+listens@-1s 15s",
			after:  "mode=read v:2=1 w:1=1 40s, leases v:2#1=20s w:1#1=40s, waitqueue w=8.8+listens@-1s u=1.4+reads+listens@0s seen@0s 20s",
		},
		{
			name: "one of two readers wants to write", args: "writes=1 reads=0 entry=1.4+listens", reply: "[0 40000 w:1]",
			before: "mode=read u:1=1 w:1=1 40s, leases u:1#1=40s w:1#1=40s",
			after:  "mode=read w:1=1 40s, leases w:1#1=40s, waitqueue u=1.4+listens@0s seen@0s 20s",
		},
	},
}
