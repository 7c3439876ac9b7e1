package scripts_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// renewals are what one lock may look like when the owner "a" renews it for 60 s.
var renewals = []struct{ name, before, reply, after string }{
	{"own", "a=1 30000", "1", "a=1 60000"},
	{"own, held thrice", "a=3 30000", "1", "a=3 60000"},
	{"own, without a TTL", "a=1", "1", "a=1 60000"},
	{"own, longer lease", "a=1 90000", "1", "a=1 60000"},
	{"gone", "", "0", ""},
	{"other", "b=1 30000", "-1", "b=1 30000"},
	{"other, without a TTL", "b=1", "-1", "b=1"},
	{"wrong type", "'x' 30000", "-1", "'x' 30000"},
	{"own, behind the bad ones", "a=1 30000", "1", "a=1 60000"},
}

func TestRenewOne(t *testing.T) {
	var rows []row
	for _, r := range renewals {
		rows = append(rows, row{name: r.name, before: r.before, args: "a 60000", reply: "[" + r.reply + "]", after: r.after})
	}
	check(t, scripts.Renew, false, rows)
}

// Each lock of a batch is renewed, or not, as it would be alone.
func TestRenewMany(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.Renew)
		start := time.Now()
		var keys, args, replies []string
		for _, r := range renewals {
			key := redistest.Name(t)
			db.put(t, key, r.before)
			keys = append(keys, key)
			args = append(args, "a", "60000")
			replies = append(replies, r.reply)
		}
		for range 2 {
			want := "[" + strings.Join(replies, " ") + "]"
			if reply := db.run(t, scripts.Renew, keys, args); reply != want {
				t.Errorf("reply %s, want %s", reply, want)
			}
			for i, r := range renewals {
				if state := db.state(t, keys[i], r.after, start); state != r.after {
					t.Errorf("%s: state %q, want %q", r.name, state, r.after)
				}
				if heard := db.messages(t, channelOf(keys[i])); heard != nil {
					t.Errorf("%s: published %q", r.name, heard)
				}
			}
		}
	})
}

// Each lock gets the lease and is asked for the owner that stand beside its key.
func TestRenewPairsArguments(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.Renew)
		start := time.Now()
		var keys, args []string
		for i := range 100 {
			keys = append(keys, redistest.Name(t))
			args = append(args, fmt.Sprint("o", i), fmt.Sprint(60000+1000*i))
			db.put(t, keys[i], fmt.Sprintf("o%d=%d 30000", i, i+1))
		}
		if reply, want := db.run(t, scripts.Renew, keys, args), "[1"+strings.Repeat(" 1", 99)+"]"; reply != want {
			t.Errorf("reply %s", reply)
		}
		for i, key := range keys {
			want := fmt.Sprintf("o%d=%d %d", i, i+1, 60000+1000*i)
			if state := db.state(t, key, want, start); state != want {
				t.Errorf("lock %d: state %q, want %q", i, state, want)
			}
		}
	})
}

func TestRenewNone(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.Renew)
		if reply := db.run(t, scripts.Renew, nil, nil); reply != "[]" {
			t.Errorf("reply %s", reply)
		}
	})
}
