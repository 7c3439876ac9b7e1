package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

// The signs in these rows: see state_test.go.
var readWriteTables = []table{
	readWriteSetTable,
	{script: scripts.ReadWriteRelease, call: "NAME / owner=u:1 LEASES RWCHANNEL WAITQUEUE SETTINGS", rows: []row{
		{
			name: "a writer withdraws from a foreign hash", reply: "-1",
			before: "mode=read path=7, waitqueue u=1.1+listens@-4s w=1.1+reads+listens@-3s 15s",
			after:  "mode=read path=7, waitqueue w=1.1+reads+listens@-3s 15s",
		},
		{
			name: "a reader with the longest lease", reply: "0", again: "-1",
			before: "mode=read u:1=1 v:1=2 w:1=1 90s, leases u:1#1=90s v:1#1=20s v:1#2=40s w:1#1=30s",
			after:  "mode=read v:1=2 w:1=1 40s, leases v:1#1=20s v:1#2=40s w:1#1=30s",
		},
		{name: "free", reply: "-1"},
		{
			name: "half foreign, next to a dead reader", reply: "0", again: "-1",
			before: "mode=read path=7 u:1=1 v:1=1 30s, leases u:1#1=30s", after: "path=7",
		},
		{
			name: "next to an owner with a negative count", reply: "0", again: "-1",
			before: "mode=write u:1:write=1 v:1=-3 30s", after: "v:1=-3",
		},
		{
			name: "half foreign, it stays", reply: "0", again: "-1",
			before: "mode=read path=7 u:1=1 30s, leases u:1#1=30s", after: "path=7",
		},
		// with a wait queue
		{
			name: "the next writes", reply: "0", again: "-1", published: "turn:v=2.7.0",
			before: "mode=read u:1=1 30s, leases u:1#1=30s, waitqueue v=2.7+listens@-4s w=8.8+reads+listens@-3s 15s",
			after:  "mode=write v:2:write=1 20s, waitqueue w=8.8+reads+listens@-3s 15s",
		},
		{
			name: "the next writes, and wants tokens", reply: "0", again: "-1", published: "turn:v=2.7.0",
			before: "mode=read u:1=1 30s, leases u:1#1=30s, waitqueue v=2.7+tokens3+listens@-4s 15s", after: "mode=write v:2:write=1 20s",
		},
		{
			name: "the next read", reply: "0", again: "-1", published: "turn:v=2.7.0 turn:w=8.8.0",
			before: "mode=write u:1:write=1 30s, waitqueue v=2.7+reads+listens@-4s w=8.8+reads+listens@-3s 15s",
			after:  "mode=read v:2=1 w:8=1 20s, leases v:2#1=20s w:8#1=20s",
		},
		{
			name: "a foreign client's turn", listeners: "ours foreign", reply: "0", again: "-1", published: "rwchannel=1",
			before: "mode=write u:1:write=1 30s, waitqueue v=2.7+reads+listens@-4s turns=1 15s",
			after:  "waitqueue v=2.7+reads+listens@-4s open@5s 15s",
		},
		{
			name: "a foreign client", listeners: "foreign", reply: "0", again: "-1", published: "rwchannel=1",
			before: "mode=write u:1:write=1 30s", after: "waitqueue open@5s 6s",
		},
		{
			name: "no foreign client besides ours", listeners: "ours ours", reply: "0", again: "-1", published: "rwchannel=0",
			before: "mode=read u:1=1 30s, leases u:1#1=30s",
		},
		{
			name: "a writer leaves the queue before a MultiLock that reads", reply: "-1", again: "-1", published: "rwchannel=0 turn:v=2.7.0",
			before: "mode=read w:1=1 40s, leases w:1#1=40s, waitqueue u=1.4+listens@-4s x=8.8+reads+reserves@-3s v=2.7+reads+listens@-2s 15s",
			after:  "mode=read v:2=1 w:1=1 40s, leases v:2#1=20s w:1#1=40s, waitqueue x=8.8+reads+reserves@-3s 15s",
		},
		{
			name: "a queue of another type", reply: "0", again: "-1", published: "rwchannel=1",
			before: "mode=write u:1:write=1 30s, waitqueue 'x' 30s", after: "waitqueue 'x' 30s",
		},
	}},
	{script: scripts.ReadWriteRenew, call: "NAME / owner=u:1 lease=60000 LEASES", rows: []row{
		{
			name: "read twice, a lease is gone", reply: "[1]",
			before: "mode=read u:1=2 30s, leases u:1#2=5s", after: "mode=read u:1=2 60s, leases u:1#1=60s u:1#2=60s",
		},
		{
			name: "read among longer leases", reply: "[1]",
			before: "mode=read u:1=1 v:1=1 90s, leases u:1#1=30s v:1#1=90s",
			after:  "mode=read u:1=1 v:1=1 90s, leases u:1#1=60s v:1#1=90s",
		},
		{
			name: "read alone, with a longer lease", reply: "[1]",
			before: "mode=read u:1=1 90s, leases u:1#1=90s", after: "mode=read u:1=1 60s, leases u:1#1=60s",
		},
		{
			name: "write and read, with a longer lease", reply: "[1]",
			before: "mode=write u:1:write=1 u:1=1 90s, leases u:1#1=90s", after: "mode=write u:1:write=1 u:1=1 60s, leases u:1#1=60s",
		},
		{name: "without an end", before: "mode=write u:1:write=2", reply: "[1]", after: "mode=write u:1:write=2 60s"},
		{name: "gone", reply: "[0]"},
	}},
	{script: scripts.ReadWriteYield, call: "NAME / owner=u:1 lease=30000 forced=0 LEASES RWCHANNEL WAITQUEUE SETTINGS entry=-", rows: []row{
		{
			name: "a writer yields a foreign hash", reply: "[-1 0]",
			before: "mode=read path=7, waitqueue u=1.1+listens@-4s w=1.1+reads+listens@-3s 15s",
			after:  "mode=read path=7, waitqueue w=1.1+reads+listens@-3s 15s",
		},
		{
			name: "the hold has expired", reply: "[-1 0]", published: "turn:v=2.7.0",
			before: "waitqueue v=2.7+reads+listens@-4s 15s", after: "mode=read v:2=1 20s, leases v:2#1=20s",
		},
		{
			name: "only itself waits", listeners: "ours", reply: "[0 0]",
			before: "mode=read u:1=2 20s, leases u:1#1=20s u:1#2=20s", after: "mode=read u:1=1 30s, leases u:1#1=30s",
		},
		{
			name: "among longer readers", reply: "[0 0]",
			before: "mode=read u:1=1 v:1=1 40s, leases u:1#1=20s v:1#1=40s",
			after:  "mode=read u:1=1 v:1=1 40s, leases u:1#1=30s v:1#1=40s",
		},
		{
			name: "others wait, others read", listeners: "foreign", reply: "[1 0]", again: "[-1 0]",
			before: "mode=read u:1=1 v:1=1 90s, leases u:1#1=90s v:1#1=40s", after: "mode=read v:1=1 40s, leases v:1#1=40s",
		},
		{name: "other", before: "mode=write v:1:write=1 40s", listeners: "foreign", args: "forced=1", reply: "[-1 0]", after: same},
		// with a wait queue or an entry
		{
			name: "to readers", args: "entry=2.7+listens", reply: "[1 0]", again: "[-1 0]", published: "turn:v=2.7.0 turn:w=8.8.0",
			before: "mode=write u:1:write=1 20s, waitqueue v=2.7+reads+listens@-4s w=8.8+reads+listens@-3s 15s",
			after:  "mode=read v:2=1 w:8=1 20s, leases v:2#1=20s w:8#1=20s, waitqueue u=2.7+listens@0s seen@0s 20s",
		},
		{
			name: "among readers", args: "entry=2.7+reads+listens", reply: "[1 0]", again: "[-1 0]",
			before: "mode=read u:1=1 w:1=1 40s, leases u:1#1=40s w:1#1=40s, waitqueue v=2.7+listens@-4s 15s",
			after:  "mode=read w:1=1 40s, leases w:1#1=40s, waitqueue v=2.7+listens@-4s u=2.7+reads+listens@0s seen@0s 20s",
		},
	}},
	{script: scripts.ReadWriteForceRelease, call: "NAME / LEASES mode=read RWCHANNEL owners...", rows: []row{
		{
			name: "readers", args: "owners=u:1,v:1", reply: "1", again: "0", published: "rwchannel=0",
			before: "mode=read u:1=2 v:1=1 40s, leases u:1#1=20s u:1#2=30s v:1#1=40s",
		},
		{
			name: "one of the readers", args: "owners=u:1,w:1", reply: "1", again: "0",
			before: "mode=read u:1=2 v:1=1 40s, leases u:1#1=20s u:1#2=40s v:1#1=30s",
			after:  "mode=read v:1=1 30s, leases v:1#1=30s",
		},
		{name: "a plain lock", before: "v:1=1 40s", args: "owners=v:1", reply: "1", again: "0", published: "rwchannel=0 turn:v:asked=1.0.0"},
		{name: "foreign", before: "mode=read path=7", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "mode=write path=7 v:1:write=1 30s", args: "mode=write owners=v:1", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.ReadWriteInspect, call: "NAME / RWCHANNEL", rows: []row{
		{name: "read", before: "mode=read u:1=2 40s", listeners: "foreign foreign", reply: "[40000 2 1 u:1 2]", after: same},
		{name: "written", before: "mode=write u:1:write=3", reply: "[-1 0 1 u:1:write 3]", after: same},
		{name: "written and read", before: "mode=write u:1:write=3 u:1=2", reply: "[-1 0 2 u:1:write u:1 3]", after: same},
		{name: "read and written", before: "u:1=2 u:1:write=3 mode=write", reply: "[-1 0 2 u:1:write u:1 3]", after: "mode=write u:1:write=3 u:1=2"},
		{name: "many", before: "mode=read u:1=7 u:2=7 u:3=7", reply: "[-1 0 3 u:1 u:2 u:3 7]", after: same},
		{name: "free", listeners: "foreign", reply: "[-2 1 0  ]"},
		{name: "wrong type", before: "'x' 30s", reply: "-WRONGTYPE", after: same},
		{name: "foreign", before: "mode=read path=7", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "mode=read path=7 u:1=1", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.CountWaiters, call: "NAME / client=u WAITQUEUE SETTINGS LEASES", rows: []row{
		{name: "not yet itself", reply: "[0]"},
		{
			name: "in the queue", reply: "[2]",
			before: "waitqueue x=1.1+listens@-5s v=1.1+reads+listens@-4s u=1.1+reads+listens@-3s w=1.1+reads@-2s 15s",
			after:  "waitqueue v=1.1+reads+listens@-4s u=1.1+reads+listens@-3s w=1.1+reads@-2s 15s",
		},
	}},
}
