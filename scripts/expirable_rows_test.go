package scripts_test

import "github.com/lockkeeper-go/lockkeeper/scripts"

// The signs in these rows: see state_test.go.

// permitsRow is a call of a script about permits. The arguments "30000 ab 5000 c" of an acquire are two requests: two
// permits for 30 s, and one for 5 s; "reserve" comes first if the first request waits. "ab c" of a release are two
// holds.
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
		{name: "enough", before: "free 3", args: "30000 b 5000 a", reply: "[2 -1]", after: "free 1, taken a@5s b@30s"},
		{name: "not for all", before: "free 1, taken z@40s", args: "30000 a 30000 b 30000 c", reply: "[1 40000]", after: "free 0, taken a@30s z@40s"},
		{name: "none, and one never expires", before: "free 0, taken a", args: "30000 b", reply: "[0 -1]", after: "free 0, taken a"},
		{name: "none since fewer were set", before: "free -2, taken a@20s", args: "30000 b", reply: "[0 20000]", after: "free -2, taken a@20s"},
		{name: "no permits", args: "30000 b", reply: "[-2 -1]"},
		{name: "expired", before: "free 0, taken a@-5s b@9s c@-1s", args: "30000 d", reply: "[1 9000]", after: "free 1, taken b@9s d@30s", published: "permits=1"},
		{name: "expired, all taken again", before: "free 0, taken a@-5s b", args: "30000 d 30000 e", reply: "[1 -1]", after: "free 0, taken b d@30s"},
		{name: "expired, since fewer were set", before: "free -3, taken a@-5s b@-1s", args: "30000 d", reply: "[0 -1]", after: "free -1"},
		{name: "expired, of no permits", before: "taken a@-5s", args: "30000 d", reply: "[-2 -1]", after: "taken a@-5s"},
		{name: "a negative time", before: "free 0, taken z@-3000000000s", args: "30000 d", reply: "[0 -1]", after: "free 0, taken z@-3000000000s"},
		{name: "a negative time, and another", before: "free 0, taken b@9s z@-3000000000s", args: "30000 d", reply: "[0 9000]", after: "free 0, taken b@9s z@-3000000000s"},
		{
			name: "a negative time, and one expired", before: "free 0, taken a@-5s b@9s z@-3000000000s", args: "30000 d", reply: "[1 9000]",
			after: "free 0, taken b@9s d@30s z@-3000000000s",
		},
		{name: "one expired, some left", before: "free 1, taken a@0s b@9s", args: "30000 d", reply: "[1 9000]", after: "free 1, taken b@9s d@30s", published: "permits=1"},
		{name: "they end", before: "free 2 60s", args: "30000 a", reply: "[1 -1]", after: "free 1 60s, taken a@30s 60s"},
		{name: "wrong type", before: "free x", args: "30000 a", reply: "-WRONGTYPE", after: "free x"},
		{name: "several", before: "free 4", args: "30000 abc 5000 d", reply: "[2 -1]", after: "free 0, taken a@30s b@30s c@30s d@5s"},
		{name: "several for the second", before: "free 2", args: "reserve 5000 a 30000 bc 5000 d", reply: "[1 -1]", after: "free 1, taken a@5s"},
		{name: "several, not all free", before: "free 2, taken z@9s", args: "30000 abc 5000 d", reply: "[0 9000]", after: "free 2, taken z@9s"},
		{name: "reserved", before: "free 2, taken z@9s", args: "reserve 30000 abc 5000 d", reply: "[0 9000]", after: "free 2, taken z@9s, reserved u"},
		{name: "reserved although none is free", before: "free 0, taken y@9s z@9s", args: "reserve 30000 ab", reply: "[0 9000]", after: "free 0, taken y@9s z@9s, reserved u"},
		{name: "reserved, and expired", before: "free 0, taken y@-1s z@9s", args: "reserve 30000 ab", reply: "[0 9000]", after: "free 1, taken z@9s, reserved u", published: "permits=1"},
		{name: "not reserved: more than there are", before: "free 2, taken z@9s", args: "reserve 30000 abcd", reply: "[0 9000]", after: "free 2, taken z@9s"},
		{name: "not reserved for one", before: "free 0, taken z@9s", args: "reserve 30000 a", reply: "[0 9000]", after: "free 0, taken z@9s"},
		{name: "reserved on", before: "free 1, taken z@9s, reserved u", args: "reserve 30000 ab", reply: "[0 9000]", after: "free 1, taken z@9s, reserved u"},
		{name: "reserved for another", before: "free 2, taken z@9s, reserved v", args: "reserve 5000 a 30000 bc", reply: "[0 9000]", after: "free 2, taken z@9s, reserved v"},
		{
			name: "reserved for another, and expired", args: "5000 a", reply: "[0 9000]", published: "permits=2",
			before: "free 1, taken y@-1s z@9s, reserved v", after: "free 2, taken z@9s, reserved v",
		},
		{name: "reserved until now", before: "free 3, reserved u", args: "reserve 30000 abc", reply: "[1 -1]", after: "free 0, taken a@30s b@30s c@30s"},
		{
			name: "reserved until now, some left", args: "reserve 30000 abc 5000 de", reply: "[1 -1]", published: "permits=1",
			before: "free 4, reserved u", after: "free 1, taken a@30s b@30s c@30s",
		},
		{name: "reserved for a request that has left", before: "free 2, taken z@9s, reserved u", reply: "[0 9000]", after: "free 2, taken z@9s", published: "permits=2"},
		{
			name: "reserved for one that has left, and another is first", args: "reserve 5000 a", reply: "[1 9000]", published: "permits=1",
			before: "free 2, taken z@9s, reserved u", after: "free 1, taken a@5s z@9s",
		},
		{name: "reserved, and no permits", before: "reserved u", args: "reserve 30000 ab", reply: "[-2 -1]"},
	}},
	{scripts.ExpirableRelease, []permitsRow{
		{name: "one", before: "free 3, taken a@9s b", args: "a", reply: "[1 received]", after: "free 4, taken b", published: "permits=4"},
		{name: "one that has expired", before: "free 3, taken a@-9s b", args: "a", reply: "[1 received]", after: "free 4, taken b", published: "permits=4"},
		{name: "a negative time", before: "free 3, taken a@-3000000000s", args: "a", reply: "[0 0]", after: "free 3, taken a@-3000000000s"},
		{name: "several, some gone", before: "free 3, taken a@9s b c", args: "a z c", reply: "[5 received]", after: "free 5, taken b", published: "permits=2"},
		{name: "one twice", before: "free 3, taken a@9s b", args: "a a", reply: "[1 received]", after: "free 4, taken b", published: "permits=4"},
		{name: "gone", before: "free 3, taken b", args: "a", reply: "[0 0]", after: "free 3, taken b"},
		{name: "too many", before: "free -3, taken a@9s b", args: "a", reply: "[1 0]", after: "free -2, taken b"},
		{name: "as many as were taken away", before: "free -1, taken a@9s b", args: "a", reply: "[1 0]", after: "free 0, taken b"},
		{name: "of no permits", before: "taken a@9s", args: "a", reply: "[1 0]"},
		{name: "while a restore waits", before: "taken a@9s b, restore 2@9s", args: "a z", reply: "[1 0]", after: "taken b, restore 1@9s"},
		{name: "while a restore waits, of another's", before: "taken a@9s b@9s, restore 0@9s", args: "a b", reply: "[3 0]", after: "restore -2@9s"},
		{name: "gone, while a restore waits", before: "taken b, restore 2@9s", args: "a", reply: "[0 0]", after: "taken b, restore 2@9s"},
		{name: "with a number and a restore", before: "free 3, taken a@9s, restore 1@9s", args: "a", reply: "[1 received]", after: "free 4, restore 1@9s", published: "permits=4"},
		{name: "of no permits, in another memory", before: "taken a@9s, restore old1@9s", args: "a", reply: "[1 0]", after: "restore old0@9s"},
		{
			name: "32 at once", before: "free 0, taken a@9s", reply: "[2147483648 received]", after: "free 1", published: "permits=1",
			args: "z z z z z z z z z z z z z z z z z z z z z z z z z z z z z z z a",
		},
		{name: "wrong type", before: "free x, taken a@9s", args: "a", reply: "-WRONGTYPE", after: "free x, taken a@9s"},
		{name: "of holds with several", before: "free 0, taken a@9s b@9s c d", args: "ab c", reply: "[3 received]", after: "free 3, taken d", published: "permits=3"},
		{name: "several, one gone", before: "free 0, taken a@9s c", args: "ab c", reply: "[2 received]", after: "free 2", published: "permits=2"},
	}},
	{scripts.ExpirableRenew, []permitsRow{
		{name: "all", before: "free 1, taken a@9s b@40s", args: "30000 a b", reply: "11", after: "free 1, taken a@30s b@30s"},
		{name: "gone, expired, never expires", before: "free 1, taken b@-1s c", args: "30000 a b c", reply: "001", after: "free 1, taken b@-1s c@30s"},
		{name: "expired just now", before: "free 1, taken a@0s", args: "30000 a", reply: "0", after: "free 1, taken a@0s"},
	}},
	{scripts.ExpirableSet, []permitsRow{
		{name: "try", args: "try 10", reply: "[1]", after: "free 10", published: "permits=10"},
		{name: "try, there are some", before: "free 0, taken a", args: "try 10", reply: "[0]", after: "free 0, taken a"},
		{name: "try nothing", args: "try 0", reply: "[1]", after: "free 0"},
		{name: "try, the number is lost", before: "taken a@9s b", args: "try 10", reply: "[1]", after: "free 8, taken a@9s b", published: "permits=10"},
		{name: "the number is lost", before: "taken a@9s b", args: "set 3", reply: "[1]", after: "free 1, taken a@9s b", published: "permits=3"},
		{name: "more", before: "free 3, taken a b", args: "set 10", reply: "[1]", after: "free 8, taken a b", published: "permits=10"},
		{name: "as many", before: "free 3, taken a b", args: "set 5", reply: "[1]", after: "free 3, taken a b"},
		{name: "fewer than taken", before: "free 3, taken a b", args: "set 1", reply: "[1]", after: "free -1, taken a b", published: "permits=1"},
		{name: "none", before: "free 3, taken a b", args: "set 0", reply: "[1]", after: "free -2, taken a b"},
		{name: "the first", args: "set 5", reply: "[1]", after: "free 5", published: "permits=5"},
		{name: "as many as can be", args: "set 2147483647", reply: "[1]", after: "free 2147483647", published: "permits=2147483647"},
		{name: "add", before: "free 3 60s, taken a b", args: "add 5", reply: "[1]", after: "free 8 60s, taken a b", published: "permits=5"},
		{name: "too many", before: "free 2147483640, taken a", args: "add 8", reply: "-BADVALUE there would be more than 2147483647 permits", after: "free 2147483640, taken a"},
		{name: "add the first", args: "add 5", reply: "[1]", after: "free 5", published: "permits=5"},
		{name: "subtract", before: "free 3, taken a b", args: "add -5", reply: "[1]", after: "free -2, taken a b"},
		{name: "delete", before: "free 10", args: "delete 0", reply: "[1]"},
		{name: "delete, all have expired", before: "free 8, taken a@-1s b@-9s", args: "delete 0", reply: "[1]"},
		{name: "delete, one is taken", before: "free 8, taken a@-1s b@9s", args: "delete 0", reply: "[0]", after: "free 8, taken a@-1s b@9s"},
		{name: "delete, while a restore waits", before: "free 5, restore 0@20s", args: "delete 0", reply: "[1]"},
		{name: "delete nothing", before: "taken a@-1s", args: "delete 0", reply: "[0]", after: "taken a@-1s"},
		{name: "wrong type", before: "free x", args: "set 5", reply: "-WRONGTYPE", after: "free x"},
		{name: "a restore begins", before: "taken a@9s b", args: "restore 10 30000", reply: "[-30000]", after: "taken a@9s b, restore 2@30s"},
		{name: "a restore waits", before: "taken a@9s, restore 1@20s", args: "restore 10 30000", reply: "[-20000]", after: "taken a@9s, restore 1@20s"},
		{name: "a restore waits, the clock was set back", before: "taken a@9s, restore 1@40s", args: "restore 10 30000", reply: "[-30000]", after: "taken a@9s, restore 1@30s"},
		{name: "a restore is due", before: "taken a@9s, restore 1@-1s", args: "restore 10 30000 5000 b", reply: "[1]", after: "free 8, taken a@9s b@5s", published: "permits=10"},
		{name: "a restore is not due in another memory", before: "taken a@9s, restore old1@-1s", args: "restore 10 30000", reply: "[-30000]", after: "taken a@9s, restore 1@30s"},
		{name: "a restore of another memory waits", before: "restore old0@20s", args: "restore 10 30000", reply: "[-30000]", after: "restore 0@30s"},
		{name: "a permit has vanished until a restore is due", before: "taken a, restore 2@-1s", args: "restore 10 30000", reply: "[-30000]", after: "taken a, restore 1@30s"},
		{name: "the permits have vanished while a restore waits", before: "restore 2@20s", args: "restore 10 30000", reply: "[-30000]", after: "restore 0@30s"},
		{name: "permits have come while a restore waits", before: "taken a@9s, restore -2@-1s", args: "restore 10 30000", reply: "[-30000]", after: "taken a@9s, restore 1@30s"},
		{name: "a restore, set since", before: "free 3, taken a@9s, restore 0@20s", args: "restore 10 30000", reply: "[0]", after: "free 3, taken a@9s"},
		{name: "set while a restore waits", before: "taken a@9s, restore 1@20s", args: "set 5", reply: "[1]", after: "free 4, taken a@9s", published: "permits=5"},
		{name: "added while a restore waits", before: "taken a@9s, restore 1@20s", args: "add 5", reply: "[1]", after: "free 5, taken a@9s", published: "permits=5"},
		{name: "as many, with a restore that waits", before: "free 3, taken a b, restore 0@9s", args: "set 5", reply: "[1]", after: "free 3, taken a b"},
		{name: "tried while a restore of another memory waits", before: "restore old1@20s", args: "try 5", reply: "[1]", after: "free 5", published: "permits=5"},
	}},
	{scripts.ExpirableInspect, []permitsRow{
		{name: "some", before: "free 1, taken a@-1s b@9s c", reply: "[2 2 4 set]", after: "free 1, taken a@-1s b@9s c"},
		{name: "expired just now", before: "free 1, taken a@0s b@9s", reply: "[2 1 3 set]", after: "free 1, taken a@0s b@9s"},
		{name: "none", before: "free 0", reply: "[0 0 0 set]", after: "free 0"},
		{name: "no number is set", reply: "[0 0 0 ]"},
	}},
}
