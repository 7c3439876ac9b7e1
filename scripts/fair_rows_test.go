package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

// The signs in these rows: see state_test.go.
var fairTables = []table{
	{script: scripts.SyncQueue, call: "NAME / client=u releases=- take=1 upto=9 300000 QUEUE TIMEOUTS CHANNEL listed...", rows: []row{
		// joining the queue
		{
			name: "as Redisson does, behind a holder", args: "listed=u:1,u:2,u:3", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30s", after: "v:1=1 30s, queue u:1@330s u:2@630s u:3@930s",
			afterAgain: "v:1=1 30s, queue u:1@300s u:2@600s u:3@900s",
		},
		{
			name: "behind a holder without end", args: "listed=u:1", reply: "[0 -1 v:1 ]",
			before: "v:1=1", after: "v:1=1, queue u:1@300s!",
		},
		{
			name: "not behind one that was released since", args: "take=u:5 listed=u:1,u:2", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30s, queue u:2@330s", after: "v:1=1 30s, queue u:2@300s",
		},
		// confirming
		{
			name: "one without a timeout", args: "listed=u:1", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30s, queue u:1 v:2@200s", after: "v:1=1 30s, queue u:1@300s v:2@200s",
		},
		// leaving
		{
			name: "those behind move up", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30s, queue v:2@330s u:1@630s v:3@930s v:4@1230s", after: "v:1=1 30s, queue v:2@330s! v:3@630s! v:4@930s!",
		},
		{
			name: "no other is dead for it", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30s, queue u:1@300s v:2@40s v:3@340s", after: "v:1=1 30s, queue v:2@40s! v:3@340s!",
		},
		{
			name: "past one without a timeout", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30s, queue v:2@330s u:1@630s v:3 v:4@1230s", after: "v:1=1 30s, queue v:2@330s v:3 v:4@930s",
		},
		{name: "not the waiters of others", before: "v:1=1 30s, queue v:1@330s w:1@630s", reply: "[0 30000 v:1 ]", after: same},
		{name: "the only waiter of a free lock", before: "queue u:1@330s", args: "take=0", reply: "[0 0  ]", published: "channel=0"},
		// dead waiters: the timeouts of those behind count from those before
		{name: "first of a free lock, since now", before: "queue v:2@0s w:3@299s", reply: "[0 299000  ]", after: "queue w:3@299s", published: "channel:w:3=0"},
		{name: "without a timeout", before: "queue v:2 w:3@299s", reply: "[0 299000  ]", after: "queue w:3@299s", published: "channel:w:3=0"},
		{
			name: "not one that listens, without a timeout", listeners: "v:2", reply: "[0 299000  ]", published: "channel:w:3=0",
			before: "queue v:2 w:3@299s", after: "queue w:3@299s",
		},
		// taking the lock
		{name: "a free lock", args: "listed=u:1+lease40000", reply: "[1 0 u:1 ]", after: "u:1=1 40s"},
		{
			name: "by the first in the queue", args: "listed=u:1+lease40000,u:3", reply: "[1 0 u:1 ]",
			before: "queue u:1@330s v:2@630s u:3@930s v:4@1230s", after: "u:1=1 40s, queue v:2@330s u:3@630s v:4@930s",
		},
		{
			name: "no other is dead for it", args: "listed=u:1+lease40000", reply: "[1 0 u:1 ]",
			before: "queue u:1@300s v:2@40s v:3@340s", after: "u:1=1 40s, queue v:2@40s v:3@340s",
		},
		// an owner that holds the lock already missed a reply
		{name: "without an end", before: "u:1=1", args: "listed=u:1+lease40000", reply: "[1 0 u:1 ]", after: "u:1=1 40s"},
		// ending a hold
		{
			name: "to a foreign client", publishedAgain: "channel:v:2=0", args: "releases=u:1 take=0", listeners: "v:2", reply: "[0 330000  1]",
			again: "[0 330000  0]", published: "channel:v:2=0",
			before: "u:1=2 30s, queue v:2@330s v:3@630s", after: "queue v:2@330s v:3@630s",
		},
		{
			name: "to a foreign client that does not listen yet", publishedAgain: "channel:v:2=0", args: "releases=u:1 take=0",
			reply: "[0 300000  1]", again: "[0 300000  0]", published: "channel:v:2=0",
			before: "u:1=1 30s, queue v:2@330s v:3@630s w:4@930s", after: "queue v:2@300s v:3@630s w:4@930s",
		},
		{
			name: "to a foreign client behind the dead", publishedAgain: "channel:w:3=0", args: "releases=u:1 take=0", reply: "[0 299000  1]",
			again: "[0 299000  0]", published: "channel:w:3=0",
			before: "u:1=1 30s, queue v:2@-1s w:3@299s", after: "queue w:3@299s",
		},
		{
			name: "to a foreign client, and wait again", publishedAgain: "channel:v:2=0", args: "releases=u:1 listed=u:2", listeners: "v:2",
			reply: "[0 330000  1]", again: "[0 330000  0]", published: "channel:v:2=0",
			before: "u:1=1 30s, queue v:2@330s", after: "queue v:2@330s u:2@630s",
		},
		{
			name: "to an own waiter, at once", args: "releases=u:1 listed=u:2+lease40000", reply: "[1 0 u:2 1]", again: "[1 0 u:2 0]",
			before: "u:1=1 30s, queue u:2@330s v:3@630s", after: "u:2=1 40s, queue v:3@330s",
		},
		{
			name: "to an own waiter, later", args: "releases=u:1 take=0 listed=u:2+lease40000", reply: "[0 0  1]", again: "[0 0  0]",
			before: "u:1=1 30s, queue u:2@330s", after: "queue u:2@300s",
		},
		{name: "to an empty queue", publishedAgain: "channel=0", before: "u:1=1 30s", args: "releases=u:1 take=0", reply: "[0 0  1]", again: "[0 0  0]", published: "channel=0"},
		// nothing, and wrong types
		{name: "foreign", before: "email=7", args: "listed=u:1", reply: "-WRONGTYPE", after: same},
		{name: "half foreign, left", before: "email=7 v:1=1 30s, queue u:1@330s v:2@630s", reply: "[0 1  ]", after: "email=7 v:1=1 30s, queue v:2@330s"},
		{name: "foreign, left", before: "email=7, queue u:1@330s v:2@630s", reply: "[0 1  ]", after: "email=7, queue v:2@330s"},
		{
			name: "half foreign, released", args: "releases=u:1 take=0", reply: "[0 1  1]", again: "[0 1  0]",
			before: "email=7 u:1=1 30s", after: "email=7",
		},
		{name: "a foreign queue", before: "queue some:7@-1s", args: "listed=u:1", reply: "-WRONGTYPE", after: same},
		{name: "a lock of another type", before: "'x', queue u:1@5s v:2@-5s", args: "listed=u:2", reply: "-WRONGTYPE", after: same},
		// when the queue ends, if all its clients have died
		{
			name: "of a waiter that lives for ever", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30s, queue v:2@1000000000000s", after: "v:1=1 30s, queue v:2@1000000000000s 31536600s",
		},
		{
			name: "a short end, and stray timeouts", args: "listed=u:2", listeners: "v:2", reply: "[0 100000  ]",
			before: "queue v:2@100s 60s, timeouts u:1@50s u:2@50s v:3@50s", after: "queue v:2@100s u:2@400s 1000s",
		},
		{
			name: "a queue of another type, to release", args: "releases=u:1 listed=u:2", reply: "[0 1  1]", again: "[0 1  0]",
			before: "u:1=1 30s, queue 'x'", after: "queue 'x'",
		},
	}},
	{script: scripts.FairForceRelease, call: "NAME / QUEUE TIMEOUTS CHANNEL owners...", rows: []row{
		{name: "all are dead", before: "v:1=1 30s, queue v:2@-1s", args: "owners=v:1", reply: "1", again: "0", published: "channel=0 turn:v:asked=1.0.0"},
		{
			name: "one is dead since now", args: "owners=v:1", reply: "1", again: "0", published: "channel:x:4=0 turn:v:asked=1.0.0",
			before: "v:1=1 30s, queue v:2@0s x:4@300s", after: "queue x:4@300s",
		},
		{name: "free, behind the dead", before: "queue v:2@-1s w:3@330s", args: "owners=v:1", reply: "0", after: "queue w:3@330s", published: "channel:w:3=0"},
		{name: "a read/write lock", before: "mode=read u:1=1 30s", args: "owners=u:1", reply: "1", again: "0", published: "channel=0 turn:u:asked=1.0.0"},
		{name: "foreign", before: "email=7, queue v:2@-1s", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
		{name: "a foreign queue", before: "v:1=1 30s, queue some:7@-1s", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
		{name: "a half foreign queue", before: "v:1=1 30s, queue v:2 some:7", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.FairInspect, call: "NAME / QUEUE", rows: []row{
		{name: "held", before: "v:1=2 30s, queue v:2@330s w:3@630s", reply: "[30000 2 v:1 2]", after: same},
		{name: "without an end", before: "v:1=1", reply: "[-1 0 v:1 1]", after: same},
		{name: "free", before: "queue v:2@-1s", reply: "[-2 1  ]", after: same},
		{name: "foreign queue", before: "queue some:7@-1s", reply: "-WRONGTYPE", after: same},
		{name: "wrong type", before: "'x'", reply: "-WRONGTYPE", after: same},
		{name: "foreign", before: "email=7", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "email=7 v:1=1", reply: "-WRONGTYPE", after: same},
	}},
}
