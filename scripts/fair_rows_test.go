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
			name: "behind a foreign client", args: "listed=u:1", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /v:2@100", after: "v:1=1 30000 /v:2@100 u:1@400",
		},
		{
			name: "behind the latest of all", args: "listed=u:1", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /v:2@500 v:3@100", after: "v:1=1 30000 /v:2@500 v:3@100 u:1@800",
		},
		{
			name: "behind a dead one, but not the first", args: "listed=u:1", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /v:2@10 w:3@-50", after: "v:1=1 30000 /v:2@10 w:3@-50 u:1@310",
		},
		{name: "not one that tries once", before: "v:1=1 30000", args: "listed=u:1+once", reply: "[0 30000 v:1 ]", after: same},
		{name: "a free lock that may not be taken", args: "take=0 listed=u:1", reply: "[0 0  ]", after: "/u:1@300!"},
		{
			name: "behind a hold of its client", args: "take=u:5 listed=u:1", reply: "[0 30000 u:5 ]",
			before: "u:5=1 30000", after: "u:5=1 30000 /u:1@330", afterAgain: "u:5=1 30000 /u:1@300",
		},
		{
			name: "not behind one that was released since", args: "take=u:5 listed=u:1,u:2", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:2@330", after: "v:1=1 30000 /u:2@300",
		},
		{name: "not behind one of the same client", before: "u:6=1 30000", args: "take=u:5 listed=u:1", reply: "[0 30000 u:6 ]", after: same},
		{name: "not a free lock, after the release", args: "take=u:5 listed=u:1", reply: "[0 0  ]", after: same},
		// confirming
		{
			name: "in a chain", args: "listed=u:1,u:2,u:3", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:1@7 u:2@8 u:3@2000", after: "v:1=1 30000 /u:1@300 u:2@600 u:3@900",
		},
		{
			name: "each of those listed, in the order of the queue", args: "listed=u:1,u:2", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:2@7 u:1@8", after: "v:1=1 30000 /u:2@300 u:1@600",
		},
		{
			name: "around foreign clients", args: "listed=u:1,u:2", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:1@7 v:2@450 v:3@100 u:2@8 v:4@9", after: "v:1=1 30000 /u:1@300 v:2@450 v:3@100 u:2@750 v:4@9",
		},
		{
			name: "one that seemed dead", args: "listed=u:1", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:1@-100 v:2@200", after: "v:1=1 30000 /u:1@300 v:2@200",
		},
		{
			name: "one without a timeout", args: "listed=u:1", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:1 v:2@200", after: "v:1=1 30000 /u:1@300 v:2@200",
		},
		{
			name: "not one that is not listed", args: "upto=4 listed=u:1", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:5@70 u:1@100", after: "v:1=1 30000 /u:5@70 u:1@370",
		},
		// leaving
		{
			name: "those behind move up", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /v:2@330 u:1@630 v:3@930 v:4@1230", after: "v:1=1 30000 /v:2@330! v:3@630! v:4@930!",
		},
		{
			name: "those behind move up alike", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:1@330 v:2@630 v:3@2000 v:4@2100", after: "v:1=1 30000 /v:2@330 v:3@1700 v:4@1800",
		},
		{
			name: "two at two points", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:1@330 v:2@630 u:2@930 v:3@1230", after: "v:1=1 30000 /v:2@330 v:3@630",
		},
		{
			name: "no other is dead for it", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:1@300 v:2@40 v:3@340", after: "v:1=1 30000 /v:2@40! v:3@340!",
		},
		{
			name: "none loses the time of those before", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /v:2@330 u:1@630 v:3@640 v:4@940", after: "v:1=1 30000 /v:2@330 v:3@630 v:4@930",
		},
		{
			name: "past one without a timeout", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /v:2@330 u:1@630 v:3 v:4@1230", after: "v:1=1 30000 /v:2@330 v:3 v:4@930",
		},
		{
			name: "not those listed", args: "listed=u:2", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:1@330 u:2@630 u:3@930", after: "v:1=1 30000 /u:2@300",
		},
		{
			name: "not later ones", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /u:9@330 u:10@630", after: "v:1=1 30000 /u:10@330",
		},
		{name: "not those of others", before: "v:1=1 30000 /v:1@330 w:1@630", reply: "[0 30000 v:1 ]", after: same},
		{
			name: "the first waiter of a free lock", args: "take=0", listeners: "v:2", reply: "[0 330000  ]", published: "v:2",
			before: "/u:1@330 v:2@630", after: "/v:2@330",
		},
		{name: "the only waiter of a free lock", before: "/u:1@330", args: "take=0", reply: "[0 0  ]", published: "0"},
		{
			name: "the first waiter, and the next is listed", args: "take=0 listed=u:2", reply: "[0 0  ]",
			before: "/u:1@330 u:2@630", after: "/u:2@300",
		},
		// dead waiters: the timeouts of those behind count from those before
		{name: "first of a free lock", before: "/v:2@-1 w:3@299", reply: "[0 299000  ]", after: "/w:3@299", published: "w:3"},
		{name: "first of a free lock, since now", before: "/v:2@0 w:3@299", reply: "[0 299000  ]", after: "/w:3@299", published: "w:3"},
		{name: "without a timeout", before: "/v:2 w:3@299", reply: "[0 299000  ]", after: "/w:3@299", published: "w:3"},
		{name: "several", before: "/v:2@-1 w:3 x:4@-5 y:5@40", reply: "[0 40000  ]", after: "/y:5@40", published: "y:5"},
		{name: "all", before: "/v:2@-1 w:3", reply: "[0 0  ]", published: "0"},
		{name: "before one that is listed", before: "/v:2@-1 u:1@5", args: "take=0 listed=u:1", reply: "[0 0  ]", after: "/u:1@300"},
		{name: "without a listener: its whole timeout", before: "/v:2@360 w:3@660 v:4@960", reply: "[0 300000  ]", after: "/v:2@300 w:3@600 v:4@900"},
		{name: "without a listener, while the lock is held", before: "w:9=1 60000 /v:2@360 w:3@660", reply: "[0 60000 w:9 ]", after: same},
		{
			name: "a client with many", reply: "[0 300000  ]", published: "w:5",
			before: "/v:2@-1 v:3@299 v:4@599 w:5@899 x:6@1199", after: "/w:5@300 x:6@600",
		},
		{
			name: "a client with many, here and there", reply: "[0 299000  ]", published: "w:3",
			before: "/v:2@-1 w:3@299 v:4@599 w:5@899 v:6@1199 x:7@1499", after: "/w:3@299 w:5@599 x:7@899",
		},
		{
			name: "not one that listens", listeners: "v:3", reply: "[0 299000  ]", published: "v:3",
			before: "/v:2@-1 v:3@299 v:4@599", after: "/v:3@299",
		},
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
		{
			name: "by the first in the queue, not the first listed", args: "listed=u:1,u:2+lease40000", reply: "[1 0 u:2 ]",
			before: "/u:2@330 u:1@630", after: "u:2=1 40000 /u:1@300",
		},
		{
			name: "behind the dead", args: "listed=u:1+lease40000", reply: "[1 0 u:1 ]",
			before: "/v:2@-1 u:1@299 w:3@599", after: "u:1=1 40000 /w:3@300",
		},
		{
			name: "behind those that leave", args: "listed=u:2+lease40000", reply: "[1 0 u:2 ]",
			before: "/u:1@330 u:2@630 v:3@930", after: "u:2=1 40000 /v:3@330",
		},
		{
			name: "not behind a foreign client", args: "listed=u:1+lease40000", reply: "[0 100000  ]",
			before: "/v:2@100 u:1@400", after: same,
		},
		{
			name: "by one that tries once, behind the dead", args: "listed=u:1+once+40000", reply: "[1 0 u:1 ]",
			before: "/v:2@-1 w:3", after: "u:1=1 40000",
		},
		{
			name: "not by one that tries once, past a queue", args: "listed=u:1+once+40000", reply: "[0 100000  ]",
			before: "/v:2@100", after: same,
		},
		{name: "by one that waits, not one that tries", args: "listed=u:1+once,u:2+lease40000", reply: "[1 0 u:2 ]", after: "u:2=1 40000"},
		{name: "by one of two that try", args: "listed=u:2+once,u:1+once+40000", reply: "[1 0 u:2 ]", after: "u:2=1 30000"},
		// an owner that holds the lock already missed a reply
		{name: "under a shorter lease", before: "u:1=1 10000", args: "listed=u:1+lease40000", reply: "[1 0 u:1 ]", after: "u:1=1 40000"},
		{name: "without an end", before: "u:1=1", args: "listed=u:1+lease40000", reply: "[1 0 u:1 ]", after: "u:1=1 40000"},
		{name: "more than once", before: "u:1=3 10000", args: "listed=u:1+lease40000", reply: "[1 0 u:1 ]", after: "u:1=3 40000"},
		{name: "by a try", before: "u:1=1 10000", args: "take=0 listed=u:1+once+40000", reply: "[1 0 u:1 ]", after: "u:1=1 40000"},
		{
			name: "while others wait", args: "listed=u:1,u:2+lease40000,u:3", reply: "[1 0 u:2 ]",
			before: "u:2=1 10000 /u:1@100 v:2@400", after: "u:2=1 40000 /u:1@300 v:2@400 u:3@700",
		},
		{
			name: "and still in the queue", args: "listed=u:1+lease40000", reply: "[1 0 u:1 ]",
			before: "u:1=1 10000 /u:1@100 v:2@400", after: "u:1=1 40000 /v:2@300",
		},
		// ending a hold
		{
			name: "to a foreign client", publishedAgain: "v:2", args: "releases=u:1 take=0", listeners: "v:2", reply: "[0 330000  1]",
			again: "[0 330000  0]", published: "v:2",
			before: "u:1=2 30000 /v:2@330 v:3@630", after: "/v:2@330 v:3@630",
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
		{
			name: "to an own waiter that is not listed", publishedAgain: "u:20", args: "releases=u:1 take=0 upto=0", reply: "[0 330000  1]",
			again: "[0 330000  0]", published: "u:20",
			before: "u:1=1 30000 /u:20@330", after: "/u:20@330",
		},
		{name: "to an empty queue", publishedAgain: "0", before: "u:1=1 30000", args: "releases=u:1 take=0", reply: "[0 0  1]", again: "[0 0  0]", published: "0"},
		{name: "held by a foreign client", before: "v:1=1 30000 /v:2@330", args: "releases=u:1", reply: "[0 30000 v:1 0]", after: same},
		{name: "not held", published: "v:2", publishedAgain: "v:2", before: "/v:2@330", listeners: "v:2", args: "releases=u:1", reply: "[0 330000  0]", after: same},
		// nothing, and wrong types
		{name: "foreign", before: "email=7", args: "listed=u:1", reply: "-WRONGTYPE", after: same},
		{name: "half foreign", before: "email=7 v:1=1 30000", args: "listed=u:1", reply: "-WRONGTYPE", after: same},
		{name: "half foreign, own", before: "email=7 u:1=1 30000", args: "listed=u:1", reply: "-WRONGTYPE", after: same},
		{name: "half foreign, left", before: "email=7 v:1=1 30000 /u:1@330 v:2@630", reply: "[0 1  ]", after: "email=7 v:1=1 30000 /v:2@330"},
		{name: "foreign, left", before: "email=7 /u:1@330 v:2@630", reply: "[0 1  ]", after: "email=7 /v:2@330"},
		{
			name: "half foreign, released", args: "releases=u:1 take=0", reply: "[0 1  1]", again: "[0 1  0]",
			before: "email=7 u:1=1 30000", after: "email=7",
		},
		{name: "a writer", before: "mode=write v:1:write=1 30000", args: "listed=u:1+once", reply: "[0 30000 v:1:write ]", after: same},
		{name: "a reader", before: "mode=read v:1=1 30000", args: "listed=u:1+once", reply: "[0 30000 v:1 ]", after: same},
		{name: "a reader of its own", before: "mode=read u:1=1 30000", args: "listed=u:1+once+lease40000", reply: "[0 30000 u:1 ]", after: same},
		{name: "a foreign queue", before: "/some:7@-1", args: "listed=u:1", reply: "-WRONGTYPE", after: same},
		{
			name: "a foreign queue, released", args: "releases=u:1 listed=u:2", reply: "[0 1  1]", again: "[0 1  0]",
			before: "u:1=1 30000 /some:7@-1", after: "/some:7@-1",
		},
		{name: "a lock of another type", before: "'x' /u:1@5 v:2@-5", args: "listed=u:2", reply: "-WRONGTYPE", after: same},
		{name: "a lock of another type, to release", before: "'x' /u:1@5", args: "releases=u:3", reply: "-WRONGTYPE", after: same},
		// when the queue ends, if all its clients have died
		{
			name: "ends ten minutes after the last waiter counts as dead", args: "listed=u:1", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000", after: "v:1=1 30000 /u:1@330 ~930000", afterAgain: "v:1=1 30000 /u:1@300 ~900000",
		},
		{
			name: "a longer one", args: "listed=u:1", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /v:2@100 v:3@200", after: "v:1=1 30000 /v:2@100 v:3@200 u:1@500 ~1100000",
		},
		{name: "nothing else changes", before: "v:1=1 30000 /v:2@100", reply: "[0 30000 v:1 ]", after: "v:1=1 30000 /v:2@100 ~700000"},
		{name: "those that are left", before: "/u:1@300 v:2@600", args: "listed=u:1", reply: "[1 0 u:1 ]", after: "u:1=1 30000 /v:2@300 ~900000"},
		{
			name: "of a waiter that lives for ever", reply: "[0 30000 v:1 ]",
			before: "v:1=1 30000 /v:2@1000000000000", after: "v:1=1 30000 /v:2@1000000000000 ~31536600000",
		},
		{
			name: "a short end, and stray timeouts", args: "listed=u:2", listeners: "v:2", reply: "[0 100000  ]",
			before: "/v:2@100 +u:1@50 +u:2@50 +v:3@50 ~60000", after: "/v:2@100 u:2@400 ~1000000",
		},
		{name: "a queue of another type", before: "/queue 'x'", args: "listed=u:2", reply: "-WRONGTYPE", after: same},
		{name: "timeouts of another type", before: "/timeouts 'x'", args: "listed=u:2", reply: "-WRONGTYPE", after: same},
		{
			name: "a queue of another type, to release", args: "releases=u:1 listed=u:2", reply: "[0 1  1]", again: "[0 1  0]",
			before: "u:1=1 30000 /queue 'x'", after: "/queue 'x'",
		},
		{
			name: "timeouts of another type, to release", args: "releases=u:1 listed=u:2", reply: "[0 1  1]", again: "[0 1  0]",
			before: "u:1=1 30000 /timeouts 'x'", after: "/timeouts 'x'",
		},
	}},
	{script: scripts.FairForceRelease, call: "NAME / QUEUE TIMEOUTS CHANNEL owners...", rows: []row{
		{
			name: "held", args: "owners=v:1", reply: "1", again: "0", published: "v:2 v:asked>1.0.0",
			before: "v:1=2 30000 /v:2@330 w:3@630", after: "/v:2@330 w:3@630",
		},
		{name: "held, and none waits", before: "v:1=2 30000", args: "owners=v:1", reply: "1", again: "0", published: "0 v:asked>1.0.0"},
		{name: "all are dead", before: "v:1=1 30000 /v:2@-1", args: "owners=v:1", reply: "1", again: "0", published: "0 v:asked>1.0.0"},
		{name: "held by another since", before: "v:1=2 30000 /v:2@330 w:3@630", args: "owners=u:1", reply: "0", after: same},
		{name: "by another term since", before: "v:2=1 30000 /w:3@630", args: "owners=v:1", reply: "0", after: same},
		{name: "none is named", before: "v:1=2 30000 /v:2@330", reply: "0", after: same},
		{
			name: "the dead wait", args: "owners=v:1", reply: "1", again: "0", published: "v:asked>1.0.0 x:4",
			before: "v:1=1 30000 /v:2@-1 w:3 x:4@300", after: "/x:4@300",
		},
		{
			name: "one is dead since now", args: "owners=v:1", reply: "1", again: "0", published: "v:asked>1.0.0 x:4",
			before: "v:1=1 30000 /v:2@0 x:4@300", after: "/x:4@300",
		},
		{name: "free", before: "/v:2@330", args: "owners=v:1", reply: "0", after: same},
		{name: "free, behind the dead", before: "/v:2@-1 w:3@330", args: "owners=v:1", reply: "0", after: "/w:3@330", published: "w:3"},
		{name: "a read/write lock", before: "mode=read u:1=1 30000", args: "owners=u:1", reply: "1", again: "0", published: "0 u:asked>1.0.0"},
		{name: "a writer", before: "mode=write u:1:write=1 30000", args: "owners=u:1", reply: "1", again: "0", published: "0"},
		{
			name: "of two readers, one", args: "owners=u:1", reply: "1", again: "0", published: "0 u:asked>1.0.0",
			before: "mode=read u:1=1 v:1=1 30000", after: "mode=read v:1=1 30000",
		},
		{name: "wrong type", before: "'x' /v:2@-1", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
		{name: "foreign", before: "email=7 /v:2@-1", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
		{name: "a foreign queue", before: "v:1=1 30000 /some:7@-1", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
		{name: "a half foreign queue", before: "v:1=1 30000 /v:2 some:7", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
		{name: "half foreign timeouts", before: "v:1=1 30000 /v:2@-1 +some:7@-1", args: "owners=v:1", reply: "-WRONGTYPE", after: same},
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
