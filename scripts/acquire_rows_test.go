package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

var acquireTables = []table{
	{script: scripts.Acquire, call: "NAME / owner=u:1 count=1 lease=30000 WAITQUEUE SETTINGS TOKENS entry=- notified=0", rows: []row{
		{name: "free", args: "owner=a", reply: "(nil)", after: "a=1 30000"},
		{name: "own, without a TTL", before: "a=1", args: "owner=a", reply: "(nil)", after: "a=1 30000"},
		{
			name: "other, without a TTL", publishedAgain: "00000062-0000-4000-8000-000000000000:asked>1.0.0",
			published: "00000062-0000-4000-8000-000000000000:asked>1.0.0", before: "b=2", args: "owner=a",
			reply: "[-1 b]", after: same,
		},
		{name: "foreign", before: "email=x@y password=7", args: "owner=a", reply: "-WRONGTYPE the key is a hash with 2 fields", after: same},
		{name: "half foreign, own", before: "a=1 email=x 30000", args: "owner=a count=2", reply: "-WRONGTYPE", after: same},
		// with a wait queue
		{
			name: "free, another's turn", args: "entry=1.4+listens", reply: "[20000 v:2]", published: "v>2.7.0",
			before: ">v=2.7+listens@-3 seen@-1 >15000", after: "v:2=1 20000, >u=1.4+listens@0 seen@0 >20000",
		},
		{
			name: "free, the turn of one in a fenced", publishedAgain: "v:asked>2.0.0", reply: "[20000 v:2]", published: "v>2.7.10",
			before: ">v=2.7+tokens3+listens@-3 seen@-1 >15000 /'7'", after: "v:2=1 20000 /'10'",
		},
		{name: "left to others, until the clock was set back", before: ">open@6 >15000", reply: "(nil)", after: "u:1=1 30000, >open@6 >15000"},
		{
			name: "left to others, the first try of a client that does not listen yet", args: "entry=1.4", reply: "[3000 ]", again: "[-4 ]",
			before: ">open@3 >15000", after: ">u=1.4@0 seen@0 >open@3 >20000", afterAgain: "u:1=1 30000, >open@3 >6000",
		},
		{name: "left to others until now", before: ">open@0 >15000", reply: "(nil)", after: "u:1=1 30000, >open@0 >15000"},
		{
			name: "other, the entry confirmed", args: "entry=1.4+listens", reply: "[40000 v:2]",
			before: "v:2=1 40000, >u=1.3@-3 seen@-1 >15000", after: "v:2=1 40000, >u=1.4+listens@-3 seen@0 >20000",
		},
		{
			name: "other, it was left to", publishedAgain: "v:asked>2.0.0", published: "v:asked>2.0.0", reply: "[40000 v:2]",
			before: "v:2=1 40000, >w=1.1+listens@-3 seen@-1 >open@3 >15000",
			after:  "v:2=1 40000, >w=1.1+listens@-3 seen@-1 >15000",
		},
		{
			name: "reserved for a MultiLock, the clock was set back", reply: "[10000 ]", published: "0",
			before: ">v=2.7+reserved5@-5 seen@-1 >15000", after: ">v=2.7+reserved0@-5 seen@-1 >15000", afterAgain: ">v=2.7+reserved0@-5 seen@-1 >15000",
		},
		{
			name: "reserved for that for a minute", reply: "[-4 ]",
			before: ">v=400000:2.7+reserved-60@-99 seen@-1 >15000", after: "u:1=1 30000, >v=400000:2.7+lapsed@-99 seen@-1 >15000",
		},
		{
			name: "an entry of a day", publishedAgain: "v:asked>2.0.0", reply: "[86400000 v:2]", published: "v>2.7.0",
			before: ">v=86400000:2.7+listens@-3 seen@-1 >15000", after: "v:2=1 86400000",
		},
		{name: "an entry of more than a day", again: "(nil)", before: ">v=86400001:2.7+listens@-3 seen@-1 >15000", reply: "[-4 ]", after: "u:1=1 30000"},
		{
			name: "reserved for a MultiLock until now", reply: "[-4 ]",
			before: ">v=2.7+reserved-10@-15 seen@-1 >15000", after: "u:1=1 30000, >v=2.7+lapsed@-15 seen@-1 >15000",
		},
		{name: "no entry in it", before: ">v=what@-3 seen@-1 >15000", reply: "(nil)", after: "u:1=1 30000"},
		{name: "a queue of another type", before: "waitqueue 'x' 30000", reply: "-WRONGTYPE", after: same},
		{
			name:   "an order of another type, own entry",
			before: "v:1=1 30000, >u=1.3+listens@-3 seen@-1 >15000 /waitorder 'x' 30000", args: "entry=1.4+listens",
			reply: "-WRONGTYPE", after: same,
		},
	}},
	{script: scripts.FencedAcquire, call: "NAME / owner=a count=1 lease=30000 tokens=1 TOKENS WAITQUEUE SETTINGS entry=- notified=0", rows: []row{
		{name: "own, once more", before: "a=1 30000 /'7'", args: "count=2 lease=60000 tokens=0", reply: "[1 0 ]", after: "a=2 60000 /'7'"},
		{
			name: "the counter would end", reply: "[1 8 ]", again: "[1 9 ]",
			before: "/'7' 60000", after: "a=1 30000 /'8'", afterAgain: "a=1 30000 /'9'",
		},
		{
			name: "re-entered, the counter would end", args: "count=2 tokens=0", reply: "[1 0 ]",
			before: "a=1 30000 /'7' 60000", after: "a=2 30000 /'7'",
		},
		{name: "foreign", before: "email=x /'7'", reply: "-WRONGTYPE", after: same},
		{name: "counter that does not count", before: "/'x'", reply: "-WRONGTYPE redisson_lock_token", after: same},
		{name: "counter below 0", before: "/'-5'", reply: "-BADVALUE redisson_lock_token", after: same},
		{name: "counter at the end of Redis's integers", before: "/'9223372036854775807'", reply: "-BADVALUE redisson_lock_token", after: same},
		{
			name: "the last tokens", args: "tokens=3", reply: "[1 9007199254740991 ]", again: "-BADVALUE",
			before: "/'9007199254740988'", after: "a=1 30000 /'9007199254740991'",
		},
		{name: "too few tokens are left", before: "/'9007199254740989'", args: "tokens=3", reply: "-BADVALUE redisson_lock_token", after: same},
		// with a wait queue
		{
			name: "free, another's turn", args: "owner=u:1 tokens=2 entry=1.4+tokens2+listens", reply: "[0 20000 v:2]",
			published: "v>2.7.10",
			before:    ">v=2.7+tokens3+listens@-3 seen@-1 >15000 /'7'",
			after:     "v:2=1 20000, >u=1.4+tokens2+listens@0 seen@0 >20000 /'10'",
		},
		{
			name: "free, left to others", args: "owner=u:1 tokens=2 entry=1.4+tokens2+listens", reply: "[0 3000 ]",
			before: ">open@3 >15000 /'7'", after: ">u=1.4+tokens2+listens@0 seen@0 >open@3 >20000 /'7'",
		},
		{
			name: "free, and released", args: "owner=u:1 tokens=2 entry=1.4+tokens2+listens notified=1", reply: "[1 9 ]",
			again:  "[1 11 ]",
			before: ">open@3 >15000 /'7'", after: "u:1=1 30000 /'9'", afterAgain: "u:1=1 30000 /'11'",
		},
	}},
	{script: scripts.Draw, call: "TOKENS / tokens=3", rows: []row{
		{name: "reserves", before: "/'7'", reply: "[1 10 ]", again: "[1 13 ]", after: "/'10'", afterAgain: "/'13'"},
		{name: "too few are left", before: "/'9007199254740989'", reply: "-BADVALUE redisson_lock_token", after: same},
	}},
	{script: scripts.MajorityAcquire, call: "NAME RECORD / owner=a count=1 lease=30000 quarantine=0 new=fresh known=known since=0", rows: []row{
		{name: "free", reply: "[1 0  ]", after: "a=1 30000"},
		{name: "free, to re-enter", args: "count=2", reply: "[-1 0  ]"},
		{name: "own, one more", before: "a=1 30000", args: "count=2 lease=60000", reply: "[1 0  ]", after: "a=2 60000"},
		{name: "other, without an end", before: "b=2", reply: "[0 -1 b ]", after: same},
		{name: "wrong type", before: "'x'", reply: "-WRONGTYPE", after: same},
		{name: "foreign", before: "email=7", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "b=1 email=7", reply: "-WRONGTYPE", after: same},
	}},
}
