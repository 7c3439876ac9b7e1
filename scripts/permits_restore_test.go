package scripts_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A lost number of permits is restored when all leases that Redis may have lost are over. Permits that the
// client still holds stay taken.
func TestPermitsSet_RestoresWhenLeasesAreOver(t *testing.T) {
	eachRedis(t, func(t *testing.T, d *db) {
		const lease = 300 * time.Millisecond
		for _, row := range []struct{ name, before, own, after string }{
			{"nothing is left", "", "", "10"},
			{"the client's own permits", "", "30000 a 9000 b", "8"},
			{"permits that are still there", "a c", "30000 a 9000 b", "7"},
			{"set since", "3 c", "30000 a", "3"},
		} {
			lock, number := redistest.Name(t), 0
			d.putPermits(t, lock, row.before, time.Now())
			keys := []string{lock, keyspace.Taken(lock), keyspace.Calls(lock) + ":u", keyspace.Calls(lock) + ":restore"}
			restore := func() int {
				t.Helper()
				number++
				args := []string{strconv.Itoa(number), keyspace.PermitsChannel(lock), "restore", "10", strconv.FormatInt(lease.Milliseconds(), 10)}
				for word := range strings.FieldsSeq(row.own) {
					if len(word) == 1 {
						word = strings.Repeat(word, 16)
					}
					args = append(args, word)
				}
				reply := d.run(t, scripts.PermitsSet, keys, args)
				if again := d.run(t, scripts.PermitsSet, keys, args); again != reply {
					t.Errorf("%s: reply %s, and then %s", row.name, reply, again)
				}
				n, err := strconv.Atoi(strings.Trim(reply, "[]"))
				if err != nil {
					t.Fatal(reply)
				}
				return n
			}
			began := time.Now()
			n := restore()
			if row.name == "set since" {
				if n != 0 || d.do(t, "GET", lock) != row.after {
					t.Errorf("%s: reply %d", row.name, n)
				}
				continue
			}
			if n != -int(lease.Milliseconds()) || d.do(t, "EXISTS", lock) != "0" {
				t.Errorf("%s: reply %d at first", row.name, n)
			}
			for n < 0 {
				time.Sleep(time.Duration(-n) * time.Millisecond)
				n = restore()
			}
			if after := time.Since(began); n != 1 || after < lease {
				t.Errorf("%s: reply %d after %v", row.name, n, after)
			}
			if got := d.do(t, "GET", lock); got != row.after {
				t.Errorf("%s: %s are free, want %s", row.name, got, row.after)
			}
			// Each loss has its own wait, however the number was set after the previous one.
			for _, how := range []string{"", "try", "set", "add"} {
				if d.must(t, "DEL", lock, keyspace.Taken(lock)); how != "" {
					restore()
					number++
					if reply := d.run(t, scripts.PermitsSet, keys, []string{strconv.Itoa(number), keyspace.PermitsChannel(lock), how, "7"}); reply != "[1]" {
						t.Errorf("%s: reply %s to %s", row.name, reply, how)
					}
					d.must(t, "DEL", lock)
				}
				if n := restore(); n != -int(lease.Milliseconds()) {
					t.Errorf("%s: reply %d after another loss (%s)", row.name, n, how)
				}
			}
		}
	})
}
