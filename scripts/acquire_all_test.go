package scripts_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A member is written as its kind, and the state of its lock: "plain a=1 30000". Behind
// a slash is what is beside the hash: the counter of a fenced lock, the queue of a fair
// one; a read/write lock's state has it with it.
type member struct{ kind, before, after string }

type allRow struct {
	name    string
	members []member
	reply   string // to "u:1" for 30 s, with 5 tokens of each fenced lock
	again   string // the second reply, if it differs
}

func checkAll(t *testing.T, rows []allRow) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.AcquireAll)
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				start := time.Now()
				args := []string{"u:1", "30000", "5"}
				var names, keys []string
				for _, m := range r.members {
					name := redistest.Name(t)
					names = append(names, name)
					db.putMember(t, name, m.kind, m.before, start)
					switch m.kind {
					case "fenced":
						keys = append(keys, name, tokensOf(name), name)
					case "fair":
						keys = append(keys, name, queueOf(name), timeoutsOf(name))
					default:
						keys = append(keys, name, name, name)
					}
					args = append(args, m.kind, "{"+name+"}", writerOf(name))
				}
				for i, want := range []string{r.reply, r.again} {
					if want == "" {
						want = r.reply
					}
					reply := db.run(t, scripts.AcquireAll, keys, args)
					if got := settleSecond(reply, want, start); got != want && !isError(got, want) {
						t.Errorf("run %d: reply %q, want %q", i, got, want)
					}
					for k, m := range r.members {
						if i == 1 && m.kind == "fenced" && strings.HasPrefix(reply, "[1") {
							continue // it has later tokens
						}
						if got := db.member(t, names[k], m.kind, m.after, start); got != m.after {
							t.Errorf("run %d: %s %q, want %q", i, m.kind, got, m.after)
						}
					}
					if got := db.told(t, "redisson_"); got != nil {
						t.Errorf("run %d: told %q", i, got)
					}
				}
			})
		}
	})
}

func (d *db) putMember(t *testing.T, name, kind, state string, start time.Time) {
	t.Helper()
	lock, beside, _ := strings.Cut(state, "/")
	d.putRW(t, name, lock)
	if kind == "fair" {
		d.putQueue(t, name, beside, start)
	} else {
		d.put(t, tokensOf(name), beside)
	}
}

func (d *db) member(t *testing.T, name, kind, want string, start time.Time) string {
	t.Helper()
	lock, beside, _ := strings.Cut(want, "/")
	state := d.stateRW(t, name, lock, start)
	if kind == "fair" {
		beside = d.queue(t, name, beside, start)
	} else {
		beside = d.state(t, tokensOf(name), beside, start)
	}
	if beside != "" {
		state += "/" + beside
	}
	return state
}

