package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

var plainTables = []table{
	{script: scripts.Release, call: "NAME / owner=u:1 count=0 lease=60000 CHANNEL WAITQUEUE SETTINGS TOKENS", rows: []row{
		{
			name: "the hold has expired", listeners: "1-1 v", reply: "-1", published: "v>2.7.0",
			before: ">v=2.7+listens@-4 seen@-1 >15000", after: "v:2=1 20000",
		},
		{name: "own, wholly at once", before: "a=3 30000", args: "owner=a", reply: "0", again: "-1", published: "0"},
		{name: "own, without a TTL", before: "a=1", args: "owner=a", reply: "0", again: "-1", published: "0"},
		{name: "own, half foreign", before: "a=1 email=7 30000", args: "owner=a", reply: "0", again: "-1", after: "email=7", published: "0"},
		{name: "own, beside a foreign field like an owner", before: "u:1=1 v:57=tiger 30000", reply: "0", again: "-1", after: "v:57=tiger", published: "0"},
		{
			name: "own, beside another owner", args: "owner=a", reply: "0", again: "-1", published: "0",
			before: "a=1 email=7 b=1 30000", after: "b=1 email=7 30000",
		},
		{name: "own, with a mode", before: "a=1 mode=read 30000", args: "owner=a", reply: "0", again: "-1", after: "mode=read 30000", published: "0"},
		{name: "own, one less without a TTL", before: "a=3", args: "owner=a count=2", reply: "2", after: "a=2 60000"},
		{name: "other, one less", before: "b=1 30000", args: "owner=a count=1", reply: "-1", after: same},
		{name: "free", args: "owner=a", reply: "-1"},
		{name: "wrong type", before: "'x'", args: "owner=a", reply: "-WRONGTYPE", after: same},
		{name: "wrong type, one less", before: "'x' 30000", args: "owner=a count=1", reply: "-WRONGTYPE", after: same},
		// with a wait queue
		{
			name: "none listens", publishedAgain: "0", reply: "0", again: "-1", published: "0",
			before: "u:1=1 30000, >v=2.7@-3 seen@-1 >15000", after: ">v=2.7@-3 seen@-1 >15000",
		},
		{name: "all have gone", before: "u:1=1 30000, >x=2.7+listens@-3 seen@-1 >15000", reply: "0", again: "-1", published: "0"},
		{
			name: "the only one", reply: "0", again: "-1", published: "v>2.7.0",
			before: "u:1=1 30000, >v=2.7+listens@-2 seen@-1 >15000", after: "v:2=1 20000",
		},
		{
			name: "the only one, half foreign", reply: "0", again: "-1", published: "0",
			before: "email=7 u:1=1 30000, >v=2.7+listens@-2 seen@-1 >15000",
			after:  "email=7, >v=2.7+listens@-2 seen@-1 >15000",
		},
		{
			name: "the next, half foreign", reply: "0", again: "-1", published: "0",
			before: "email=7 u:1=1 30000, >v=2.7+listens@-2 seen@-1 >w=8.8+listens@-1 seen@-1 >15000",
			after:  "email=7, >v=2.7+listens@-2 seen@-1 >w=8.8+listens@-1 seen@-1 >15000",
		},
		{
			name: "the only one, of more than a day", reply: "0", again: "-1", published: "0",
			before: "u:1=1 30000, >v=86400001:2.7+listens@-2 seen@-1 >15000",
		},
		{
			name: "the only one, dead", reply: "0", again: "-1", published: "0",
			before: "u:1=1 30000, >v=2.7+listens@-30 seen@-20 >15000",
		},
		{
			name: "the only one, not yet dead", reply: "0", again: "-1", published: "v>2.7.0",
			before: "u:1=1 30000, >v=2.7+listens@-30 seen@-19 >15000", after: "v:2=1 20000",
		},
		{
			name: "before a foreign client", listeners: "3-2", reply: "0", again: "-1", published: "v>2.7.0",
			before: "u:1=1 30000, >v=2.7+listens@-2 seen@-1 >15000", after: "v:2=1 20000, >turns=1 >6000",
		},
		{
			name: "the next", reply: "0", again: "-1", published: "w>2.7.0",
			before: "u:1=1 30000, >x=9.9+listens@-3 seen@-1 >w=2.7+listens@-2 seen@-1 >v=8.8+listens@-1 seen@-1 >15000",
			after:  "w:2=1 20000, >v=8.8+listens@-1 seen@-1 >15000",
		},
		{
			name: "the next, with a TTL of its own", reply: "0", again: "-1", published: "w>2.7.0",
			before: "u:1=1 30000, >w=40000:2.7+listens@-90 seen@-30 >y=8.8+listens@-1 seen@-1 >15000",
			after:  "w:2=1 40000, >y=8.8+listens@-1 seen@-1 >15000",
		},
		{
			name: "the next, beside an entry of its own", reply: "0", again: "-1", published: "v>2.7.0",
			before: "u:1=1 30000, >v=2.7+listens@-2 seen@-1 >u=1.3+listens@-1 seen@-1 >15000", after: "v:2=1 20000",
		},
		{
			name: "the next, before a longer TTL", reply: "0", again: "-1", published: "w>2.7.0",
			before: "u:1=1 30000, >w=2.7+listens@-90 seen@-1 >v=40000:8.8+listens@-1 seen@-1 >15000",
			after:  "w:2=1 20000, >v=40000:8.8+listens@-1 seen@-1 >15000",
		},
		{
			name: "the next, with tokens", reply: "0", again: "-1", published: "v>2.7.10",
			before: "u:1=1 30000, >v=2.7+tokens3+listens@-2 seen@-1 >15000 /'7' 60000", after: "v:2=1 20000 /'10'",
		},
		{
			name: "the next, a counter of no kind", reply: "0", again: "-1", published: "v>2.7.0",
			before: "u:1=1 30000, >v=2.7+tokens3+listens@-2 seen@-1 >15000 /a=1", after: "v:2=1 20000 /a=1",
		},
		{
			name: "the next, no tokens are left", reply: "0", again: "-1", published: "v>2.7.0",
			before: "u:1=1 30000, >v=2.7+tokens3+listens@-2 seen@-1 >15000 /'9007199254740989'",
			after:  "v:2=1 20000 /'9007199254740989'",
		},
		{
			name: "the next, the last tokens", reply: "0", again: "-1", published: "v>2.7.9007199254740991",
			before: "u:1=1 30000, >v=2.7+tokens3+listens@-2 seen@-1 >15000 /'9007199254740988'",
			after:  "v:2=1 20000 /'9007199254740991'",
		},
		{
			name: "the next is the same client", reply: "0", again: "-1", published: "u>2.7.0",
			before: "u:1=1 30000, >u=2.7+listens@-2 seen@-1 >15000", after: "u:2=1 20000",
		},
		{
			name: "leaves the queue", args: "owner=u:3", reply: "0", again: "-1", published: "0",
			before: "u:3=1 30000, >u=2.7+listens@-2 seen@-1 >15000",
		},
		{
			name: "leaves the queue without the lock", args: "owner=u:2", reply: "-1",
			before: "w:1=1 30000, >u=2.7+listens@-2 seen@-1 >v=8.8+listens@-1 seen@-1 >15000",
			after:  "w:1=1 30000, >v=8.8+listens@-1 seen@-1 >15000",
		},
		{name: "a late one", before: "w:1=1 30000, >u=2.7+listens@-2 seen@-1 >15000", reply: "-1", after: same},
		{
			name: "one less", args: "count=1", reply: "1",
			before: "u:1=2 30000, >v=2.7+listens@-2 seen@-1 >15000", after: "u:1=1 60000, >v=2.7+listens@-2 seen@-1 >15000",
		},
		{
			name: "kept for a MultiLock", publishedAgain: "0", reply: "0", again: "-1", published: "0",
			before: "u:1=1 30000, >v=2.7+reserves@-3 seen@-1 >w=8.8+listens@-2 seen@-1 >15000",
			after:  ">v=2.7+kept0@-3 seen@-1 >w=8.8+listens@-2 seen@-1 >15000",
		},
		{
			name: "a MultiLock withdraws", args: "owner=v:2", reply: "-1", published: "w>8.8.0",
			before: ">v=2.7+kept-1@-3 seen@-1 >w=8.8+listens@-2 seen@-1 >15000", after: "w:8=1 20000",
		},
		{
			name: "a MultiLock withdraws for another", publishedAgain: "0", args: "owner=v:2", reply: "-1", published: "0",
			before: ">v=2.7+kept-1@-3 seen@-1 >w=8.8+reserves@-2 seen@-1 >15000", after: ">w=8.8+kept0@-2 seen@-1 >15000",
		},
		{
			name: "a MultiLock behind withdraws", args: "owner=v:2", reply: "-1",
			before: "w:1=1 30000, >v=2.7+reserves@-3 seen@-1 >w=8.8+listens@-2 seen@-1 >15000",
			after:  "w:1=1 30000, >w=8.8+listens@-2 seen@-1 >15000",
		},
		{
			name: "the next, before a MultiLock", reply: "0", again: "-1", published: "w>8.8.0",
			before: "u:1=1 30000, >w=8.8+listens@-3 seen@-1 >v=2.7+reserves@-2 seen@-1 >15000",
			after:  "w:8=1 20000, >v=2.7+reserves@-2 seen@-1 >15000",
		},
		{
			name: "one foreign client of two, first turn", listeners: "3-2", reply: "0", again: "-1", published: "v>2.7.0",
			before: "u:1=1 30000, >v=2.7+listens@-3 seen@-1 >w=8.8+listens@-2 seen@-1 >15000",
			after:  "v:2=1 20000, >w=8.8+listens@-2 seen@-1 >turns=1 >15000",
		},
		{
			name: "one foreign client of two, third turn", listeners: "3-2", reply: "0", again: "-1", published: "0",
			before: "u:1=1 30000, >v=2.7+listens@-3 seen@-1 >w=8.8+listens@-2 seen@-1 >turns=2 >15000",
			after:  ">v=2.7+listens@-3 seen@-1 >w=8.8+listens@-2 seen@-1 >open@5 >15000",
		},
		{
			name: "a foreign client, all others gone", listeners: "1", reply: "0", again: "-1", published: "0",
			before: "u:1=1 30000, >x=2.7+listens@-3 seen@-1 >turns=2 >15000", after: ">turns=2 >6000",
		},
		{
			name: "a queue of another type", reply: "0", again: "-1", published: "0",
			before: "u:1=1 30000, waitqueue 'x' 30000", after: "waitqueue 'x' 30000",
		},
		{
			name: "an order of another type", reply: "0", again: "-1", published: "0",
			before: "u:1=1 30000, >v=2.7+listens@-3 seen@-1 >15000 /waitorder 'x' 30000", after: ">v=2.7+listens@-3 seen@-1 >15000 /waitorder 'x' 30000",
		},
	}},
	{script: scripts.Renew, call: "NAME / owner=a lease=60000", rows: []row{
		{name: "own", before: "a=1 30000", reply: "[1]", after: "a=1 60000"},
		{name: "own, without a TTL", before: "a=1", reply: "[1]", after: "a=1 60000"},
		{name: "gone", reply: "[0]"},
		{name: "other", before: "b=1 30000", reply: "[-1]", after: same},
		{name: "wrong type", before: "'x' 30000", reply: "[-1]", after: same},
		{name: "own, behind the bad ones", before: "a=1 30000", reply: "[1]", after: "a=1 60000"},
	}},
	{script: scripts.Keep, call: "NAME / owner=u:1 keeper=u:01 rest=3000", rows: []row{
		{name: "own", before: "u:1=2 30000", reply: "1", after: "u:01=1 3000"},
		{name: "kept before, for longer", before: "u:01=1 30000", reply: "1", after: "u:01=1 3000"},
		{name: "kept before, until earlier", before: "u:01=1 2000", reply: "1", after: same},
		{name: "gone", reply: "0"},
		{name: "other", before: "b=1 30000", reply: "-1", after: same},
		{name: "own, half foreign", before: "u:1=1 email=7 30000", reply: "1", again: "-1", after: "email=7"},
		{name: "wrong type", before: "'x'", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.Yield, call: "NAME / owner=u:1 lease=60000 forced=0 CHANNEL WAITQUEUE SETTINGS TOKENS entry=-", rows: []row{
		{
			name: "the hold has expired", listeners: "1-1 v", reply: "[-1 0]", published: "v>2.7.0",
			before: ">v=2.7+listens@-4 seen@-1 >15000", after: "v:2=1 20000",
		},
		{
			name: "the hold has expired before a MultiLock", reply: "[-1 0]", published: "0", publishedAgain: "0",
			before: ">v=2.7+reserves@-3 seen@-1 >15000", after: ">v=2.7+kept0@-3 seen@-1 >15000",
		},
		{name: "an order of another type", before: "u:1=1 30000 /waitorder 'x' 30000", args: "forced=1 entry=2.4+listens", reply: "-WRONGTYPE", after: same},
		{name: "all listeners use the queue", before: "a=1 30000", listeners: "2-2", args: "owner=a", reply: "[0 0]", after: "a=1 60000"},
		{name: "the owner not yet", before: "a=1 30000", args: "owner=a", reply: "[0 0]", after: "a=1 60000"},
		{name: "without a TTL", before: "a=1", args: "owner=a", reply: "[0 0]", after: "a=1 60000"},
		{
			name: "others", args: "owner=a", listeners: "2", reply: "[1 1]", again: "[-1 0]", published: "0",
			before: "a=1 30000", after: ">open@5 >6000",
		},
		{
			name: "half foreign", args: "owner=a", listeners: "2", reply: "[1 1]", again: "[-1 0]", published: "0",
			before: "a=1 email=7 30000", after: "email=7, >open@5 >6000",
		},
		{
			name: "opened for none", args: "owner=a forced=1", reply: "[1 1]", again: "[-1 0]", published: "0",
			before: "a=1 30000", after: ">open@5 >6000",
		},
		{name: "other", before: "b=1 30000", listeners: "2", args: "owner=a forced=1", reply: "[-1 0]", after: same},
		{name: "wrong type", before: "'x' 30000", listeners: "2", args: "owner=a forced=1", reply: "-WRONGTYPE", after: same},
		// with a wait queue or an entry
		{name: "none, for an entry", before: "u:1=1 30000", args: "entry=2.7+listens", reply: "[0 0]", after: "u:1=1 60000"},
		{
			name: "only its own entry", args: "entry=2.7+listens", listeners: "1-1", reply: "[0 0]",
			before: "u:1=1 30000, >u=2.7+listens@-2 seen@-1 >15000", after: "u:1=1 60000, >u=2.7+listens@-2 seen@-1 >15000",
		},
		{
			name: "to the next", args: "entry=2.7+listens", reply: "[1 0]", again: "[-1 0]", published: "v>2.7.0",
			before: "u:1=1 30000, >x=9.9+listens@-3 seen@-1 >v=2.7+listens@-2 seen@-1 >w=8.8+listens@-1 seen@-1 >15000",
			after:  "v:2=1 20000, >w=8.8+listens@-1 seen@-1 >u=2.7+listens@0 seen@0 >20000",
		},
		{
			name: "to the next, not to itself", args: "entry=2.7+listens", reply: "[1 0]", again: "[-1 0]", published: "v>2.7.0",
			before: "u:1=1 30000, >u=2.6+listens@-3 seen@-1 >v=2.7+listens@-2 seen@-1 >15000",
			after:  "v:2=1 20000, >u=2.7+listens@0 seen@0 >20000",
		},
		{
			name: "to the next, with no entry", reply: "[1 0]", again: "[-1 0]", published: "v>2.7.0",
			before: "u:1=1 30000, >v=2.7+listens@-2 seen@-1 >15000", after: "v:2=1 20000",
		},
		{
			name: "to a foreign client, all others gone", args: "entry=2.7+listens", listeners: "1", reply: "[1 1]",
			again: "[-1 0]", published: "0",
			before: "u:1=1 30000, >x=2.7+listens@-3 seen@-1 >15000", after: ">u=2.7+listens@0 seen@0 >open@5 >20000",
		},
		{
			name: "to a foreign client", args: "entry=2.7+listens", listeners: "2", reply: "[1 1]", again: "[-1 0]",
			published: "0",
			before:    "u:1=1 30000", after: ">u=2.7+listens@0 seen@0 >open@5 >20000",
		},
		{
			name: "to the queue before a foreign client", args: "entry=2.7+listens", listeners: "3-2", reply: "[1 0]",
			again: "[-1 0]", published: "v>2.7.0",
			before: "u:1=1 30000, >v=2.7+listens@-3 seen@-1 >15000",
			after:  "v:2=1 20000, >u=2.7+listens@0 seen@0 >turns=1 >20000",
		},
		{
			name: "to a foreign client after the queue", args: "entry=2.7+listens", listeners: "3-2", reply: "[1 1]",
			again: "[-1 0]", published: "0",
			before: "u:1=1 30000, >v=2.7+listens@-3 seen@-1 >turns=1 >15000",
			after:  ">v=2.7+listens@-3 seen@-1 >u=2.7+listens@0 seen@0 >open@5 >20000",
		},
		{
			name: "forced", args: "forced=1 entry=2.7+listens", reply: "[1 1]", again: "[-1 0]", published: "0",
			before: "u:1=1 30000, >v=2.7+listens@-3 seen@-1 >turns=1 >15000",
			after:  ">v=2.7+listens@-3 seen@-1 >u=2.7+listens@0 seen@0 >open@5 >20000",
		},
		{
			name: "forced, to none", args: "forced=1 entry=2.7+listens", reply: "[1 1]", again: "[-1 0]", published: "0",
			before: "u:1=1 30000", after: ">u=2.7+listens@0 seen@0 >open@5 >20000",
		},
	}},
	{script: scripts.ForceRelease, call: "NAME / CHANNEL owners...", rows: []row{
		{name: "held without a TTL", before: "a=1", args: "owners=a", reply: "1", again: "0", published: "0 00000061-0000-4000-8000-000000000000:asked>1.0.0"},
		{name: "held by one of several", before: "b=1 30000", args: "owners=a,b", reply: "1", again: "0", published: "0 00000062-0000-4000-8000-000000000000:asked>1.0.0"},
		{name: "held by another since", before: "b=1 30000", args: "owners=a", reply: "0", after: same},
		{name: "by another term since", before: "u:2=1 30000", args: "owners=u:1", reply: "0", after: same},
		{name: "none is named", before: "a=1", reply: "0", after: same},
		{name: "free", args: "owners=a", reply: "0"},
		{name: "no owner is named", before: "a=1 mode=read", args: "owners=mode", reply: "0", after: same},
		{name: "a read/write lock", before: "mode=read u:1=1", args: "owners=u:1", reply: "1", again: "0", published: "0 u:asked>1.0.0"},
		{name: "a writer", before: "mode=write u:1:write=1", args: "owners=u:1", reply: "1", again: "0", published: "0"},
		{
			name: "of two readers, one", args: "owners=u:1", reply: "1", again: "0", published: "0 u:asked>1.0.0",
			before: "mode=read u:1=1 v:1=1", after: "mode=read v:1=1",
		},
		{name: "wrong type", before: "'x' 30000", args: "owners=a", reply: "-WRONGTYPE", after: same},
		{name: "foreign", before: "email=7", args: "owners=a", reply: "-WRONGTYPE", after: same},
		{name: "foreign, named", before: "email=7", args: "owners=email", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "a=1 email=7 30000", args: "owners=a", reply: "-WRONGTYPE", after: same},
		{name: "no hold count", before: "a=x", args: "owners=a", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.Inspect, call: "NAME / CHANNEL", rows: []row{
		{name: "held", before: "a=2 30000", reply: "[30000 0 a 2]", after: same},
		{name: "held without a TTL", before: "a=1", reply: "[-1 0 a 1]", after: same},
		{name: "waited for", before: "a=1 30000", listeners: "2", reply: "[30000 2 a 1]", after: same},
		{name: "free", reply: "[-2 0  ]"},
		{name: "wrong type", before: "'x' 30000", reply: "-WRONGTYPE", after: same},
		{name: "foreign", before: "email=7", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "a=2 email=7", reply: "-WRONGTYPE", after: same},
	}},
}
