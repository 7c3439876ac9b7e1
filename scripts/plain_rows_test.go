package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

// These are the scripts of a plain lock. See row in table_test.go for an example, part by part, and state_test.go for the
// words of before and after.

var plainTables = []table{
	{script: scripts.Release, call: "NAME / owner=u:1 count=0 lease=60000 CHANNEL WAITQUEUE SETTINGS TOKENS", rows: []row{
		{name: "own, beside a foreign field like an owner", before: "u:1=1 v:57=tiger 30000", reply: "0", again: "-1", after: "v:57=tiger", published: "0"},
		{name: "own, one less without a TTL", before: "a=3", args: "owner=a count=2", reply: "2", after: "a=2 60000"},
		{name: "other, one less", before: "b=1 30000", args: "owner=a count=1", reply: "-1", after: same},
		// with a wait queue
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
			name: "the only one, of more than a day", reply: "0", again: "-1", published: "0",
			before: "u:1=1 30000, >v=86400001:2.7+listens@-2 seen@-1 >15000",
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
			name: "the next, with tokens", reply: "0", again: "-1", published: "v>2.7.10",
			before: "u:1=1 30000, >v=2.7+tokens3+listens@-2 seen@-1 >15000 /'7' 60000", after: "v:2=1 20000 /'10'",
		},
		{
			name: "the next, a counter of no kind", reply: "0", again: "-1", published: "v>2.7.0",
			before: "u:1=1 30000, >v=2.7+tokens3+listens@-2 seen@-1 >15000 /a=1 60000", after: "v:2=1 20000 /a=1 60000",
		},
		{
			name: "the next, no tokens are left", reply: "0", again: "-1", published: "v>2.7.0",
			before: "u:1=1 30000, >v=2.7+tokens3+listens@-2 seen@-1 >15000 /'9007199254740989'",
			after:  "v:2=1 20000 /'9007199254740989'",
		},
		{
			name: "one foreign client of two, third turn", listeners: "3-2", reply: "0", again: "-1", published: "0",
			before: "u:1=1 30000, >v=2.7+listens@-3 seen@-1 >w=8.8+listens@-2 seen@-1 >turns=2 >15000",
			after:  ">v=2.7+listens@-3 seen@-1 >w=8.8+listens@-2 seen@-1 >open@5 >15000",
		},
		{
			name: "a foreign client, all others gone", listeners: "1", reply: "0", again: "-1", published: "0",
			before: "u:1=1 30000, >x=2.7+listens@-3 seen@-1 >turns=2 >15000", after: ">open@5 >6000",
		},
		{name: "a foreign client", listeners: "1", reply: "0", again: "-1", published: "0", before: "u:1=1 30000", after: ">open@5 >6000"},
		{name: "a foreign client beside ours", listeners: "3-2", reply: "0", again: "-1", published: "0", before: "u:1=1 30000", after: ">open@5 >6000"},
		{name: "no foreign client beside ours", listeners: "2-2", reply: "0", again: "-1", published: "0", before: "u:1=1 30000"},
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
	}},
	{script: scripts.Keep, call: "NAME / owner=u:1 keeper=u:01 rest=3000", rows: []row{
		{name: "own", before: "u:1=2 30000", reply: "1", after: "u:01=1 3000"},
		{name: "gone", reply: "0"},
		{name: "own, half foreign", before: "u:1=1 email=7 30000", reply: "1", again: "-1", after: "email=7"},
	}},
	{script: scripts.Yield, call: "NAME / owner=u:1 lease=60000 forced=0 CHANNEL WAITQUEUE SETTINGS TOKENS entry=-", rows: []row{
		{
			name: "the hold has expired", listeners: "1-1 v", reply: "[-1 0]", published: "v>2.7.0",
			before: ">v=2.7+listens@-4 seen@-1 >15000", after: "v:2=1 20000",
		},
		{
			name: "the hold has expired before a MultiLock", reply: "[-1 0]", published: "0", publishedAgain: "0",
			before: ">v=2.7+reserves@-3 seen@-1 >15000", after: ">v=2.7+reserved0@-3 seen@-1 >15000",
		},
		{name: "an order of another type", before: "u:1=1 30000 /waitorder 'x' 30000", args: "forced=1 entry=2.4+listens", reply: "-WRONGTYPE", after: same},
		{
			name: "others", args: "owner=a", listeners: "2", reply: "[1 1]", again: "[-1 0]", published: "0",
			before: "a=1 30000", after: ">open@5 >6000",
		},
		{
			name: "half foreign", args: "owner=a", listeners: "2", reply: "[1 1]", again: "[-1 0]", published: "0",
			before: "a=1 email=7 30000", after: "email=7, >open@5 >6000",
		},
		// with a wait queue or an entry
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
	}},
	{script: scripts.ForceRelease, call: "NAME / CHANNEL owners...", rows: []row{
		{name: "a read/write lock", before: "mode=read u:1=1", args: "owners=u:1", reply: "1", again: "0", published: "0 u:asked>1.0.0"},
		{name: "foreign", before: "email=7", args: "owners=a", reply: "-WRONGTYPE", after: same},
		{name: "foreign, named", before: "email=7", args: "owners=email", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "a=1 email=7 30000", args: "owners=a", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.Inspect, call: "NAME / CHANNEL", rows: []row{
		{name: "held", before: "a=2 30000", reply: "[30000 0 a 2]", after: same},
		{name: "held without a TTL", before: "a=1", reply: "[-1 0 a 1]", after: same},
		{name: "held as often as Go can count", before: "a=999999999999999999", reply: "[-1 0 a 999999999999999999]", after: same},
		{name: "held more often", before: "a=9999999999999999999", reply: "-WRONGTYPE", after: same},
		{name: "waited for", before: "a=1 30000", listeners: "2", reply: "[30000 2 a 1]", after: same},
		{name: "free", reply: "[-2 0  ]"},
		{name: "wrong type", before: "'x' 30000", reply: "-WRONGTYPE", after: same},
		{name: "foreign", before: "email=7", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "a=2 email=7", reply: "-WRONGTYPE", after: same},
	}},
}
