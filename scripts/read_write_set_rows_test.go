package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

var readWriteSetTable = table{
	script: scripts.ReadWriteSet,
	call:   "NAME / owner=u:1 writes=0 reads=1 lease=30000 HOLDS releases=0 RWCHANNEL WAITQUEUE SETTINGS entry=- notified=0",
	rows: []row{
		// a writer
		{name: "free", args: "writes=1 reads=0", reply: "[1 0 ]", after: "mode=write u:1:write=1 30000"},
		{
			name: "own, once more", args: "writes=2 reads=0 lease=40000", reply: "[1 0 ]",
			before: "mode=write u:1:write=1 30000", after: "mode=write u:1:write=2 40000",
		},
		{
			name: "own, and read", args: "writes=1 reads=2 lease=40000", reply: "[1 0 ]",
			before: "mode=write u:1:write=1 30000", after: "mode=write u:1:write=1 u:1=2 40000, u:1#1 40000, u:1#2 40000",
		},
		{
			name: "own, and no longer read", args: "writes=1 reads=0 lease=40000", reply: "[1 0 ]",
			before: "mode=write u:1:write=1 u:1=1 30000, u:1#1 30000", after: "mode=write u:1:write=1 40000",
		},
		{
			name: "other, without end", args: "writes=1 reads=0", reply: "[0 -1 v:1:write]",
			before: "mode=write v:1:write=1", after: same,
		},
		{name: "foreign", before: "mode=read path=x", args: "writes=1 reads=0", reply: "-WRONGTYPE", after: same},
		{name: "another mode, to re-enter", before: "mode=dark u:1:write=1 30000", args: "writes=2 reads=0 lease=40000", reply: "-WRONGTYPE", after: same},
		// a reader that wants to write, too
		{
			name: "one of two", args: "writes=1 reads=2", reply: "[0 40000 v:1]",
			before: "mode=read u:1=2 v:1=1 90000, u:1#1 20000, u:1#2 90000, v:1#1 40000",
			after:  "mode=read v:1=1 40000, v:1#1 40000",
		},
		{
			name: "alone", args: "writes=1", reply: "[1 0 ]",
			before: "mode=read u:1=1 20000, u:1#1 20000", after: "mode=write u:1:write=1 u:1=1 30000, u:1#1 30000",
		},
		{
			name: "besides a dead one", args: "writes=1", reply: "[1 0 ]",
			before: "mode=read u:1=1 v:1=1 20000, u:1#1 20000", after: "mode=write u:1:write=1 u:1=1 30000, u:1#1 30000",
		},
		// a reader
		{
			name: "own, more", args: "reads=3 lease=20000", reply: "[1 0 ]",
			before: "mode=read u:1=1 30000, u:1#1 30000", after: "mode=read u:1=3 20000, u:1#1 20000, u:1#2 20000, u:1#3 20000",
		},
		// with a wait queue
		{
			name: "free, another writer's turn", args: "writes=1 reads=0 entry=1.4+listens", reply: "[0 20000 v:2:write]",
			published: "v>2.7.0",
			before:    ">v=2.7+listens@-3 seen@-1 >15000", after: "mode=write v:2:write=1 20000, >u=1.4+listens@0 seen@0 >20000",
		},
		{
			name: "free, left to others", args: "entry=1.4+reads+listens", reply: "[0 3000 ]",
			before: ">open@3 >15000", after: ">u=1.4+reads+listens@0 seen@0 >open@3 >20000",
		},
		{
			name: "a writer before a MultiLock that reads has gone", args: "entry=1.4+reads+listens", reply: "[1 0 ]", published: "rw0",
			before: "mode=read w:1=1 40000, w:1#1 40000, >x=2.7+listens@-3 seen@-1 >v=2.7+reads+reserves@-2 seen@-1 >15000",
			after:  "mode=read u:1=1 w:1=1 40000, u:1#1 30000, w:1#1 40000, >v=2.7+reads+reserves@-2 seen@-1 >15000",
		},
		{
			name: "a writer before another reader has gone", args: "entry=1.4+reads+listens", reply: "[0 40000 w:1]", published: "v>2.7.0",
			before: "mode=read w:1=1 40000, w:1#1 40000, >x=2.7+listens@-3 seen@-1 >v=2.7+reads+listens@-2 seen@-1 >w=8.8+listens@-1 seen@-1 >15000",
			after:  "mode=read v:2=1 w:1=1 40000, v:2#1 20000, w:1#1 40000, >w=8.8+listens@-1 seen@-1 >u=1.4+reads+listens@0 seen@0 >20000",
		},
		{
			name: "one of two readers wants to write", args: "writes=1 reads=0 entry=1.4+listens", reply: "[0 40000 w:1]",
			before: "mode=read u:1=1 w:1=1 40000, u:1#1 40000, w:1#1 40000",
			after:  "mode=read w:1=1 40000, w:1#1 40000, >u=1.4+listens@0 seen@0 >20000",
		},
	},
}
