package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

var readWriteSetTable = table{script: scripts.ReadWriteSet, call: "NAME / owner=u:1 writes=0 reads=1 lease=30000 HOLDS releases=0 RWCHANNEL WAITQUEUE SETTINGS entry=- notified=0", rows: []row{
	// a writer
	{name: "free", args: "writes=1 reads=0", reply: "[1 0 ]", after: "mode=write u:1:write=1 30000"},
	{name: "free, to re-enter", args: "writes=2 reads=0", reply: "[-1 0 ]"},
	{
		name: "own, once more", args: "writes=2 reads=0 lease=40000", reply: "[1 0 ]",
		before: "mode=write u:1:write=1 30000", after: "mode=write u:1:write=2 40000",
	},
	{
		name: "own, and read", args: "writes=1 reads=2 lease=40000", reply: "[1 0 ]",
		before: "mode=write u:1:write=1 30000", after: "mode=write u:1:write=1 u:1=2 40000, u:1#1 40000, u:1#2 40000",
	},
	{
		name: "own, and read no more", args: "writes=1 reads=0 lease=40000", reply: "[1 0 ]",
		before: "mode=write u:1:write=1 u:1=1 30000, u:1#1 30000", after: "mode=write u:1:write=1 40000",
	},
	{
		name: "other, without end", args: "writes=1 reads=0", reply: "[0 -1 v:1:write]",
		before: "mode=write v:1:write=1", after: same,
	},
	{
		name: "other reads", args: "writes=1 reads=0", reply: "[0 40000 v:1]",
		before: "mode=read v:1=1 40000, v:1#1 40000", after: "mode=read v:1=1 40000, v:1#1 40000",
	},
	{name: "a plain lock", before: "v:1=1 40000", args: "writes=1 reads=0", reply: "[0 40000 v:1]", after: same},
	{name: "wrong type", before: "'x'", args: "writes=1 reads=0", reply: "-WRONGTYPE", after: same},
	{name: "foreign", before: "mode=read path=x", args: "writes=1 reads=0", reply: "-WRONGTYPE", after: same},
	{name: "half foreign", before: "mode=write path=7 v:1:write=1 30000", args: "writes=1 reads=0", reply: "-WRONGTYPE", after: same},
	{name: "another mode, to re-enter", before: "mode=dark u:1:write=1 30000", args: "writes=2 reads=0 lease=40000", reply: "-WRONGTYPE", after: same},
	{name: "another mode, to read", before: "mode=dark u:1:write=1 30000", args: "lease=40000", reply: "-WRONGTYPE", after: same},
	{
		name: "another mode, to write", args: "writes=1 reads=0 lease=40000", reply: "-WRONGTYPE",
		before: "mode=dark u:1=1 30000, u:1#1 30000", after: same,
	},
	{
		name: "another mode, one less", args: "writes=1 reads=0 lease=40000 releases=1", reply: "-WRONGTYPE",
		before: "mode=dark u:1:write=2 30000", after: same,
	},
	{name: "of another mode", before: "mode=fast v:1=1 30000", args: "writes=1 reads=0", reply: "-WRONGTYPE", after: same},
	// giving back a part of the holds: without a hold, nothing is granted
	{name: "free, of a writer", args: "writes=1 reads=0 releases=1", reply: "[-1 0 ]"},
	{name: "others read", before: "mode=read v:1=1 40000, v:1#1 40000", args: "releases=1", reply: "[-1 0 ]", after: same},
	{
		name: "own", args: "releases=1", reply: "[1 0 ]",
		before: "mode=read u:1=2 20000, u:1#1 20000, u:1#2 20000", after: "mode=read u:1=1 30000, u:1#1 30000",
	},
	{
		name: "own, of a writer that reads on", args: "releases=1", reply: "[1 0 ]", published: "rw1",
		before: "mode=write u:1:write=1 u:1=1 20000, u:1#1 20000", after: "mode=read u:1=1 30000, u:1#1 30000",
	},
	// a reader that wants to write, too
	{
		name: "the only reader, instead", args: "writes=1 reads=0", reply: "[1 0 ]",
		before: "mode=read u:1=2 20000, u:1#1 20000, u:1#2 20000", after: "mode=write u:1:write=1 30000",
	},
	{
		name: "one of two", args: "writes=1 reads=2", reply: "[0 40000 v:1]",
		before: "mode=read u:1=2 v:1=1 90000, u:1#1 20000, u:1#2 90000, v:1#1 40000",
		after:  "mode=read v:1=1 40000, v:1#1 40000",
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
	{
		name: "own, less", args: "lease=40000", reply: "[1 0 ]",
		before: "mode=read u:1=3 30000, u:1#1 30000, u:1#2 30000, u:1#3 30000", after: "mode=read u:1=1 40000, u:1#1 40000",
	},
	{
		name: "own, among others", args: "reads=2", reply: "[1 0 ]",
		before: "mode=read u:1=1 v:1=1 40000, u:1#1 20000, v:1#1 40000",
		after:  "mode=read u:1=2 v:1=1 40000, u:1#1 30000, u:1#2 30000, v:1#1 40000",
	},
	{
		name: "joins for more", args: "lease=60000", reply: "[1 0 ]",
		before: "mode=read v:1=1 40000, v:1#1 40000", after: "mode=read u:1=1 v:1=1 60000, u:1#1 60000, v:1#1 40000",
	},
	{name: "does not join to re-enter", before: "mode=read v:1=1 40000, v:1#1 40000", args: "reads=2", reply: "[0 40000 v:1]", after: same},
	{name: "other writes", before: "mode=write v:1:write=1 40000", reply: "[0 40000 v:1:write]", after: same},
	{
		name: "downgrade of both", reply: "[1 0 ]", published: "rw1",
		before: "mode=write u:1:write=1 u:1=1 20000, u:1#1 20000", after: "mode=read u:1=1 30000, u:1#1 30000",
	},
	{name: "a plain lock", before: "v:1=1 40000", reply: "[0 40000 v:1]", after: same},
	{name: "wrong type", before: "'x' 30000", reply: "-WRONGTYPE", after: same},
	{name: "foreign, it could be read", before: "mode=read path=7 30000", reply: "-WRONGTYPE", after: same},
	{name: "half foreign, it could be read", before: "mode=read path=7 v:1=1 30000, v:1#1 30000", reply: "-WRONGTYPE", after: same},
	// with a wait queue
	{
		name: "free, another writer's turn", args: "writes=1 reads=0 entry=1.4+listens", reply: "[0 20000 v:2:write]",
		published: "v>2.7.0",
		before:    ">v=2.7+listens@-3 seen@-1 >15000", after: "mode=write v:2:write=1 20000, >u=1.4+listens@0 seen@0 >20000",
	},
	{
		name: "free, a writer's turn, not to read", args: "entry=1.4+reads+listens", reply: "[0 20000 v:2:write]",
		published: "v>2.7.0",
		before:    ">v=2.7+listens@-3 seen@-1 >15000",
		after:     "mode=write v:2:write=1 20000, >u=1.4+reads+listens@0 seen@0 >20000",
	},
	{
		name: "free, a reader's turn, to read too", args: "entry=1.4+reads+listens", reply: "[1 0 ]", published: "v>2.7.0",
		before: ">v=2.7+reads+listens@-3 seen@-1 >u=1.3+reads+listens@-2 seen@-1 >15000",
		after:  "mode=read u:1=1 v:2=1 30000, u:1#1 30000, v:2#1 20000",
	},
	{
		name: "free, a reader's turn, then a writer's", args: "entry=1.4+reads+listens", reply: "[0 20000 v:2]",
		published: "v>2.7.0",
		before:    ">v=2.7+reads+listens@-3 seen@-1 >w=8.8+listens@-2 seen@-1 >15000",
		after:     "mode=read v:2=1 20000, v:2#1 20000, >w=8.8+listens@-2 seen@-1 >u=1.4+reads+listens@0 seen@0 >20000",
	},
	{
		name: "free, readers' turn, past one that has gone", reply: "[1 0 ]", published: "v>2.7.0",
		before: ">v=2.7+reads+listens@-4 seen@-1 >x=1.1+listens@-3 seen@-1 >u=1.3+reads+listens@-2 seen@-1 >15000",
		after:  "mode=read u:1=1 v:2=1 30000, u:1#1 30000, v:2#1 20000",
	},
	{
		name: "free, readers' turn, to its own", args: "writes=1 reads=0 entry=1.4+listens", reply: "[0 20000 v:2]",
		published: "v>2.7.0",
		before:    ">v=2.7+reads+listens@-4 seen@-1 >u=1.3+listens@-3 seen@-1 >w=8.8+reads+listens@-2 seen@-1 >15000",
		after:     "mode=read v:2=1 20000, v:2#1 20000, >u=1.4+listens@-3 seen@0 >w=8.8+reads+listens@-2 seen@-1 >20000",
	},
	{
		name: "free, own turn to read", args: "entry=1.4+reads+listens", reply: "[1 0 ]",
		before: ">u=1.3+reads+listens@-3 seen@-1 >v=2.7+listens@-2 seen@-1 >15000",
		after:  "mode=read u:1=1 30000, u:1#1 30000, >v=2.7+listens@-2 seen@-1 >15000",
	},
	{
		name: "free, left to others", args: "entry=1.4+reads+listens", reply: "[0 3000 ]",
		before: ">open@3 >15000", after: ">u=1.4+reads+listens@0 seen@0 >open@3 >20000",
	},
	{
		name: "free, left to others, and released", args: "entry=1.4+reads+listens notified=1", reply: "[1 0 ]",
		before: ">open@3 >15000", after: "mode=read u:1=1 30000, u:1#1 30000",
	},
	{
		name: "readers, joined by a former writer", args: "entry=1.4+reads+listens", reply: "[1 0 ]", published: "v>2.7.0",
		before: "mode=read w:1=1 40000, w:1#1 40000, >u=1.3+listens@-3 seen@-1 >v=2.7+reads+listens@-2 seen@-1 >15000",
		after:  "mode=read u:1=1 v:2=1 w:1=1 40000, u:1#1 30000, v:2#1 20000, w:1#1 40000",
	},
	{
		name: "free, read by a former writer", args: "entry=1.4+reads+listens", reply: "[1 0 ]", published: "v>2.7.0",
		before: ">u=1.3+listens@-3 seen@-1 >v=2.7+reads+listens@-2 seen@-1 >15000",
		after:  "mode=read u:1=1 v:2=1 30000, u:1#1 30000, v:2#1 20000",
	},
	{
		name: "readers, a writer adds an entry", args: "writes=1 reads=0 entry=1.4+listens", reply: "[0 40000 w:1]",
		before: "mode=read w:1=1 40000, w:1#1 40000",
		after:  "mode=read w:1=1 40000, w:1#1 40000, >u=1.4+listens@0 seen@0 >20000",
	},
	{
		name: "does not read past a queued writer", args: "entry=1.4+reads+listens", reply: "[0 40000 w:1]",
		before: "mode=read w:1=1 40000, w:1#1 40000, >v=2.7+listens@-3 seen@-1 >15000",
		after:  "mode=read w:1=1 40000, w:1#1 40000, >v=2.7+listens@-3 seen@-1 >u=1.4+reads+listens@0 seen@0 >20000",
	},
	{
		name: "nor past one behind a reader", reply: "[0 40000 x:1]",
		before: "mode=read x:1=1 40000, x:1#1 40000, >v=2.7+reads+listens@-4 seen@-1 >w=8.8+listens@-3 seen@-1 >15000",
		after:  same,
	},
	{
		name: "does not read past a MultiLock", args: "entry=1.4+reads+listens", reply: "[0 40000 w:1]",
		before: "mode=read w:1=1 40000, w:1#1 40000, >v=2.7+reserves@-3 seen@-1 >15000",
		after:  "mode=read w:1=1 40000, w:1#1 40000, >v=2.7+reserves@-3 seen@-1 >u=1.4+reads+listens@0 seen@0 >20000",
	},
	{
		name: "reads past a MultiLock that reads", args: "entry=1.4+reads+listens", reply: "[1 0 ]",
		before: "mode=read w:1=1 40000, w:1#1 40000, >v=2.7+reads+reserves@-3 seen@-1 >15000",
		after:  "mode=read u:1=1 w:1=1 40000, u:1#1 30000, w:1#1 40000, >v=2.7+reads+reserves@-3 seen@-1 >15000",
	},
	{
		name: "reads before a queued writer", args: "entry=1.4+reads+listens", reply: "[1 0 ]",
		before: "mode=read w:1=1 40000, w:1#1 40000, >u=1.3+reads+listens@-4 seen@-1 >v=2.7+listens@-3 seen@-1 >15000",
		after:  "mode=read u:1=1 w:1=1 40000, u:1#1 30000, w:1#1 40000, >v=2.7+listens@-3 seen@-1 >15000",
	},
	{
		name: "reads past a writer that has gone", args: "entry=1.4+reads+listens", reply: "[1 0 ]",
		before: "mode=read w:1=1 40000, w:1#1 40000, >x=2.7+listens@-3 seen@-1 >15000",
		after:  "mode=read u:1=1 w:1=1 40000, u:1#1 30000, w:1#1 40000",
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
		name: "reads together with readers before it", args: "entry=1.4+reads+listens", reply: "[1 0 ]", published: "v>2.7.0",
		before: "mode=read w:1=1 40000, w:1#1 40000, >v=2.7+reads+listens@-3 seen@-1 >open@3 >15000",
		after:  "mode=read u:1=1 v:2=1 w:1=1 40000, u:1#1 30000, v:2#1 20000, w:1#1 40000",
	},
	{
		name: "reads past a writer of the client", args: "entry=1.4+reads+listens", reply: "[1 0 ]",
		before: "mode=read w:1=1 40000, w:1#1 40000, >u=2.7+listens@-3 seen@-1 >15000",
		after:  "mode=read u:1=1 w:1=1 40000, u:1#1 30000, w:1#1 40000, >u=2.7+listens@-3 seen@-1 >15000",
	},
	{
		name: "the only reader writes past a queue", args: "writes=1 reads=0 entry=1.4+listens", reply: "[1 0 ]",
		before: "mode=read u:1=1 40000, u:1#1 40000, >v=2.7+listens@-3 seen@-1 >15000",
		after:  "mode=write u:1:write=1 30000, >v=2.7+listens@-3 seen@-1 >15000",
	},
	{
		name: "one of two readers wants to write", args: "writes=1 reads=0 entry=1.4+listens", reply: "[0 40000 w:1]",
		before: "mode=read u:1=1 w:1=1 40000, u:1#1 40000, w:1#1 40000",
		after:  "mode=read w:1=1 40000, w:1#1 40000, >u=1.4+listens@0 seen@0 >20000",
	},
	{
		name: "downgrade, for readers before a writer", args: "lease=40000 releases=1", reply: "[1 0 ]",
		published: "rw1 v>2.7.0",
		before:    "mode=write u:1:write=1 u:1=1 30000, u:1#1 30000, >v=2.7+reads+listens@-4 seen@-1 >w=8.8+listens@-3 seen@-1 >15000",
		after:     "mode=read u:1=1 v:2=1 40000, u:1#1 40000, v:2#1 20000, >w=8.8+listens@-3 seen@-1 >15000",
	},
	{
		name: "downgrade, for a writer", args: "lease=40000", reply: "[1 0 ]", published: "rw1",
		before: "mode=write u:1:write=1 30000, >w=8.8+listens@-3 seen@-1 >15000",
		after:  "mode=read u:1=1 40000, u:1#1 40000, >w=8.8+listens@-3 seen@-1 >15000",
	},
	{
		name: "reading begins before a MultiLock that reads", args: "entry=1.4+reads+listens", reply: "[1 0 ]", published: "rw0",
		before: ">u=1.3+reads+listens@-4 seen@-1 >x=8.8+reads+reserves@-3 seen@-1 >15000",
		after:  "mode=read u:1=1 30000, u:1#1 30000, >x=8.8+reads+reserves@-3 seen@-1 >15000",
	},
	{
		name: "reading begins before a writer and a MultiLock that reads", args: "entry=1.4+reads+listens", reply: "[1 0 ]",
		before: ">u=1.3+reads+listens@-4 seen@-1 >v=2.7+listens@-3 seen@-1 >x=8.8+reads+reserves@-2 seen@-1 >15000",
		after:  "mode=read u:1=1 30000, u:1#1 30000, >v=2.7+listens@-3 seen@-1 >x=8.8+reads+reserves@-2 seen@-1 >15000",
	},
}}
