package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

// permitsRow is a call of a script about permits. Permits are the number of free ones, if it is set; the taken ones, each a
// letter with the seconds from the start of the test until it expires, if it does; the client for which permits are reserved,
// "reserved@u" for this one; a restore that waits for so many
// seconds and has seen two permits taken, "waits2@9", or "old2@9" if it began in another memory; and the TTLs of the
// number, "~60000", and of the set of taken ones. The id of a permit is its letter, 16 times. In the arguments of an
// acquire or a release, "ab" is a request or a hold of two permits; with "reserve" the first request of an acquire waits.
type permitsRow struct {
	name, before, args, reply, after, published string

	script *scripts.Script
}

// permitsRows returns all rows.
func permitsRows() (rows []permitsRow) {
	for _, table := range permitsTables {
		for _, r := range table.rows {
			r.script = table.script
			rows = append(rows, r)
		}
	}
	return rows
}

var permitsTables = []struct {
	script *scripts.Script
	rows   []permitsRow
}{
	{scripts.ExpirableAcquire, []permitsRow{
		{name: "enough", before: "3", args: "30000 b 5000 a", reply: "[2 -1]", after: "1 a@5 b@30"},
		{name: "not for all", before: "1 z@40", args: "30000 a 30000 b 30000 c", reply: "[1 40000]", after: "0 a@30 z@40"},
		{name: "none, and one never expires", before: "0 a", args: "30000 b", reply: "[0 -1]", after: "0 a"},
		{name: "none since fewer were set", before: "-2 a@20", args: "30000 b", reply: "[0 20000]", after: "-2 a@20"},
		{name: "no permits", args: "30000 b", reply: "[-2 -1]"},
		{name: "expired", before: "0 a@-5 b@9 c@-1", args: "30000 d", reply: "[1 9000]", after: "1 b@9 d@30", published: "1"},
		{name: "expired, all taken again", before: "0 a@-5 b", args: "30000 d 30000 e", reply: "[1 -1]", after: "0 b d@30"},
		{name: "expired, since fewer were set", before: "-3 a@-5 b@-1", args: "30000 d", reply: "[0 -1]", after: "-1"},
		{name: "expired, of no permits", before: "a@-5", args: "30000 d", reply: "[-2 -1]", after: "a@-5"},
		{name: "a negative time", before: "0 z@-3000000000", args: "30000 d", reply: "[0 -1]", after: "0 z@-3000000000"},
		{name: "a negative time, and another", before: "0 b@9 z@-3000000000", args: "30000 d", reply: "[0 9000]", after: "0 b@9 z@-3000000000"},
		{
			name: "a negative time, and one expired", before: "0 a@-5 b@9 z@-3000000000", args: "30000 d", reply: "[1 9000]",
			after: "0 b@9 d@30 z@-3000000000",
		},
		{name: "one expired, some left", before: "1 a@0 b@9", args: "30000 d", reply: "[1 9000]", after: "1 b@9 d@30", published: "1"},
		{name: "they end", before: "2 ~60000", args: "30000 a", reply: "[1 -1]", after: "1 a@30 ~60000 ~60000"},
		{name: "wrong type", before: "x", args: "30000 a", reply: "-WRONGTYPE", after: "x"},
		{name: "several", before: "4", args: "30000 abc 5000 d", reply: "[2 -1]", after: "0 a@30 b@30 c@30 d@5"},
		{name: "several for the second", before: "2", args: "reserve 5000 a 30000 bc 5000 d", reply: "[1 -1]", after: "1 a@5"},
		{name: "several, not all free", before: "2 z@9", args: "30000 abc 5000 d", reply: "[0 9000]", after: "2 z@9"},
		{name: "reserved", before: "2 z@9", args: "reserve 30000 abc 5000 d", reply: "[0 9000]", after: "2 z@9 reserved@u"},
		{name: "reserved although none is free", before: "0 y@9 z@9", args: "reserve 30000 ab", reply: "[0 9000]", after: "0 y@9 z@9 reserved@u"},
		{name: "reserved, and expired", before: "0 y@-1 z@9", args: "reserve 30000 ab", reply: "[0 9000]", after: "1 z@9 reserved@u", published: "1"},
		{name: "not reserved: more than there are", before: "2 z@9", args: "reserve 30000 abcd", reply: "[0 9000]", after: "2 z@9"},
		{name: "not reserved for one", before: "0 z@9", args: "reserve 30000 a", reply: "[0 9000]", after: "0 z@9"},
		{name: "reserved on", before: "1 z@9 reserved@u", args: "reserve 30000 ab", reply: "[0 9000]", after: "1 z@9 reserved@u"},
		{name: "reserved for another", before: "2 z@9 reserved@v", args: "reserve 5000 a 30000 bc", reply: "[0 9000]", after: "2 z@9 reserved@v"},
		{name: "reserved for another, and expired", before: "1 y@-1 z@9 reserved@v", args: "5000 a", reply: "[0 9000]", after: "2 z@9 reserved@v", published: "2"},
		{name: "reserved until now", before: "3 reserved@u", args: "reserve 30000 abc", reply: "[1 -1]", after: "0 a@30 b@30 c@30"},
		{name: "reserved until now, some left", before: "4 reserved@u", args: "reserve 30000 abc 5000 de", reply: "[1 -1]", after: "1 a@30 b@30 c@30", published: "1"},
		{name: "reserved for a request that has left", before: "2 z@9 reserved@u", reply: "[0 9000]", after: "2 z@9", published: "2"},
		{name: "reserved for one that has left, and another is first", before: "2 z@9 reserved@u", args: "reserve 5000 a", reply: "[1 9000]", after: "1 a@5 z@9", published: "1"},
		{name: "reserved, and no permits", before: "reserved@u", args: "reserve 30000 ab", reply: "[-2 -1]"},
	}},
	{scripts.ExpirableRelease, []permitsRow{
		{name: "one", before: "3 a@9 b", args: "a", reply: "[1 received]", after: "4 b", published: "4"},
		{name: "one that has expired", before: "3 a@-9 b", args: "a", reply: "[1 received]", after: "4 b", published: "4"},
		{name: "a negative time", before: "3 a@-3000000000", args: "a", reply: "[0 0]", after: "3 a@-3000000000"},
		{name: "several, some gone", before: "3 a@9 b c", args: "a z c", reply: "[5 received]", after: "5 b", published: "2"},
		{name: "one twice", before: "3 a@9 b", args: "a a", reply: "[1 received]", after: "4 b", published: "4"},
		{name: "gone", before: "3 b", args: "a", reply: "[0 0]", after: "3 b"},
		{name: "too many", before: "-3 a@9 b", args: "a", reply: "[1 0]", after: "-2 b"},
		{name: "as many as were taken away", before: "-1 a@9 b", args: "a", reply: "[1 0]", after: "0 b"},
		{name: "of no permits", before: "a@9", args: "a", reply: "[1 0]"},
		{name: "while a restore waits", before: "a@9 b waits2@9", args: "a z", reply: "[1 0]", after: "b waits1@9"},
		{name: "while a restore waits, of another's", before: "a@9 b@9 waits0@9", args: "a b", reply: "[3 0]", after: "waits-2@9"},
		{name: "gone, while a restore waits", before: "b waits2@9", args: "a", reply: "[0 0]", after: "b waits2@9"},
		{name: "with a number, beside a restore", before: "3 a@9 waits1@9", args: "a", reply: "[1 received]", after: "4 waits1@9", published: "4"},
		{name: "of no permits, in another memory", before: "a@9 old1@9", args: "a", reply: "[1 0]", after: "old0@9"},
		{
			name: "32 at once", before: "0 a@9", reply: "[2147483648 received]", after: "1", published: "1",
			args: "z z z z z z z z z z z z z z z z z z z z z z z z z z z z z z z a",
		},
		{name: "wrong type", before: "x a@9", args: "a", reply: "-WRONGTYPE", after: "x a@9"},
		{name: "of holds with several", before: "0 a@9 b@9 c d", args: "ab c", reply: "[3 received]", after: "3 d", published: "3"},
		{name: "several, one gone", before: "0 a@9 c", args: "ab c", reply: "[2 received]", after: "2", published: "2"},
	}},
	{scripts.ExpirableRenew, []permitsRow{
		{name: "all", before: "1 a@9 b@40", args: "30000 a b", reply: "11", after: "1 a@30 b@30"},
		{name: "gone, expired, never expires", before: "1 b@-1 c", args: "30000 a b c", reply: "001", after: "1 b@-1 c@30"},
		{name: "expired just now", before: "1 a@0", args: "30000 a", reply: "0", after: "1 a@0"},
	}},
	{scripts.ExpirableSet, []permitsRow{
		{name: "try", args: "try 10", reply: "[1]", after: "10", published: "10"},
		{name: "try, there are some", before: "0 a", args: "try 10", reply: "[0]", after: "0 a"},
		{name: "try nothing", args: "try 0", reply: "[1]", after: "0"},
		{name: "try, the number is lost", before: "a@9 b", args: "try 10", reply: "[1]", after: "8 a@9 b", published: "10"},
		{name: "the number is lost", before: "a@9 b", args: "set 3", reply: "[1]", after: "1 a@9 b", published: "3"},
		{name: "more", before: "3 a b", args: "set 10", reply: "[1]", after: "8 a b", published: "10"},
		{name: "as many", before: "3 a b", args: "set 5", reply: "[1]", after: "3 a b"},
		{name: "fewer than taken", before: "3 a b", args: "set 1", reply: "[1]", after: "-1 a b", published: "1"},
		{name: "none", before: "3 a b", args: "set 0", reply: "[1]", after: "-2 a b"},
		{name: "the first", args: "set 5", reply: "[1]", after: "5", published: "5"},
		{name: "as many as can be", args: "set 2147483647", reply: "[1]", after: "2147483647", published: "2147483647"},
		{name: "add", before: "3 a b ~60000", args: "add 5", reply: "[1]", after: "8 a b ~60000", published: "5"},
		{name: "too many", before: "2147483640 a", args: "add 8", reply: "-BADVALUE there would be more than 2147483647 permits", after: "2147483640 a"},
		{name: "add the first", args: "add 5", reply: "[1]", after: "5", published: "5"},
		{name: "subtract", before: "3 a b", args: "add -5", reply: "[1]", after: "-2 a b"},
		{name: "delete", before: "10", args: "delete 0", reply: "[1]"},
		{name: "delete, all have expired", before: "8 a@-1 b@-9", args: "delete 0", reply: "[1]"},
		{name: "delete, one is taken", before: "8 a@-1 b@9", args: "delete 0", reply: "[0]", after: "8 a@-1 b@9"},
		{name: "delete, while a restore waits", before: "5 waits0@20", args: "delete 0", reply: "[1]"},
		{name: "delete nothing", before: "a@-1", args: "delete 0", reply: "[0]", after: "a@-1"},
		{name: "wrong type", before: "x", args: "set 5", reply: "-WRONGTYPE", after: "x"},
		{name: "a restore begins", before: "a@9 b", args: "restore 10 30000", reply: "[-30000]", after: "a@9 b waits2@30"},
		{name: "a restore waits", before: "a@9 waits1@20", args: "restore 10 30000", reply: "[-20000]", after: "a@9 waits1@20"},
		{name: "a restore waits, the clock was set back", before: "a@9 waits1@40", args: "restore 10 30000", reply: "[-30000]", after: "a@9 waits1@30"},
		{name: "a restore is due", before: "a@9 waits1@-1", args: "restore 10 30000 5000 b", reply: "[1]", after: "8 a@9 b@5", published: "10"},
		{name: "a restore is not due in another memory", before: "a@9 old1@-1", args: "restore 10 30000", reply: "[-30000]", after: "a@9 waits1@30"},
		{name: "a restore of another memory waits", before: "old0@20", args: "restore 10 30000", reply: "[-30000]", after: "waits0@30"},
		{name: "a permit has vanished until a restore is due", before: "a waits2@-1", args: "restore 10 30000", reply: "[-30000]", after: "a waits1@30"},
		{name: "the permits have vanished while a restore waits", before: "waits2@20", args: "restore 10 30000", reply: "[-30000]", after: "waits0@30"},
		{name: "permits have come while a restore waits", before: "a@9 waits-2@-1", args: "restore 10 30000", reply: "[-30000]", after: "a@9 waits1@30"},
		{name: "a restore, set since", before: "3 a@9 waits0@20", args: "restore 10 30000", reply: "[0]", after: "3 a@9"},
		{name: "set while a restore waits", before: "a@9 waits1@20", args: "set 5", reply: "[1]", after: "4 a@9", published: "5"},
		{name: "added while a restore waits", before: "a@9 waits1@20", args: "add 5", reply: "[1]", after: "5 a@9", published: "5"},
		{name: "as many, beside a restore", before: "3 a b waits0@9", args: "set 5", reply: "[1]", after: "3 a b"},
		{name: "tried while a restore of another memory waits", before: "old1@20", args: "try 5", reply: "[1]", after: "5", published: "5"},
	}},
	{scripts.ExpirableInspect, []permitsRow{
		{name: "some", before: "1 a@-1 b@9 c", reply: "[2 2 4 set]", after: "1 a@-1 b@9 c"},
		{name: "expired just now", before: "1 a@0 b@9", reply: "[2 1 3 set]", after: "1 a@0 b@9"},
		{name: "none", before: "0", reply: "[0 0 0 set]", after: "0"},
		{name: "no number is set", reply: "[0 0 0 ]"},
	}},
}
