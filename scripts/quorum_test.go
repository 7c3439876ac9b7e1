package scripts_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestQuorumAcquire(t *testing.T) {
	var rows []row
	for _, r := range []row{
		{name: "free", args: "a 1 30000", reply: "[1 0 ]", after: "a=1 30000"},
		{name: "free, to re-enter", args: "a 2 30000", reply: "[-1 0 ]"},
		{name: "own", before: "a=1 30000", args: "a 1 60000", reply: "[1 0 ]", after: "a=1 60000"},
		{name: "own, one more", before: "a=1 30000", args: "a 2 60000", reply: "[1 0 ]", after: "a=2 60000"},
		{name: "own, fewer", before: "a=3 30000", args: "a 1 60000", reply: "[1 0 ]", after: "a=1 60000"},
		{name: "other, without end", before: "b=2", args: "a 1 30000", reply: "[0 -1 b]", after: "b=2"},
		{name: "wrong type", before: "'x'", args: "a 1 30000", reply: "-WRONGTYPE", after: "'x'"},
	} {
		r.args += " 0"
		rows = append(rows, r)
	}
	check(t, scripts.QuorumAcquire, false, rows)
}

// A server that was started lately takes part only in what it knows of.
func TestQuorumQuarantine(t *testing.T) {
	server := redistest.Start(t) // the shared one may be old
	for _, r := range []struct{ name, before, args, reply, after string }{
		{"free", "", "a 1 30000 600000", "-3", ""},
		{"free, to re-enter", "", "a 2 30000 600000", "-3", ""},
		{"other", "b=1 30000", "a 1 30000 600000", "-3", "b=1 30000"},
		{"own", "a=1 30000", "a 2 60000 600000", "1", "a=2 60000"},
		{"wrong type", "'x'", "a 1 30000 600000", "-WRONGTYPE", "'x'"},
	} {
		for _, resp2 := range []bool{false, true} {
			t.Run(r.name, func(t *testing.T) {
				db := connect(t, server.Addr(), resp2)
				db.load(t, scripts.QuorumAcquire)
				name, start := redistest.Name(t), time.Now()
				db.put(t, name, r.before)
				for range 2 {
					reply := db.run(t, scripts.QuorumAcquire, []string{name}, words(r.args))
					status, rest, _ := strings.Cut(strings.Trim(reply, "[]"), " ")
					if status != r.reply && !isError(reply, r.reply) {
						t.Errorf("reply %q, want %s", reply, r.reply)
					}
					if left, _ := strconv.Atoi(strings.TrimSpace(rest)); status == "-3" && (left < 540000 || left > 601000) {
						t.Errorf("out for %d more ms", left)
					}
					if state := db.state(t, name, r.after, start); state != r.after {
						t.Errorf("state %q, want %q", state, r.after)
					}
				}
			})
		}
	}
}

// The time that is told is how long it takes, and so much that it covers what was
// asked for: a server that says it runs for a second may have been started just now.
func TestQuorumQuarantineEnds(t *testing.T) {
	db := connect(t, redistest.Start(t).Addr(), false)
	db.load(t, scripts.QuorumAcquire)
	uptime := func() int {
		_, info, _ := strings.Cut(db.do(t, "INFO", "server"), "uptime_in_seconds:")
		digits, _, _ := strings.Cut(info, "\r")
		seconds, err := strconv.Atoi(digits)
		if err != nil {
			t.Fatal(err)
		}
		return seconds
	}
	redistest.Eventually(t, "the end of the quarantine", func() bool {
		before := uptime()
		reply := db.run(t, scripts.QuorumAcquire, []string{"lock"}, words("a 1 30000 1000"))
		after := uptime()
		if before != after {
			return false
		}
		want := "[1 0 ]"
		if before < 2 {
			want = fmt.Sprintf("[-3 %d ]", 1000-1000*(before-1))
		}
		if reply != want {
			t.Errorf("after %d s: reply %s, want %s", before, reply, want)
		}
		return before >= 2
	})
}
