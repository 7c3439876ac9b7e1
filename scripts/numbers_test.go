package scripts_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Values of a synchronizer's key: those that its scripts can calculate with, and others. A latch allows larger
// ones than permits.
var (
	permitCounts = []string{"-2147483647", "-1", "0", "7", "2147483647"}
	latchCounts  = append(permitCounts, "2147483648", "9007199254740990", "9007199254740991")
	noCounts     = []string{
		"9007199254740992", "9223372036854775295", "9223372036854775807", "-9007199254740992", "-9223372036854775808",
		"99999999999999999999", "007", "-0", "+1", " 1", "1 ", "1.5", "1e3", "0x10", "", "inf", "nan", "text", "1\n",
	}
)

// isNumber matches what may be a number. Other values belong to another application: no error shows them.
var isNumber = regexp.MustCompile(`^-?\d{1,20}$`)

// Every number of a synchronizer is exact, or is refused with its text and changes nothing.
func TestNumbers_AreExactOrRefused(t *testing.T) {
	type use struct {
		script  *scripts.Script
		args    []string // after the command's number
		replies []string // to permitCounts, or to latchCounts
	}
	permits := []use{
		{
			scripts.SemaphoreAcquire, []string{"queue:", "5000 1 0", "client", "", "1"},
			[]string{"[0 -2147483647]", "[0 -1]", "[0 0]", "[1 6]", "[1 2147483646]"},
		},
		{
			scripts.SemaphoreAdd, []string{"1", "0", "channel", "queue:", "5000 1 0", "client", "0"},
			[]string{"[1 -2147483646]", "[1 0]", "[1 1]", "[1 8]", "-BADVALUE"},
		},
		{
			scripts.SemaphoreAdd, []string{"-1", "0", "channel", "queue:", "5000 1 0", "client", "0"},
			[]string{"-BADVALUE", "[1 -2]", "[1 -1]", "[1 6]", "[1 2147483646]"},
		},
		{
			scripts.SemaphoreYield, []string{"1", "channel", "queue:", "5000 1 0", "client", "1"},
			[]string{"[1 -2147483646]", "[1 0]", "[1 1]", "[1 8]", "-BADVALUE"},
		},
		{scripts.SemaphoreSet, []string{"3", "0", "channel"}, []string{"[0 -2147483647]", "[0 -1]", "[0 0]", "[0 7]", "[0 2147483647]"}},
		{scripts.SemaphoreDrain, nil, []string{"[-2147483647]", "[-1]", "[0]", "[7]", "[2147483647]"}},
		{scripts.SemaphoreInspect, nil, []string{"[-2147483647 -1]", "[-1 -1]", "[0 -1]", "[7 -1]", "[2147483647 -1]"}},
		{scripts.ExpirableAcquire, []string{"channel", "kept:", "0", "30000", "1", "id"}, []string{"[0 -1]", "[0 -1]", "[0 -1]", "[1 -1]", "[1 -1]"}},
		{
			scripts.ExpirableRelease, []string{"channel", "restore", "1", "taken-taken-take"},
			[]string{"[1 0]", "[1 0]", "[1 0]", "[1 0]", "-BADVALUE"},
		},
		{scripts.ExpirableSet, []string{"channel", "try", "3"}, []string{"[0]", "[0]", "[0]", "[0]", "[0]"}},
		{scripts.ExpirableSet, []string{"channel", "add", "1"}, []string{"[1]", "[1]", "[1]", "[1]", "-BADVALUE"}},
		{
			scripts.ExpirableInspect, nil,
			[]string{"[-2147483647 1 -2147483646 set]", "[-1 1 0 set]", "[0 1 1 set]", "[7 1 8 set]", "[2147483647 1 2147483648 set]"},
		},
	}
	latches := []use{
		{
			scripts.LatchSet, []string{"3", "channel"},
			[]string{"[0 -2147483647]", "[0 -1]", "[0 0]", "[0 7]", "[0 2147483647]", "[0 2147483648]", "[0 9007199254740990]", "[0 9007199254740991]"},
		},
		{
			scripts.LatchCountDown, []string{"channel", "1"},
			[]string{"[0]", "[0]", "[0]", "[6]", "[2147483646]", "[2147483647]", "[9007199254740989]", "[9007199254740990]"},
		},
		{scripts.LatchInspect, nil, []string{"0", "0", "0", "7", "2147483647", "2147483648", "9007199254740990", "9007199254740991"}},
	}
	d := onRedis(t)
	check := func(u use, value, want string) {
		t.Helper()
		lock := redistest.Name(t)
		record, taken := keyspace.Calls(lock)+":u", keyspace.Taken(lock)
		keys, args := []string{lock, record}, append([]string{"1"}, u.args...)
		switch u.script {
		case scripts.SemaphoreInspect:
			keys, args = keys[:1], nil
		case scripts.LatchInspect:
			keys, args = keys[:1], nil
		case scripts.LatchCountDown:
			keys = append(keys, keyspace.Counted(lock))
		case scripts.ExpirableInspect:
			keys, args = []string{lock, taken}, nil
		case scripts.ExpirableAcquire, scripts.ExpirableRelease:
			keys = []string{lock, taken, record}
		case scripts.ExpirableSet:
			keys = []string{lock, taken, record, restoreKey(lock)}
		}
		if strings.HasPrefix(u.script.Name, "expirable_") {
			d.must(t, "ZADD", taken, "1e15", "taken-taken-take")
		}
		d.must(t, "SET", lock, value)
		for run := range 2 {
			reply := d.run(t, u.script, keys, args)
			if refused := strings.HasPrefix(reply, "-"); refused != (want[0] == '-') || !refused && reply != want {
				t.Errorf("%s of %q, run %d: reply %q, want %q", u.script.Name, value, run, reply, want)
			} else if shown := strings.Contains(reply, `is "`+value+`"`); refused && want == "-" && shown != isNumber.MatchString(value) {
				t.Errorf("%s of %q: the refusal shows the value: %v: %s", u.script.Name, value, shown, reply)
			}
		}
		if want[0] != '-' {
			return
		}
		if got := d.do(t, "GET", lock); got != value {
			t.Errorf("%s of %q: it is %q now", u.script.Name, value, got)
		}
		if got := d.do(t, "EXISTS", record); got != "0" {
			t.Errorf("%s of %q: there is a record of the refused command", u.script.Name, value)
		}
	}
	for _, of := range []struct {
		uses    []use
		refused []string
	}{{permits, append(noCounts, latchCounts[len(permitCounts):]...)}, {latches, noCounts}} {
		for _, u := range of.uses {
			for i, want := range u.replies {
				check(u, latchCounts[i], want) // which begin with permitCounts
			}
			for _, value := range of.refused {
				check(u, value, "-")
			}
		}
	}
}