func TestAcquireAll(t *testing.T) {
	checkAll(t, []allRow{
		{name: "all kinds", reply: "[1 0 5,12 ]", again: "[1 0 10,17 ]", members: []member{
			{"plain", "", "u:1=1 30000"},
			{"fenced", "", "u:1=1 30000/'5'"},
			{"fair", "", "u:1=1 30000"},
			{"read", "", "mode=read u:1=1 30000, u:1#1 30000"},
			{"fenced", "/'7'", "u:1=1 30000/'12'"},
			{"write", "", "mode=write u:1:write=1 30000"},
		}},
		{name: "own, from an earlier request", reply: "[1 0 12 ]", again: "[1 0 17 ]", members: []member{
			{"plain", "u:1=1 20000", "u:1=1 30000"},
			{"fenced", "u:1=1 20000/'7'", "u:1=1 30000/'12'"},
			{"fair", "u:1=1 20000/v:1@300", "u:1=1 30000/v:1@300"},
			{"read", "mode=read u:1=1 20000, u:1#1 20000, !v:1 5000", "mode=read u:1=1 30000, u:1#1 30000, !v:1 5000"},
			{"write", "mode=write u:1:write=1 20000", "mode=write u:1:write=1 30000"},
		}},
		{name: "a counter that would end", reply: "[1 0 12 ]", again: "[1 0 17 ]", members: []member{{"fenced", "/'7' 60000", "u:1=1 30000/'12'"}}},
		{name: "a queue of the dead", reply: "[1 0  ]", members: []member{{"fair", "/v:1@-5 w:1 x:1@-7", "u:1=1 30000"}}},
		{name: "among readers", reply: "[1 0  ]", members: []member{
			{"read", "mode=read v:1=1 60000, v:1#1 60000", "mode=read u:1=1 v:1=1 60000, u:1#1 30000, v:1#1 60000"},
			{"read", "mode=read v:1=1 20000, v:1#1 20000", "mode=read u:1=1 v:1=1 30000, u:1#1 30000, v:1#1 20000"},
			{"read", "mode=read v:1=1 20000, v:1#1 20000, !u:9 5000", "mode=read u:1=1 v:1=1 30000, u:1#1 30000, v:1#1 20000, !u:9 5000"},
		}},
		{name: "a writer that had announced itself", reply: "[1 0  ]", members: []member{
			{"write", "!u:1 5000", "mode=write u:1:write=1 30000"},
			{"write", "!v:1 5000", "mode=write u:1:write=1 30000, !v:1 5000"},
		}},
		{name: "none", reply: "[1 0  ]"},
	})
}

// Whoever refuses, the others stay as they are: all the kinds stand around it.
func TestAcquireAllRefused(t *testing.T) {
	free := []member{{"plain", "", ""}, {"fenced", "/'7' 60000", "/'7' 60000"}, {"fair", "/v:1@-5", "/v:1@-5"}, {"read", "", ""}, {"write", "!u:1 5000", "!u:1 5000"}}
	var rows []allRow
	for _, r := range []struct{ name, kind, state, reply string }{
		{"plain", "plain", "v:1=2 40000", "[0 40000 v:1 %d]"},
		{"plain, without an end", "plain", "v:1=2", "[0 -1 v:1 %d]"},
		{"plain, by another term", "plain", "u:2=1 40000", "[0 40000 u:2 %d]"},
		{"fenced", "fenced", "v:1=2 40000/'3'", "[0 40000 v:1 %d]"},
		{"fair", "fair", "v:1=2 40000", "[0 40000 v:1 %d]"},
		{"fair, with a queue", "fair", "/v:2@-5 v:1@60", "[0 60000  %d]"},
		{"read, by a writer", "read", "mode=write v:1:write=1 40000", "[0 40000 v:1:write %d]"},
		{"read, past a writer", "read", "mode=read v:1=1 40000, v:1#1 40000, !w:1 5000", "[0 40000 v:1 %d]"},
		{"read, a plain lock", "read", "v:1=1 40000", "[0 40000 v:1 %d]"},
		{"write, by a writer", "write", "mode=write v:1:write=1 40000", "[0 40000 v:1:write %d]"},
		{"write, by a reader", "write", "mode=read v:1=1 40000, v:1#1 40000", "[0 40000 v:1 %d]"},
		{"write, by its own reader", "write", "mode=read u:1=1 40000, u:1#1 40000", "[0 40000 u:1 %d]"},
		{"wrong type", "plain", "'x'", "-WRONGTYPE"},
		{"counter of another type", "fenced", "/a=1", "-WRONGTYPE"},
	} {
		refuser := []member{{r.kind, r.state, r.state}}
		reply := func(i int) string {
			if strings.HasPrefix(r.reply, "-") {
				return r.reply
			}
			return fmt.Sprintf(r.reply, i)
		}
		if r.name != "counter of another type" { // tokens of a fenced lock before it are lost
			rows = append(rows, allRow{r.name + ", last", append(free[:5:5], refuser...), reply(6), ""})
		}
		rows = append(rows, allRow{r.name + ", first", append(refuser, free...), reply(1), ""})
	}
	checkAll(t, rows)
}
