package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

// The signs in these rows: see state_test.go.
var semaphoreTables = []table{
	{script: scripts.SemaphoreAcquire, call: "NAME CALLS:u / number=3 WAITQUEUE SETTINGS client=u entry=- wanted...", rows: []row{
		{name: "enough for all", before: "'7'", args: "wanted=2,1", reply: "[2 4]", after: "'4', calls u=3.2.4"},
		{name: "enough for one", before: "'7'", args: "wanted=1", reply: "[1 6]", after: "'6', calls u=3.1.6"},
		{name: "enough, with a TTL", before: "'7' 60s", args: "wanted=7", reply: "[1 0]", after: "'0' 60s, calls u=3.1.0"},
		{name: "enough for the first", before: "'7'", args: "wanted=2,6,1", reply: "[1 5]", after: "'5', calls u=3.1.5"},
		{name: "not enough", before: "'7'", args: "wanted=8,1", reply: "[0 7]", after: "'7', calls u=3.0.7"},
		{name: "more taken than are", before: "'-2'", args: "wanted=1", reply: "[0 -2]", after: "'-2', calls u=3.0.-2"},
		{name: "none", args: "wanted=1", reply: "[-2 0]", after: "calls u=3.-2.0"},
		{name: "as the next command", before: "'7', calls u=2.1.9", args: "wanted=2", reply: "[1 5]", after: "'5', calls u=3.1.5"},
		{name: "carried out before", before: "'7', calls u=3.1.9", args: "wanted=2", reply: "[1 9]", after: same},
		{name: "refused before", before: "'7', calls u=3.0.-2", args: "wanted=2", reply: "[0 -2]", after: same},
		{name: "late", before: "'7', calls u=10.1.9", args: "number=9 wanted=2", reply: "-LATE", after: same},
		{name: "another's command", before: "'7', calls v=10.1.9", args: "number=9 wanted=2", reply: "[1 5]", after: "'5', calls u=9.1.5 v=10.1.9"},
		{name: "wrong type", before: "a=1", args: "wanted=2", reply: "-WRONGTYPE", after: same},
		{name: "no number", before: "'1.5'", args: "wanted=1", reply: "-WRONGTYPE", after: same},
		// with a wait queue
		{
			name: "joins", before: "'0'", args: "entry=3.3+tokens1+listens wanted=1",
			reply: "[0 0]", after: "'0', calls u=3.0.0, waitqueue u=3.3+tokens1+listens@0s seen@0s 20s",
		},
		{
			name: "behind another", before: "'1', waitqueue v=2.7+tokens1+listens@-3s 15s", args: "entry=3.3+tokens1+listens wanted=1",
			reply: "[0 0]", after: "'1', calls u=3.0.0, waitqueue v=2.7+tokens1+listens@-3s u=3.3+tokens1+listens@0s seen@0s 20s",
		},
		{
			name: "behind one that wants more", before: "'2', waitqueue v=2.7+tokens3+listens@-3s 15s", args: "entry=3.3+tokens1+listens wanted=1",
			reply: "[0 0]", after: "'2', calls u=3.0.0, waitqueue v=2.7+tokens3+listens@-3s u=3.3+tokens1+listens@0s seen@0s 20s",
		},
		{
			name: "behind another, only tries", before: "'1', waitqueue v=2.7+tokens1+listens@-3s 15s", args: "wanted=1",
			reply: "[0 0]", after: "'1', calls u=3.0.0, waitqueue v=2.7+tokens1+listens@-3s 15s",
		},
		{
			name: "behind another, listens since now", before: "'1', waitqueue u=2.2+tokens1@-4s v=2.7+tokens1+listens@-3s 15s",
			args: "entry=3.3+tokens1+listens wanted=1", reply: "[0 0]",
			after: "'1', calls u=3.0.0, waitqueue v=2.7+tokens1+listens@-3s u=3.3+tokens1+listens@0s seen@0s 20s",
		},
		{
			name: "behind another, enough for both", before: "'2', waitqueue v=2.7+tokens1+listens@-3s 15s", args: "entry=3.3+tokens1+listens wanted=1",
			reply: "[1 0]", after: "'1', calls u=3.1.0, waitqueue v=2.7+tokens1+listens@-3s 15s",
		},
		{
			name: "behind one that does not listen", before: "'1', waitqueue v=2.7+tokens1@-3s 15s", args: "entry=3.3+tokens1+listens wanted=1",
			reply: "[1 0]", after: "'0', calls u=3.1.0, waitqueue v=2.7+tokens1@-3s 15s",
		},
		{
			name: "behind one that has gone", before: "'1', waitqueue x=2.7+tokens1+listens@-3s 15s", args: "entry=3.3+tokens1+listens wanted=1",
			reply: "[1 0]", after: "'0', calls u=3.1.0",
		},
		{
			name: "before another", before: "'1', waitqueue u=2.2+tokens1+listens@-4s v=2.7+tokens1+listens@-3s 15s", args: "entry=3.3+tokens1+listens wanted=1",
			reply: "[1 0]", after: "'0', calls u=3.1.0, waitqueue v=2.7+tokens1+listens@-3s 15s",
		},
		{
			name:   "before another, takes fewer than its entry wanted",
			before: "'2', waitqueue u=2.2+tokens3+listens@-4s v=2.7+tokens1+listens@-3s 15s",
			args:   "wanted=1", reply: "[1 1]", after: "'1', calls u=3.1.1, waitqueue v=2.7+tokens1+listens@-3s 15s", published: "turn:v=2.0.0",
		},
		{
			name:   "before another, again at the end",
			before: "'1', waitqueue u=2.2+tokens1+listens@-4s v=2.7+tokens1+listens@-3s 15s",
			args:   "entry=3.3+tokens1+listens wanted=1,1",
			reply:  "[1 0]", after: "'0', calls u=3.1.0, waitqueue v=2.7+tokens1+listens@-3s u=3.3+tokens1+listens@0s seen@0s 20s",
		},
		{
			name: "confirms its entry", before: "'0', waitqueue u=2.2+tokens1+listens@-4s v=2.7+tokens1+listens@-3s 15s", args: "entry=3.3+tokens2+listens wanted=2",
			reply: "[0 0]", after: "'0', calls u=3.0.0, waitqueue u=3.3+tokens2+listens@-4s seen@0s v=2.7+tokens1+listens@-3s 20s",
		},
		{
			name:   "wants fewer than its entry, behind one that tries",
			before: "'2', waitqueue u=2.2+tokens4+listens@-4s v=2.7+tokens1+listens@-3s 15s", args: "entry=3.3+tokens1+listens wanted=3,1",
			reply: "[0 2]", after: "'2', calls u=3.0.2, waitqueue u=3.3+tokens1+listens@-4s seen@0s v=2.7+tokens1+listens@-3s 20s", published: "turn:u=3.0.0 turn:v=2.0.0",
		},
		{
			name:   "joins, and removes one that has expired and did not listen",
			before: "'0', waitqueue x=2.7+tokens1@-30s seen@-21s v=2.7+tokens1+listens@-3s 15s", args: "entry=3.3+tokens1+listens wanted=1",
			reply: "[0 0]", after: "'0', calls u=3.0.0, waitqueue v=2.7+tokens1+listens@-3s u=3.3+tokens1+listens@0s seen@0s 20s",
		},
		{
			name:   "listens no longer",
			before: "'1', waitqueue u=2.2+tokens2+listens@-4s v=2.7+tokens1+listens@-3s 15s", args: "entry=3.3+tokens2 wanted=2",
			reply: "[0 1]", after: "'1', calls u=3.0.1, waitqueue u=3.3+tokens2@-4s seen@0s v=2.7+tokens1+listens@-3s 20s", published: "turn:v=2.0.0",
		},
		{
			name:   "behind one that wants as many as can be",
			before: "'2147483646', waitqueue v=2.7+tokens2147483647+listens@-3s 15s", args: "entry=3.3+tokens2147483647+listens wanted=1",
			reply: "[0 0]", after: "'2147483646', calls u=3.0.0, waitqueue v=2.7+tokens2147483647+listens@-3s u=3.3+tokens2147483647+listens@0s seen@0s 20s",
		},
		{
			name: "leaves, and wakes the next", before: "'1', waitqueue u=2.2+tokens1+listens@-4s v=2.7+tokens1+listens@-3s 15s",
			reply: "[0 1]", after: "'1', calls u=3.0.1, waitqueue v=2.7+tokens1+listens@-3s 15s", published: "turn:v=2.0.0",
		},
		{
			name: "leaves without a semaphore", before: "waitqueue u=2.2+tokens1+listens@-4s 15s", args: "entry=3.3+tokens2+listens wanted=2",
			reply: "[-2 0]", after: "calls u=3.-2.0",
		},
	}},
	{script: scripts.SemaphoreAdd, call: "NAME CALLS:u / number=3 permits=2 existing=0 PERMITS WAITQUEUE SETTINGS client=u leaves=0", rows: []row{
		{name: "released", before: "'7'", reply: "[1 9]", after: "'9', calls u=3.1.9", published: "permits=9"},
		{name: "with a TTL", before: "'7' 60s", args: "existing=1", reply: "[1 9]", after: "'9' 60s, calls u=3.1.9", published: "permits=9"},
		{name: "none yet", reply: "[1 2]", after: "'2', calls u=3.1.2", published: "permits=2"},
		{name: "only if there is one", args: "existing=1", reply: "[0 0]", after: "calls u=3.0.0"},
		{name: "taken away", before: "'7'", args: "permits=-7", reply: "[1 0]", after: "'0', calls u=3.1.0", published: "permits=0"},
		{name: "taken away, not free", before: "'7'", args: "permits=-9", reply: "[1 -2]", after: "'-2', calls u=3.1.-2"},
		{name: "given back of those", before: "'-5'", reply: "[1 -3]", after: "'-3', calls u=3.1.-3"},
		{name: "carried out before", before: "'7', calls u=3.1.7", reply: "[1 7]", after: same},
		{name: "late", before: "'7', calls u=4.1.7", reply: "-LATE", after: same},
		{
			name: "as many as can be", args: "permits=1", reply: "[1 2147483647]", published: "permits=2147483647",
			before: "'2147483646'", after: "'2147483647', calls u=3.1.2147483647",
		},
		{
			name: "too many", args: "permits=1", reply: "-BADVALUE there would be more than 2147483647 permits",
			before: "'2147483647'", after: same,
		},
		{name: "wrong type", before: "a=1", reply: "-WRONGTYPE", after: same},
		// with a wait queue
		{
			name: "to the first", before: "'0', waitqueue v=2.7+tokens1+listens@-3s w=8.8+tokens1+listens@-2s 15s", args: "permits=1",
			reply: "[1 1]", after: "'1', calls u=3.1.1, waitqueue v=2.7+tokens1+listens@-3s w=8.8+tokens1+listens@-2s 15s", published: "turn:v=2.0.0",
		},
		{
			name: "to the first two", before: "'0', waitqueue v=2.7+tokens1+listens@-3s w=8.8+tokens1+listens@-2s 15s",
			reply: "[1 2]", after: "'2', calls u=3.1.2, waitqueue v=2.7+tokens1+listens@-3s w=8.8+tokens1+listens@-2s 15s", published: "turn:v=2.0.0 turn:w=8.0.0",
		},
		{
			name: "to the second, the first was woken before", before: "'1', waitqueue v=2.7+tokens1+listens@-3s w=8.8+tokens1+listens@-2s 15s", args: "permits=1",
			reply: "[1 2]", after: "'2', calls u=3.1.2, waitqueue v=2.7+tokens1+listens@-3s w=8.8+tokens1+listens@-2s 15s", published: "turn:w=8.0.0",
		},
		{
			name: "too few for the first", before: "'0', waitqueue v=2.7+tokens3+listens@-3s w=8.8+tokens1+listens@-2s 15s",
			reply: "[1 2]", after: "'2', calls u=3.1.2, waitqueue v=2.7+tokens3+listens@-3s w=8.8+tokens1+listens@-2s 15s",
		},
		{
			name: "the first has gone", before: "'0', waitqueue x=2.7+tokens1+listens@-3s w=8.8+tokens1+listens@-2s 15s", args: "permits=1",
			reply: "[1 1]", after: "'1', calls u=3.1.1, waitqueue w=8.8+tokens1+listens@-2s 15s", published: "turn:w=8.0.0",
		},
		{
			name: "with a foreign client", listeners: "ours ours foreign", before: "'0', waitqueue v=2.7+tokens1+listens@-3s 15s", args: "permits=1",
			reply: "[1 1]", after: "'1', calls u=3.1.1, waitqueue v=2.7+tokens1+listens@-3s 15s", published: "permits=1 turn:v=2.0.0",
		},
		{
			name: "with clients of the queue", listeners: "ours ours", before: "'0', waitqueue v=2.7+tokens1+listens@-3s 15s", args: "permits=1",
			reply: "[1 1]", after: "'1', calls u=3.1.1, waitqueue v=2.7+tokens1+listens@-3s 15s", published: "turn:v=2.0.0",
		},
		{
			name: "of a client that leaves", before: "'0', waitqueue u=2.2+tokens1+listens@-4s v=2.7+tokens1+listens@-3s 15s", args: "permits=1 leaves=1",
			reply: "[1 1]", after: "'1', calls u=3.1.1, waitqueue v=2.7+tokens1+listens@-3s 15s", published: "turn:v=2.0.0",
		},
	}},
	{script: scripts.SemaphoreYield, call: "NAME CALLS:u / number=3 permits=2 PERMITS WAITQUEUE SETTINGS client=u forced=0", rows: []row{
		{name: "none waits", before: "'7'", reply: "[0 7]", after: "'7', calls u=3.0.7"},
		{name: "none waits, none free", before: "'0'", reply: "[0 0]", after: "'0', calls u=3.0.0"},
		{name: "but for clients of the queue", before: "'7'", listeners: "ours ours", reply: "[0 7]", after: "'7', calls u=3.0.7"},
		{name: "a foreign client waits", before: "'7'", listeners: "ours foreign", reply: "[1 9]", after: "'9', calls u=3.1.9", published: "permits=9"},
		{
			name: "but for the client itself", before: "'0', waitqueue u=2.2+tokens1+listens@-4s 15s",
			reply: "[0 0]", after: "'0', calls u=3.0.0, waitqueue u=2.2+tokens1+listens@-4s 15s",
		},
		{
			name: "others wait", before: "'0', waitqueue u=2.2+tokens1+listens@-4s v=2.7+tokens1+listens@-3s 15s", args: "permits=1",
			reply: "[1 1]", after: "'1', calls u=3.1.1, waitqueue v=2.7+tokens1+listens@-3s 15s", published: "turn:v=2.0.0",
		},
		{
			name: "to none, forced", args: "forced=1", reply: "[1 9]", published: "permits=9",
			before: "'7' 60s", after: "'9' 60s, calls u=3.1.9",
		},
		{name: "to none, too few", before: "'-1'", reply: "[1 1]", after: "'1', calls u=3.1.1", published: "permits=1"},
		{name: "none left", reply: "[-2 0]", after: "calls u=3.-2.0"},
		{name: "carried out before", before: "'7', calls u=3.0.9", listeners: "foreign foreign", reply: "[0 9]", after: same},
		{name: "wrong type", before: "a=1", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.SemaphoreSet, call: "NAME CALLS:u / number=3 permits=7 ttl=0 PERMITS", rows: []row{
		{name: "none yet", reply: "[1 7]", after: "'7', calls u=3.1.7", published: "permits=7"},
		{name: "with a TTL", args: "ttl=60000", reply: "[1 7]", after: "'7' 60s, calls u=3.1.7", published: "permits=7"},
		{name: "there is one", before: "'2' 60s", reply: "[0 2]", after: "'2' 60s, calls u=3.0.2"},
		{name: "carried out before", before: "'2', calls u=3.1.7", reply: "[1 7]", after: same},
		{name: "wrong type", before: "a=1", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.ForgetCommand, call: "CALLS:u / number=3", rows: []row{
		{name: "the last command", before: "'7', calls u=3.1.7", reply: "1", again: "0", after: "'7'"},
		{name: "an earlier command", before: "'7', calls u=2.1.7", reply: "1", again: "0", after: "'7'"},
		{name: "not a later one", before: "'7', calls u=10.1.7", args: "number=9", reply: "0", after: same},
		{name: "not another's", before: "'7', calls v=3.1.7", reply: "0", after: same},
		{name: "none", before: "'7'", reply: "0", after: same},
		{name: "no record of ours", before: "'7', calls u=99:x", args: "number=100", reply: "0", after: same},
		{name: "a foreign number", before: "'7', calls u=1-800-555", args: "number=100", reply: "0", after: same},
	}},
	{script: scripts.SynchronizerDelete, call: "NAME CALLS:u / number=3 PERMITS", rows: []row{
		{name: "a semaphore", before: "'7' 60s", reply: "[1 0]", after: "calls u=3.1.0", published: "permits=0"},
		{name: "more taken than are", before: "'-2', calls v=7.1", reply: "[1 0]", after: "calls u=3.1.0 v=7.1", published: "permits=0"},
		{name: "a large latch", before: "'1000000000000'", reply: "[1 0]", after: "calls u=3.1.0", published: "permits=0"},
		{name: "none", reply: "[0 0]", after: "calls u=3.0.0"},
		{name: "made again since", before: "'7', calls u=3.1.0", reply: "[1 0]", after: same},
		{name: "late", before: "'7', calls u=4.1.7", reply: "-LATE", after: same},
		{name: "wrong type", before: "a=1", reply: "-WRONGTYPE", after: same},
		{name: "no number", before: "'1.5'", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.SemaphoreDrain, call: "NAME CALLS:u / number=3", rows: []row{
		{name: "free ones", before: "'7' 60s", reply: "[7]", after: "'0' 60s, calls u=3.7"},
		{name: "none free", before: "'0'", reply: "[0]", after: "'0', calls u=3.0"},
		{name: "more taken than are", before: "'-2'", reply: "[-2]", after: "'0', calls u=3.-2"},
		{name: "no semaphore", reply: "[0]", after: "calls u=3.0"},
		{name: "carried out before", before: "'7', calls u=3.9", reply: "[9]", after: same},
		{name: "wrong type", before: "a=1", reply: "-WRONGTYPE", after: same},
	}},
	{script: scripts.SemaphoreInspect, call: "NAME /", rows: []row{
		{name: "with a TTL", before: "'7' 60s", reply: "[7 60000]", after: same},
		{name: "more taken than are", before: "'-2'", reply: "[-2 -1]", after: same},
		{name: "none", reply: "[0 -2]", after: same},
		{name: "wrong type", before: "a=1", reply: "-WRONGTYPE", after: same},
	}},
}