// An explicit number replaces one that is refused, but no other text.
func TestPermitsSet_ReplacesABadNumber(t *testing.T) {
	d := onRedis(t)
	for _, value := range noCounts {
		lock := redistest.Name(t)
		taken := keyspace.Taken(lock)
		d.must(t, "ZADD", taken, "9e14", "taken-taken-take")
		d.must(t, "SET", lock, value)
		want := "9"
		if !isNumber.MatchString(value) {
			want = value
		}
		d.run(t, scripts.ExpirableSet, []string{lock, taken, keyspace.Calls(lock) + ":u", restoreKey(lock)}, []string{"1", "channel", "set", "10"})
		if got := d.do(t, "GET", lock); got != want {
			t.Errorf("%q is %q after 10 permits were set, one of them taken; want %q", value, got, want)
		}
	}
}

// A large hold count does not make the loop over read leases long, and a count that is not a number keeps the lock.
func TestHoldCounts_AreBounded(t *testing.T) {
	d := onRedis(t)
	for value, want := range map[string]string{"9007199254740993": "1", "9223372036854775807": "1", "1e9": "1", "007": "1", "100000000": "0", "-1": "1"} {
		for _, field := range []string{"v:1", "u:1"} {
			lock := redistest.Name(t)
			d.must(t, "HSET", lock, "mode", "read", "u:1", "1", field, value)
			d.must(t, "PEXPIRE", lock, "60000")
			keys := []string{lock}
			args := []string{"u:1", keyspace.Holds(lock), "channel", keyspace.WaitQueue(lock), "500 1 0"}
			if reply := d.run(t, scripts.ReadWriteRelease, keys, args); reply != "0" {
				t.Errorf("a release with %s=%s: reply %q", field, value, reply)
			}
			if field == "u:1" {
				want = "0" // the owner has left, whatever its count was
			}
			if got := d.do(t, "EXISTS", lock); got != want {
				t.Errorf("after a release with %s=%s, %s locks are there, want %s", field, value, got, want)
			}
		}
	}
}

// A renewal sets at most as many leases as a process may have, whatever its hold count says, and renews the other
// locks.
func TestReadWriteRenew_LimitsLeases(t *testing.T) {
	d := onRedis(t)
	for _, count := range []string{"3000000", "1000000000", "inf", "nan", "-1", "1.5", "x", ""} {
		var locks, args []string
		for _, holds := range []string{count, "1"} {
			lock := redistest.Name(t)
			d.must(t, "HSET", lock, "mode", "read", "u:1", holds)
			d.must(t, "PEXPIRE", lock, "60000")
			locks, args = append(locks, lock), append(args, "u:1", "90000", keyspace.Holds(lock))
		}
		if reply := d.run(t, scripts.ReadWriteRenew, locks, args); reply != "[1 1]" {
			t.Errorf("a renewal of %q read holds: reply %s", count, reply)
		}
		if n := d.do(t, "EXISTS", keyspace.Holds(locks[0])+":u:1:rwlock_timeout:10001"); n != "0" {
			t.Errorf("a renewal of %q read holds sets more than 10000 leases", count)
		}
		if left := number(t, d.do(t, "PTTL", locks[1])); left <= 60000 {
			t.Errorf("a renewal with %q read holds: %d ms are left", count, left)
		}
		// Other tests on this server list all keys.
		d.must(t, "EVAL", "for n = 1, 10000 do redis.call('DEL', ARGV[1] .. n) end", "0", keyspace.Holds(locks[0])+":u:1:rwlock_timeout:")
	}
}
