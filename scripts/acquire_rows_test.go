package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

// The signs in these rows: see state_test.go.
var acquireTables = []table{
	{script: scripts.Acquire, call: "NAME / owner=u:1 count=1 lease=30000 WAITQUEUE SETTINGS TOKENS entry=- notified=0", rows: []row{
		{name: "free", args: "owner=a", reply: "(nil)", after: "a=1 30s"},
		{name: "own, without a TTL", before: "a=1", args: "owner=a", reply: "(nil)", after: "a=1 30s"},
		{
			name: "other, without a TTL", before: "v:2=2", args: "owner=a", reply: "[-1 v:2]", after: same,
			published: "turn:v:asked=2.0.0", publishedAgain: "turn:v:asked=2.0.0",
		},
		{name: "foreign", before: "email=x@y password=7", args: "owner=a", reply: "-WRONGTYPE the key is a hash with 2 fields", after: same},
		{name: "half foreign, own", before: "a=1 email=x 30s", args: "owner=a count=2", reply: "-WRONGTYPE", after: same},
		// with a wait queue
		{
			name: "free, another's turn", args: "entry=1.4+listens", reply: "[20000 v:2]", published: "turn:v=2.7.0",
			before: "waitqueue v=2.7+listens@-3s 15s", after: "v:2=1 20s, waitqueue u=1.4+listens@0s seen@0s 20s",
		},
		{
			name: "free, the turn of one in a fenced", publishedAgain: "turn:v:asked=2.0.0", reply: "[20000 v:2]", published: "turn:v=2.7.10",
			before: "waitqueue v=2.7+tokens3+listens@-3s 15s, tokens '7'", after: "v:2=1 20s, tokens '10'",
		},
		{name: "left to others, until the clock was set back", before: "waitqueue open@6s 15s", reply: "(nil)", after: "u:1=1 30s, waitqueue open@6s 15s"},
		{
			name: "left to others, the first try of a client that does not listen yet", args: "entry=1.4", reply: "[3000 ]", again: "[-4 ]",
			before: "waitqueue open@3s 15s", after: "waitqueue u=1.4@0s seen@0s open@3s 20s", afterAgain: "u:1=1 30s, waitqueue open@3s 6s",
		},
		{name: "left to others until now", before: "waitqueue open@0s 15s", reply: "(nil)", after: "u:1=1 30s, waitqueue open@0s 15s"},
		{
			name: "other, the entry confirmed", args: "entry=1.4+listens", reply: "[40000 v:2]",
			before: "v:2=1 40s, waitqueue u=1.3@-3s 15s", after: "v:2=1 40s, waitqueue u=1.4+listens@-3s seen@0s 20s",
		},
		{
			name: "other, it was left to", publishedAgain: "turn:v:asked=2.0.0", published: "turn:v:asked=2.0.0", reply: "[40000 v:2]",
			before: "v:2=1 40s, waitqueue w=1.1+listens@-3s open@3s 15s",
			after:  "v:2=1 40s, waitqueue w=1.1+listens@-3s 15s",
		},
		{
			name: "reserved for a MultiLock, the clock was set back", reply: "[10000 ]", published: "channel=0",
			before: "waitqueue v=2.7@-5s reserved@5s 15s", after: "waitqueue v=2.7@-5s reserved@0s 15s", afterAgain: "waitqueue v=2.7@-5s reserved@0s 15s",
		},
		{
			name: "reserved for that for a minute", reply: "[-4 ]",
			before: "waitqueue v=2.7+ttl400s@-99s reserved@-60s 15s", after: "u:1=1 30s, waitqueue v=2.7+ttl400s+lapsed@-99s 15s",
		},
		{
			name: "an entry of a day", publishedAgain: "turn:v:asked=2.0.0", reply: "[86400000 v:2]", published: "turn:v=2.7.0",
			before: "waitqueue v=2.7+ttl86400s+listens@-3s 15s", after: "v:2=1 86400s",
		},
		{name: "an entry of more than a day", again: "(nil)", before: "waitqueue v=2.7+ttl86400001ms+listens@-3s 15s", reply: "[-4 ]", after: "u:1=1 30s"},
		{
			name: "reserved for a MultiLock until now", reply: "[-4 ]",
			before: "waitqueue v=2.7@-15s reserved@-10s 15s", after: "u:1=1 30s, waitqueue v=2.7+lapsed@-15s 15s",
		},
		{name: "no entry in it", before: "waitqueue v=what@-3s 15s", reply: "(nil)", after: "u:1=1 30s"},
		{name: "a queue of another type", before: "waitqueue 'x' 30s", reply: "-WRONGTYPE", after: same},
		{
			name:   "an order of another type, own entry",
			before: "v:1=1 30s, waitqueue u=1.3+listens@-3s 15s, waitorder 'x' 30s", args: "entry=1.4+listens",
			reply: "-WRONGTYPE", after: same,
		},
	}},
	{script: scripts.FencedAcquire, call: "NAME / owner=a count=1 lease=30000 tokens=1 TOKENS WAITQUEUE SETTINGS entry=- notified=0", rows: []row{
		{name: "own, once more", before: "a=1 30s, tokens '7'", args: "count=2 lease=60000 tokens=0", reply: "[1 0 ]", after: "a=2 60s, tokens '7'"},
		{
			name: "the counter would end", reply: "[1 8 ]", again: "[1 9 ]",
			before: "tokens '7' 60s", after: "a=1 30s, tokens '8'", afterAgain: "a=1 30s, tokens '9'",
		},
		{
			name: "re-entered, the counter would end", args: "count=2 tokens=0", reply: "[1 0 ]",
			before: "a=1 30s, tokens '7' 60s", after: "a=2 30s, tokens '7'",
		},
		{name: "foreign", before: "email=x, tokens '7'", reply: "-WRONGTYPE", after: same},
		{name: "counter that does not count", before: "tokens 'x'", reply: "-WRONGTYPE redisson_lock_token", after: same},
		{name: "counter below 0", before: "tokens '-5'", reply: "-BADVALUE redisson_lock_token", after: same},
		{name: "counter at the end of Redis's integers", before: "tokens '9223372036854775807'", reply: "-BADVALUE redisson_lock_token", after: same},
		{
			name: "the last tokens", args: "tokens=3", reply: "[1 9007199254740991 ]", again: "-BADVALUE",
			before: "tokens '9007199254740988'", after: "a=1 30s, tokens '9007199254740991'",
		},
		{name: "too few tokens are left", before: "tokens '9007199254740989'", args: "tokens=3", reply: "-BADVALUE redisson_lock_token", after: same},
		// with a wait queue
		{
			name: "free, another's turn", args: "owner=u:1 tokens=2 entry=1.4+tokens2+listens", reply: "[0 20000 v:2]",
			published: "turn:v=2.7.10",
			before:    "waitqueue v=2.7+tokens3+listens@-3s 15s, tokens '7'",
			after:     "v:2=1 20s, waitqueue u=1.4+tokens2+listens@0s seen@0s 20s, tokens '10'",
		},
		{
			name: "free, left to others", args: "owner=u:1 tokens=2 entry=1.4+tokens2+listens", reply: "[0 3000 ]",
			before: "waitqueue open@3s 15s, tokens '7'", after: "waitqueue u=1.4+tokens2+listens@0s seen@0s open@3s 20s, tokens '7'",
		},
		{
			name: "free, and released", args: "owner=u:1 tokens=2 entry=1.4+tokens2+listens notified=1", reply: "[1 9 ]",
			again:  "[1 11 ]",
			before: "waitqueue open@3s 15s, tokens '7'", after: "u:1=1 30s, tokens '9'", afterAgain: "u:1=1 30s, tokens '11'",
		},
	}},
	{script: scripts.Draw, call: "TOKENS / tokens=3", rows: []row{
		{name: "reserves", before: "tokens '7'", reply: "[1 10 ]", again: "[1 13 ]", after: "tokens '10'", afterAgain: "tokens '13'"},
		{name: "too few are left", before: "tokens '9007199254740989'", reply: "-BADVALUE redisson_lock_token", after: same},
	}},
	{script: scripts.MajorityAcquire, call: "NAME RECORD / owner=a count=1 lease=30000 quarantine=0 new=fresh known=known since=0", rows: []row{
		{name: "free", reply: "[1 0  ]", after: "a=1 30s"},
		{name: "free, to re-enter", args: "count=2", reply: "[-1 0  ]"},
		{name: "own, one more", before: "a=1 30s", args: "count=2 lease=60000", reply: "[1 0  ]", after: "a=2 60s"},
		{name: "other, without an end", before: "b=2", reply: "[0 -1 b ]", after: same},
		{name: "wrong type", before: "'x'", reply: "-WRONGTYPE", after: same},
		{name: "foreign", before: "email=7", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "b=1 email=7", reply: "-WRONGTYPE", after: same},
	}},
}
