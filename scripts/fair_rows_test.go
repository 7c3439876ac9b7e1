package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

var fairTables = []table{
	{script: scripts.SyncQueue, call: "NAME / client=u releases=- take=1 upto=9 300000 QUEUE TIMEOUTS CHANNEL listed...", rows: []row{
		// joining the queue
		{
			name: "as Redisson does, behind a holder", args: "listed=u:1,u:2,u:3", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000", after: "v:1=1 30000 /u:1@330 u:2@630 u:3@930",
			afterAgain: "v:1=1 30000 /u:1@300 u:2@600 u:3@900",
		},
		{
			name: "behind a holder without end", args: "listed=u:1", reply: "[0 -1 v:1 ]",
			before: "v:1=1", after: "v:1=1 /u:1@300!",
		},
		{
			name: "not behind one that was released since", args: "take=u:5 listed=u:1,u:2", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:2@330", after: "v:1=1 30000 /u:2@300",
		},
		// confirming
		{
			name: "one without a timeout", args: "listed=u:1", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:1 v:2@200", after: "v:1=1 30000 /u:1@300 v:2@200",
		},
		// leaving
		{
			name: "those behind move up", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /v:2@330 u:1@630 v:3@930 v:4@1230", after: "v:1=1 30000 /v:2@330! v:3@630! v:4@930!",
		},
		{
			name: "no other is dead for it", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:1@300 v:2@40 v:3@340", after: "v:1=1 30000 /v:2@40! v:3@340!",
		},
		{
			name: "past one without a timeout", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /v:2@330 u:1@630 v:3 v:4@1230", after: "v:1=1 30000 /v:2@330 v:3 v:4@930",
		},
		{name: "not the waiters of others", before: "v:1=1 30000 /v:1@330 w:1@630", reply: "[0 30000 v:1 ]", after: same},
		{name: "the only waiter of a free lock", before: "/u:1@330", args: "take=0", reply: "[0 0  ]", published: "0"},
		// dead waiters: the timeouts of those behind count from those before
		{name: "first of a free lock, since now", before: "/v:2@0 w:3@299", reply: "[0 299000  ]", after: "/w:3@299", published: "w:3"},
		{name: "without a timeout", before: "/v:2 w:3@299", reply: "[0 299000  ]", after: "/w:3@299", published: "w:3"},
		{
			name: "not one that listens, without a timeout", listeners: "v:2", reply: "[0 299000  ]", published: "w:3",
			before: "/v:2 w:3@299", after: "/w:3@299",
		},
		// taking the lock
		{name: "a free lock", args: "listed=u:1+lease40000", reply: "[1 0 u:1 ]", after: "u:1=1 40000"},
		{
			name: "by the first in the queue", args: "listed=u:1+lease40000,u:3", reply: "[1 0 u:1 ]",
			before: "/u:1@330 v:2@630 u:3@930 v:4@1230", after: "u:1=1 40000 /v:2@330 u:3@630 v:4@930",
		},
		{
			name: "no other is dead for it", args: "listed=u:1+lease40000", reply: "[1 0 u:1 ]",
			before: "/u:1@300 v:2@40 v:3@340", after: "u:1=1 40000 /v:2@40 v:3@340",
		},
		// an owner that holds the lock already missed a reply
		{name: "without an end", before: "u:1=1", args: "listed=u:1+lease40000", reply: "[1 0 u:1 ]", after: "u:1=1 40000"},
		// ending a hold
		{
			name: "to a foreign client", publishedAgain: "v:2", args: "releases=u:1 take=0", listeners: "v:2", reply: "[0 330000  1]",
			again: "[0 330000  0]", published: "v:2",
			before: "u:1=2 30000 /v:2@330 v:3@630", after: "/v:2@330 v:3@630",
		},
		{
			name: "to a foreign client that does not listen yet", publishedAgain: "v:2", args: "releases=u:1 take=0",
			reply: "[0 300000  1]", again: "[0 300000  0]", published: "v:2",
			before: "u:1=1 30000 /v:2@330 v:3@630 w:4@930", after: "/v:2@300 v:3@630 w:4@930",
		},
		{
			name: "to a foreign client behind the dead", publishedAgain: "w:3", args: "releases=u:1 take=0", reply: "[0 299000  1]",
			again: "[0 299000  0]", published: "w:3",
			before: "u:1=1 30000 /v:2@-1 w:3@299", after: "/w:3@299",
		},
		{
			name: "to a foreign client, and wait again", publishedAgain: "v:2", args: "releases=u:1 listed=u:2", listeners: "v:2",
			reply: "[0 330000  1]", again: "[0 330000  0]", published: "v:2",
			before: "u:1=1 30000 /v:2@330", after: "/v:2@330 u:2@630",
		},
		{
			name: "to an own waiter, at once", args: "releases=u:1 listed=u:2+lease40000", reply: "[1 0 u:2 1]", again: "[1 0 u:2 0]",
			before: "u:1=1 30000 /u:2@330 v:3@630", after: "u:2=1 40000 /v:3@330",
		},
		{
			name: "to an own waiter, later", args: "releases=u:1 take=0 listed=u:2+lease40000", reply: "[0 0  1]", again: "[0 0  0]",
			before: "u:1=1 30000 /u:2@330", after: "/u:2@300",
		},
		{name: "to an empty queue", publishedAgain: "0", before: "u:1=1 30000", args: "releases=u:1 take=0", reply: "[0 0  1]", again: "[0 0  0]", published: "0"},
		// nothing, and wrong types
		{name: "foreign", before: "email=7", args: "listed=u:1", reply: "-WRONGTYPE", after: same},
		{name: "half foreign, left", before: "email=7 v:1=1 30000 /u:1@330 v:2@630", reply: "[0 1  ]", after: "email=7 v:1=1 30000 /v:2@330"},
		{name: "foreign, left", before: "email=7 /u:1@330 v:2@630", reply: "[0 1  ]", after: "email=7 /v:2@330"},
		{
			name: "half foreign, released", args: "releases=u:1 take=0", reply: "[0 1  1]", again: "[0 1  0]",
			before: "email=7 u:1=1 30000", after: "email=7",
		},
		{name: "a foreign queue", before: "/some:7@-1", args: "listed=u:1", reply: "-WRONGTYPE", after: same},
		{name: "a lock of another type", before: "'x' /u:1@5 v:2@-5", args: "listed=u:2", reply: "-WRONGTYPE", after: same},
		// when the queue ends, if all its clients have died
		{
			name: "of a waiter that lives for ever", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /v:2@1000000000000", after: "v:1=1 30000 /v:2@1000000000000 ~31536600000",
		},
		{
			name: "a short end, and stray timeouts", args: "listed=u:2", listeners: "v:2", reply: "[0 100000  ]",
			before: "/v:2@100 +u:1@50 +u:2@50 +v:3@50 ~60000", after: "/v:2@100 u:2@400 ~1000000",
		},
		{
			name: "a queue of another type, to release", args: "releases=u:1 listed=u:2", reply: "[0 1  1]", again: "[0 1  0]",
			before: "u:1=1 30000 /queue 'x'", after: "/queue 'x'",
		},
	}},
	{script: scripts.FairForceRelease, call: "NAME / QUEUE TIMEOUTS CHANNEL owners...", rows: []row{
		{name: "all are dead", before: "v:1=1 30000 /v:2@-1", args: "owners=v:1", reply: "1", again: "0", published: "0 v:asked>1.0.0"},
		{
			name: "one is dead since now", args: "owners=v:1", reply: "1", again: "0", published: "v:asked>1.0.0 x:4",
			before: "v:1=1 30000 /v:2@0 x:4@300", after: "/x:4@300",
		},
		{name: "free, behind the dead", before: "/v:2@-1 w:3@330", args: "owners=v:1", reply: "0", after: "/w:3@330", published: "w:3"},
		{name: "a read/write lock", before: "mode=read u:1=1 30000", args: "owners=u:1", reply: "1", again: "0", published: "0 u:asked>1.0.0"},
		{name: "foreign", before: "email=7 /v:2@-1", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
		{name: "a foreign queue", before: "v:1=1 30000 /some:7@-1", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
		{name: "a half foreign queue", before: "v:1=1 30000 /v:2 some:7", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.FairInspect, call: "NAME / QUEUE", rows: []row{
		{name: "held", before: "v:1=2 30000 /v:2@330 w:3@630", reply: "[30000 2 v:1 2]", after: same},
		{name: "without an end", before: "v:1=1", reply: "[-1 0 v:1 1]", after: same},
		{name: "free", before: "/v:2@-1", reply: "[-2 1  ]", after: same},
		{name: "foreign queue", before: "/some:7@-1", reply: "-WRONGTYPE", after: same},
		{name: "wrong type", before: "'x'", reply: "-WRONGTYPE", after: same},
		{name: "foreign", before: "email=7", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "email=7 v:1=1", reply: "-WRONGTYPE", after: same},
	}},
}
