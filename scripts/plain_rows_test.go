package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

// The signs in these rows: see state_test.go.
var plainTables = []table{
	{script: scripts.Release, call: "NAME / owner=u:1 count=0 lease=60000 CHANNEL WAITQUEUE SETTINGS TOKENS", rows: []row{
		{name: "own, next to a foreign field like an owner", before: "u:1=1 v:57=tiger 30s", reply: "0", again: "-1", after: "v:57=tiger", published: "channel=0"},
		{name: "own, one less without a TTL", before: "a=3", args: "owner=a count=2", reply: "2", after: "a=2 60s"},
		{name: "other, one less", before: "b=1 30s", args: "owner=a count=1", reply: "-1", after: same},
		// with a wait queue
		{
			name: "the only one", reply: "0", again: "-1", published: "turn:v=2.7.0",
			before: "u:1=1 30s, waitqueue v=2.7+listens@-2s 15s", after: "v:2=1 20s",
		},
		{
			name: "the only one, half foreign", reply: "0", again: "-1", published: "channel=0",
			before: "email=7 u:1=1 30s, waitqueue v=2.7+listens@-2s 15s",
			after:  "email=7, waitqueue v=2.7+listens@-2s 15s",
		},
		{
			name: "the only one, of more than a day", reply: "0", again: "-1", published: "channel=0",
			before: "u:1=1 30s, waitqueue v=2.7+ttl86400001ms+listens@-2s 15s",
		},
		{
			name: "the only one, not yet dead", reply: "0", again: "-1", published: "turn:v=2.7.0",
			before: "u:1=1 30s, waitqueue v=2.7+listens@-30s seen@-19s 15s", after: "v:2=1 20s",
		},
		{
			name: "before a foreign client", listeners: "ours ours foreign", reply: "0", again: "-1", published: "turn:v=2.7.0",
			before: "u:1=1 30s, waitqueue v=2.7+listens@-2s 15s", after: "v:2=1 20s, waitqueue turns=1 6s",
		},
		{
			name: "the next, with tokens", reply: "0", again: "-1", published: "turn:v=2.7.10",
			before: "u:1=1 30s, waitqueue v=2.7+tokens3+listens@-2s 15s, tokens '7' 60s", after: "v:2=1 20s, tokens '10'",
		},
		{
			name: "the next, a counter of no kind", reply: "0", again: "-1", published: "turn:v=2.7.0",
			before: "u:1=1 30s, waitqueue v=2.7+tokens3+listens@-2s 15s, tokens a=1 60s", after: "v:2=1 20s, tokens a=1 60s",
		},
		{
			name: "the next, no tokens are left", reply: "0", again: "-1", published: "turn:v=2.7.0",
			before: "u:1=1 30s, waitqueue v=2.7+tokens3+listens@-2s 15s, tokens '9007199254740989'",
			after:  "v:2=1 20s, tokens '9007199254740989'",
		},
		{
			name: "one foreign client of two, third turn", listeners: "ours ours foreign", reply: "0", again: "-1", published: "channel=0",
			before: "u:1=1 30s, waitqueue v=2.7+listens@-3s w=8.8+listens@-2s turns=2 15s",
			after:  "waitqueue v=2.7+listens@-3s w=8.8+listens@-2s open@5s 15s",
		},
		{
			name: "a foreign client, all others gone", listeners: "foreign", reply: "0", again: "-1", published: "channel=0",
			before: "u:1=1 30s, waitqueue x=2.7+listens@-3s turns=2 15s", after: "waitqueue open@5s 6s",
		},
		{name: "a foreign client", listeners: "foreign", reply: "0", again: "-1", published: "channel=0", before: "u:1=1 30s", after: "waitqueue open@5s 6s"},
		{name: "a foreign client besides ours", listeners: "ours ours foreign", reply: "0", again: "-1", published: "channel=0", before: "u:1=1 30s", after: "waitqueue open@5s 6s"},
		{name: "no foreign client besides ours", listeners: "ours ours", reply: "0", again: "-1", published: "channel=0", before: "u:1=1 30s"},
		{
			name: "a queue of another type", reply: "0", again: "-1", published: "channel=0",
			before: "u:1=1 30s, waitqueue 'x' 30s", after: "waitqueue 'x' 30s",
		},
		{
			name: "an order of another type", reply: "0", again: "-1", published: "channel=0",
			before: "u:1=1 30s, waitqueue v=2.7+listens@-3s 15s, waitorder 'x' 30s", after: "waitqueue v=2.7+listens@-3s 15s, waitorder 'x' 30s",
		},
	}},
	{script: scripts.Renew, call: "NAME / owner=a lease=60000", rows: []row{
		{name: "own", before: "a=1 30s", reply: "[1]", after: "a=1 60s"},
		{name: "own, without a TTL", before: "a=1", reply: "[1]", after: "a=1 60s"},
		{name: "gone", reply: "[0]"},
	}},
	{script: scripts.Keep, call: "NAME / owner=u:1 keeper=u:01 rest=3000", rows: []row{
		{name: "own", before: "u:1=2 30s", reply: "1", after: "u:01=1 3s"},
		{name: "gone", reply: "0"},
		{name: "own, half foreign", before: "u:1=1 email=7 30s", reply: "1", again: "-1", after: "email=7"},
	}},
	{script: scripts.Yield, call: "NAME / owner=u:1 lease=60000 forced=0 CHANNEL WAITQUEUE SETTINGS TOKENS entry=-", rows: []row{
		{
			name: "the hold has expired", listeners: "ours", reply: "[-1 0]", published: "turn:v=2.7.0",
			before: "waitqueue v=2.7+listens@-4s 15s", after: "v:2=1 20s",
		},
		{
			name: "the hold has expired before a MultiLock", reply: "[-1 0]", published: "channel=0", publishedAgain: "channel=0",
			before: "waitqueue v=2.7+reserves@-3s 15s", after: "waitqueue v=2.7@-3s reserved@0s 15s",
		},
		{name: "an order of another type", before: "u:1=1 30s, waitorder 'x' 30s", args: "forced=1 entry=2.4+listens", reply: "-WRONGTYPE", after: same},
		{
			name: "others", args: "owner=a", listeners: "foreign foreign", reply: "[1 1]", again: "[-1 0]", published: "channel=0",
			before: "a=1 30s", after: "waitqueue open@5s 6s",
		},
		{
			name: "half foreign", args: "owner=a", listeners: "foreign foreign", reply: "[1 1]", again: "[-1 0]", published: "channel=0",
			before: "a=1 email=7 30s", after: "email=7, waitqueue open@5s 6s",
		},
		// with a wait queue or an entry
		{
			name: "to the queue before a foreign client", args: "entry=2.7+listens", listeners: "ours ours foreign", reply: "[1 0]",
			again: "[-1 0]", published: "turn:v=2.7.0",
			before: "u:1=1 30s, waitqueue v=2.7+listens@-3s 15s",
			after:  "v:2=1 20s, waitqueue u=2.7+listens@0s seen@0s turns=1 20s",
		},
		{
			name: "to a foreign client after the queue", args: "entry=2.7+listens", listeners: "ours ours foreign", reply: "[1 1]",
			again: "[-1 0]", published: "channel=0",
			before: "u:1=1 30s, waitqueue v=2.7+listens@-3s turns=1 15s",
			after:  "waitqueue v=2.7+listens@-3s u=2.7+listens@0s seen@0s open@5s 20s",
		},
	}},
	{script: scripts.ForceRelease, call: "NAME / CHANNEL owners...", rows: []row{
		{name: "a read/write lock", before: "mode=read u:1=1", args: "owners=u:1", reply: "1", again: "0", published: "channel=0 turn:u:asked=1.0.0"},
		{name: "foreign", before: "email=7", args: "owners=a", reply: "-WRONGTYPE", after: same},
		{name: "foreign, named", before: "email=7", args: "owners=email", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "a=1 email=7 30s", args: "owners=a", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.Inspect, call: "NAME / CHANNEL", rows: []row{
		{name: "held", before: "a=2 30s", reply: "[30000 0 a 2]", after: same},
		{name: "held without a TTL", before: "a=1", reply: "[-1 0 a 1]", after: same},
		{name: "held as often as Go can count", before: "a=999999999999999999", reply: "[-1 0 a 999999999999999999]", after: same},
		{name: "held more often", before: "a=9999999999999999999", reply: "-WRONGTYPE", after: same},
		{name: "waited for", before: "a=1 30s", listeners: "foreign foreign", reply: "[30000 2 a 1]", after: same},
		{name: "free", reply: "[-2 0  ]"},
		{name: "wrong type", before: "'x' 30s", reply: "-WRONGTYPE", after: same},
		{name: "foreign", before: "email=7", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "a=2 email=7", reply: "-WRONGTYPE", after: same},
	}},
}
