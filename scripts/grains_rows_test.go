package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

// The signs in these rows: see state_test.go. The entries of a cluster stand for a lock: "a=m#7 m=m#7 60s, tokens '7'"
// is the grain a and the member m, each with the token 7. The lease of a member is written as one of a reader, "leases
// m#1".
var grainsTables = []table{
	{script: scripts.GrainsRegister, call: "NAME TOKENS LEASES:m:rwlock_timeout:1 LEASES:n:rwlock_timeout:1 / grain=a member=m expected=- known=0 last=0 ttl=60000", rows: []row{
		{name: "the first", before: "leases m#1", reply: "[mine 1]", again: "[changed m#1]", after: "a=m#1 m=m#1 60s, leases m#1, tokens '1'"},
		{name: "another", before: "b=n#7 n=n#7 30s, leases m#1 n#1, tokens '7'", args: "grain=b", reply: "[changed n#7]", after: same},
		{name: "it is gone", before: "m=m#6 30s, leases m#1, tokens '7'", args: "expected=n#7", reply: "[changed ]", after: same},
		{name: "of a member that lives", before: "a=n#7 n=n#7 30s, leases m#1 n#1, tokens '7'", args: "expected=n#7", reply: "[held ]", after: same},
		{
			name: "of a dead member", before: "a=n#7 n=n#7 30s, leases m#1, tokens '7'", args: "expected=n#7", reply: "[mine 8]", again: "[changed m#8]",
			after: "a=m#8 m=m#8 n=n#7 60s, leases m#1, tokens '8'",
		},
		{name: "without a lease", before: "a=n#7 n=n#7 30s, tokens '7'", args: "expected=n#7", reply: "[lost ]", after: same},
		{
			name: "the counter was lost", before: "m=m#7 30s, leases m#1", args: "known=7 last=7", reply: "[mine 8]", again: "[changed m#8]",
			after: "a=m#8 m=m#8 60s, leases m#1, tokens '8'",
		},
		{
			name: "a mark that was lost", before: "m=m#5 30s, leases m#1, tokens '7'", args: "last=7", reply: "[mine 8]", again: "[changed m#8]",
			after: "a=m#8 m=m#5 60s, leases m#1, tokens '8'",
		},
		{name: "foreign", before: "a=path 30s, leases m#1, tokens '7'", args: "expected=path", reply: "-WRONGTYPE", after: same},
		{name: "the last token was given", before: "leases m#1, tokens '9007199254740991'", reply: "-BADVALUE", after: same},
		{name: "a negative counter", before: "leases m#1, tokens '-1'", reply: "-BADVALUE", after: same},
		{name: "a counter of another type", before: "leases m#1, tokens 'x'", reply: "-value is not an integer", after: same},
	}},
	{script: scripts.GrainsUnregister, call: "NAME LEASES:n:rwlock_timeout:1 / entries...", rows: []row{
		{name: "two of three", before: "a=n#7 b=n#8 c=m#9 60s", args: "entries=a,n#7,b,n#8,c,n#6", reply: "1", after: "c=m#9 60s"},
		{name: "the last", before: "a=n#7 60s", args: "entries=a,n#7", reply: "1"},
		{name: "none", reply: "1"},
		{name: "of a member that lives", before: "a=n#7 60s, leases n#1", args: "entries=a,n#7", reply: "0", after: same},
	}},
	{script: scripts.GrainsMark, call: "NAME TOKENS / member=m known=7 ttl=60000", rows: []row{
		{name: "the first", before: "tokens '9'", reply: "1", after: "m=m#9 60s, tokens '9'"},
		{name: "again", before: "m=m#5 30s, tokens '9'", reply: "1", after: "m=m#9 60s, tokens '9'"},
		{name: "the counter is behind", before: "m=m#5 30s, tokens '6'", reply: "1", after: "m=m#7 60s, tokens '6'"},
	}},
}
