package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

var readWriteTables = []table{
	readWriteSetTable,
	{script: scripts.ReadWriteRelease, call: "NAME / owner=u:1 HOLDS RWCHANNEL WAITQUEUE SETTINGS", rows: []row{
		{
			name: "a writer withdraws from a foreign hash", reply: "-1",
			before: "mode=read path=7, >u=1.1+listens@-4 seen@-1 >w=1.1+reads+listens@-3 seen@-1 >15000",
			after:  "mode=read path=7, >w=1.1+reads+listens@-3 seen@-1 >15000",
		},
		{
			name: "a reader with the longest lease", reply: "0", again: "-1",
			before: "mode=read u:1=1 v:1=2 w:1=1 90000, u:1#1 90000, v:1#1 20000, v:1#2 40000, w:1#1 30000",
			after:  "mode=read v:1=2 w:1=1 40000, v:1#1 20000, v:1#2 40000, w:1#1 30000",
		},
		{name: "free", reply: "-1"},
		{
			name: "half foreign, beside a dead reader", reply: "0", again: "-1",
			before: "mode=read path=7 u:1=1 v:1=1 30000, u:1#1 30000", after: "path=7",
		},
		{
			name: "beside an owner with a negative count", reply: "0", again: "-1",
			before: "mode=write u:1:write=1 v:1=-3 30000", after: "v:1=-3",
		},
		{
			name: "half foreign, it stays", reply: "0", again: "-1",
			before: "mode=read path=7 u:1=1 30000, u:1#1 30000", after: "path=7",
		},
		// with a wait queue
		{
			name: "the next writes", reply: "0", again: "-1", published: "v>2.7.0",
			before: "mode=read u:1=1 30000, u:1#1 30000, >v=2.7+listens@-4 seen@-1 >w=8.8+reads+listens@-3 seen@-1 >15000",
			after:  "mode=write v:2:write=1 20000, >w=8.8+reads+listens@-3 seen@-1 >15000",
		},
		{
			name: "the next writes, and wants tokens", reply: "0", again: "-1", published: "v>2.7.0",
			before: "mode=read u:1=1 30000, u:1#1 30000, >v=2.7+tokens3+listens@-4 seen@-1 >15000", after: "mode=write v:2:write=1 20000",
		},
		{
			name: "the next read", reply: "0", again: "-1", published: "v>2.7.0 w>8.8.0",
			before: "mode=write u:1:write=1 30000, >v=2.7+reads+listens@-4 seen@-1 >w=8.8+reads+listens@-3 seen@-1 >15000",
			after:  "mode=read v:2=1 w:8=1 20000, v:2#1 20000, w:8#1 20000",
		},
		{
			name: "a foreign client's turn", listeners: "2-1", reply: "0", again: "-1", published: "rw1",
			before: "mode=write u:1:write=1 30000, >v=2.7+reads+listens@-4 seen@-1 >turns=1 >15000",
			after:  ">v=2.7+reads+listens@-4 seen@-1 >open@5 >15000",
		},
		{
			name: "a foreign client", listeners: "1", reply: "0", again: "-1", published: "rw1",
			before: "mode=write u:1:write=1 30000", after: ">open@5 >6000",
		},
		{
			name: "no foreign client beside ours", listeners: "2-2", reply: "0", again: "-1", published: "rw0",
			before: "mode=read u:1=1 30000, u:1#1 30000",
		},
		{
			name: "a writer leaves the queue before a MultiLock that reads", reply: "-1", again: "-1", published: "rw0 v>2.7.0",
			before: "mode=read w:1=1 40000, w:1#1 40000, >u=1.4+listens@-4 seen@-1 >x=8.8+reads+reserves@-3 seen@-1 >v=2.7+reads+listens@-2 seen@-1 >15000",
			after:  "mode=read v:2=1 w:1=1 40000, v:2#1 20000, w:1#1 40000, >x=8.8+reads+reserves@-3 seen@-1 >15000",
		},
		{
			name: "a queue of another type", reply: "0", again: "-1", published: "rw1",
			before: "mode=write u:1:write=1 30000, waitqueue 'x' 30000", after: "waitqueue 'x' 30000",
		},
	}},
	{script: scripts.ReadWriteRenew, call: "NAME / owner=u:1 lease=60000 HOLDS", rows: []row{
		{
			name: "read twice, a lease is gone", reply: "[1]",
			before: "mode=read u:1=2 30000, u:1#2 5000", after: "mode=read u:1=2 60000, u:1#1 60000, u:1#2 60000",
		},
		{
			name: "read among longer leases", reply: "[1]",
			before: "mode=read u:1=1 v:1=1 90000, u:1#1 30000, v:1#1 90000",
			after:  "mode=read u:1=1 v:1=1 90000, u:1#1 60000, v:1#1 90000",
		},
		{
			name: "read alone, with a longer lease", reply: "[1]",
			before: "mode=read u:1=1 90000, u:1#1 90000", after: "mode=read u:1=1 60000, u:1#1 60000",
		},
		{
			name: "write and read, with a longer lease", reply: "[1]",
			before: "mode=write u:1:write=1 u:1=1 90000, u:1#1 90000", after: "mode=write u:1:write=1 u:1=1 60000, u:1#1 60000",
		},
		{name: "without an end", before: "mode=write u:1:write=2", reply: "[1]", after: "mode=write u:1:write=2 60000"},
		{name: "gone", reply: "[0]"},
	}},
	{script: scripts.ReadWriteYield, call: "NAME / owner=u:1 lease=30000 forced=0 HOLDS RWCHANNEL WAITQUEUE SETTINGS entry=-", rows: []row{
		{
			name: "a writer yields a foreign hash", reply: "[-1 0]",
			before: "mode=read path=7, >u=1.1+listens@-4 seen@-1 >w=1.1+reads+listens@-3 seen@-1 >15000",
			after:  "mode=read path=7, >w=1.1+reads+listens@-3 seen@-1 >15000",
		},
		{
			name: "the hold has expired", reply: "[-1 0]", published: "v>2.7.0",
			before: ">v=2.7+reads+listens@-4 seen@-1 >15000", after: "mode=read v:2=1 20000, v:2#1 20000",
		},
		{
			name: "only itself waits", listeners: "1-1", reply: "[0 0]",
			before: "mode=read u:1=2 20000, u:1#1 20000, u:1#2 20000", after: "mode=read u:1=1 30000, u:1#1 30000",
		},
		{
			name: "among longer readers", reply: "[0 0]",
			before: "mode=read u:1=1 v:1=1 40000, u:1#1 20000, v:1#1 40000",
			after:  "mode=read u:1=1 v:1=1 40000, u:1#1 30000, v:1#1 40000",
		},
		{
			name: "others wait, others read", listeners: "1", reply: "[1 0]", again: "[-1 0]",
			before: "mode=read u:1=1 v:1=1 90000, u:1#1 90000, v:1#1 40000", after: "mode=read v:1=1 40000, v:1#1 40000",
		},
		{name: "other", before: "mode=write v:1:write=1 40000", listeners: "1", args: "forced=1", reply: "[-1 0]", after: same},
		// with a wait queue or an entry
		{
			name: "to readers", args: "entry=2.7+listens", reply: "[1 0]", again: "[-1 0]", published: "v>2.7.0 w>8.8.0",
			before: "mode=write u:1:write=1 20000, >v=2.7+reads+listens@-4 seen@-1 >w=8.8+reads+listens@-3 seen@-1 >15000",
			after:  "mode=read v:2=1 w:8=1 20000, v:2#1 20000, w:8#1 20000, >u=2.7+listens@0 seen@0 >20000",
		},
		{
			name: "among readers", args: "entry=2.7+reads+listens", reply: "[1 0]", again: "[-1 0]",
			before: "mode=read u:1=1 w:1=1 40000, u:1#1 40000, w:1#1 40000, >v=2.7+listens@-4 seen@-1 >15000",
			after:  "mode=read w:1=1 40000, w:1#1 40000, >v=2.7+listens@-4 seen@-1 >u=2.7+reads+listens@0 seen@0 >20000",
		},
	}},
	{script: scripts.ReadWriteForceRelease, call: "NAME / HOLDS mode=read RWCHANNEL owners...", rows: []row{
		{
			name: "readers", args: "owners=u:1,v:1", reply: "1", again: "0", published: "rw0",
			before: "mode=read u:1=2 v:1=1 40000, u:1#1 20000, u:1#2 30000, v:1#1 40000",
		},
		{
			name: "one of the readers", args: "owners=u:1,w:1", reply: "1", again: "0",
			before: "mode=read u:1=2 v:1=1 40000, u:1#1 20000, u:1#2 40000, v:1#1 30000",
			after:  "mode=read v:1=1 30000, v:1#1 30000",
		},
		{name: "a plain lock", before: "v:1=1 40000", args: "owners=v:1", reply: "1", again: "0", published: "rw0 v:asked>1.0.0"},
		{name: "foreign", before: "mode=read path=7", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "mode=write path=7 v:1:write=1 30000", args: "mode=write owners=v:1", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.ReadWriteInspect, call: "NAME / RWCHANNEL", rows: []row{
		{name: "read", before: "mode=read u:1=2 40000", listeners: "2", reply: "[40000 2 1 u:1 2]", after: same},
		{name: "written", before: "mode=write u:1:write=3", reply: "[-1 0 1 u:1:write 3]", after: same},
		{name: "written and read", before: "mode=write u:1:write=3 u:1=2", reply: "[-1 0 2 u:1:write u:1 3]", after: same},
		{name: "read and written", before: "u:1=2 u:1:write=3 mode=write", reply: "[-1 0 2 u:1:write u:1 3]", after: "mode=write u:1:write=3 u:1=2"},
		{name: "many", before: "mode=read u:1=7 u:2=7 u:3=7", reply: "[-1 0 3 u:1 u:2 u:3 7]", after: same},
		{name: "free", listeners: "1", reply: "[-2 1 0  ]"},
		{name: "wrong type", before: "'x' 30000", reply: "-WRONGTYPE", after: same},
		{name: "foreign", before: "mode=read path=7", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "mode=read path=7 u:1=1", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.CountWaiters, call: "NAME / client=u WAITQUEUE SETTINGS HOLDS", rows: []row{
		{name: "not yet itself", reply: "[0]"},
		{
			name: "in the queue", reply: "[2]",
			before: ">x=1.1+listens@-5 seen@-1 >v=1.1+reads+listens@-4 seen@-1 >u=1.1+reads+listens@-3 seen@-1 >w=1.1+reads@-2 seen@-1 >15000",
			after:  ">v=1.1+reads+listens@-4 seen@-1 >u=1.1+reads+listens@-3 seen@-1 >w=1.1+reads@-2 seen@-1 >15000",
		},
	}},
}
