package scripts_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// table has the rows of a script. Call names its KEYS and, after a slash, its ARGV: a capitalized name is a key, a
// channel or the settings of the wait queue (see names); "count=1" is an argument with its usual value; and "ids..."
// stands for any number of arguments.
type table struct {
	script *scripts.Script
	call   string
	rows   []row
}

// row is a call of a script; state_test.go explains its signs. Every script must be safe to send again after its reply
// was lost, so each row is run twice, and only the first run publishes. For example, of acquire.lua, for the owner u:1:
//
//	name: "free, another's turn", args: "entry=1.4+listens", reply: "[20000 v:2]", published: "turn:v=2.7.0",
//	before: "waitqueue v=2.7+listens@-3s 15s", after: "v:2=1 20s, waitqueue u=1.4+listens@0s seen@0s 20s",
//
// The lock is free, but v waits for it. So the lock is transferred to v, which is notified, and u is refused, since v:2
// holds the lock for 20000 ms. An entry of u is added to the wait queue.
type row struct {
	name      string
	kind      string // of the lock, for a script about several locks
	before    string // the state of the lock
	listeners string // of its channels
	args      string // those that are not the usual ones: "count=2 entry=1.4+listens"; "-" is empty
	reply     string
	again     string // the reply to the second run, if it differs
	after     string // the state after the first run
	// afterAgain is the state after the second run, if it differs.
	afterAgain string
	published  string
	// publishedAgain is what the second run publishes.
	publishedAgain string

	locks  []part // several locks, instead of kind, before and after
	script *scripts.Script
}

// part is one of the locks of a row.
type part struct{ kind, before, after, afterAgain string }

// same is a lock that is unchanged.
const same = "same"

// The rows are what TestModel of internal/protocol, which compares each reply and state with a model, does not reach:
// foreign and malformed values, edges of times, keys without a TTL, what Redisson writes, and scripts without a model.
// TestScripts_Refused… needs rows for each set of commands that write.
var rows, calls = func() (rows []row, calls map[*scripts.Script]string) {
	calls = map[*scripts.Script]string{}
	for _, of := range slices.Concat(acquireTables, plainTables, allTables, fairTables, readWriteTables, semaphoreTables, latchTables, grainsTables) {
		calls[of.script] = of.call
		if of.script == scripts.AcquireAll {
			of.rows = append(of.rows, refusedRows()...)
		}
		for _, r := range of.rows {
			if r.script = of.script; r.locks == nil {
				r.locks = []part{{kind: r.kind, before: r.before, after: r.after, afterAgain: r.afterAgain}}
			}
			for i, lock := range r.locks {
				if lock.after == same {
					r.locks[i].after = lock.before
				}
			}
			rows = append(rows, r)
		}
	}
	return rows, calls
}()

// replyTo returns the reply to the first or the second run.
func (r row) replyTo(run int) string {
	if run == 1 && r.again != "" {
		return r.again
	}
	return r.reply
}

// afterRun returns the lock after the first or the second run.
func (p part) afterRun(run int) string {
	if run == 1 && p.afterAgain != "" {
		return p.afterAgain
	}
	return p.after
}

// call makes the keys and arguments of a script; args are those that are not the usual ones.
func call(s *scripts.Script, lock, args string) (keys, argv []string) {
	given := map[string]string{}
	for word := range strings.FieldsSeq(args) {
		name, value, _ := strings.Cut(word, "=")
		given[name] = value
	}
	before, after, _ := strings.Cut(calls[s], "/")
	for word := range strings.FieldsSeq(after) {
		name, value, single := strings.Cut(word, "=")
		name, list := strings.CutSuffix(name, "...")
		if !single && !list {
			argv = append(argv, names(lock).Replace(word))
			continue
		}
		if other, ok := given[name]; ok {
			value = other
			delete(given, name)
		}
		argv = append(argv, argument(name, value)...)
	}
	if len(given) > 0 {
		panic(fmt.Sprint(s.Name, " has no arguments ", given))
	}
	return strings.Fields(names(lock).Replace(before)), argv
}

// argument returns the words of an argument, or of a list of them.
func argument(name, value string) (words []string) {
	switch {
	case name == "listed":
		for waiter := range strings.SplitSeq(value, ",") {
			if waiter != "" {
				words = append(words, listed(waiter)...)
			}
		}
		return words
	case value == "":
		return nil
	case value == "-":
		return []string{""}
	case name == "entry":
		return []string{entryWords(value, "r")}
	}
	return strings.Split(value, ",")
}

// listed returns an owner that waits, its lease, and whether it waits: "u:1+lease5000", or "u:1+once" for a try.
func listed(waiter string) []string {
	options := strings.Split(waiter, "+")
	lease, waits := "30000", "1"
	for _, option := range options[1:] {
		if option == "once" {
			waits = "0"
		} else {
			lease = strings.TrimPrefix(option, "lease")
		}
	}
	return []string{options[0], lease, waits}
}

// call names the locks of a row, and makes the keys and arguments of its script.
func (r row) call(t *testing.T) (locks, keys, args []string) {
	if !several(r.script) {
		lock := redistest.Name(t)
		keys, args = call(r.script, lock, r.args)
		return []string{lock}, keys, args
	}
	_, args = call(r.script, "", r.args)
	for _, of := range r.locks {
		lock, kind := redistest.Name(t), of.kind
		form := map[string]string{"fenced": "NAME TOKENS NAME", "fair": "NAME QUEUE TIMEOUTS"}[kind]
		if form == "" {
			form = "NAME NAME NAME"
		}
		argKey, channel := "LEASES", "RWCHANNEL"
		if kind == "plain" || kind == "fenced" {
			argKey, channel = "TOKENS", "CHANNEL"
		}
		locks, args = append(locks, lock), append(args, kind, names(lock).Replace(argKey), names(lock).Replace("WAITQUEUE"))
		if r.script == scripts.YieldAll {
			keys, args = append(keys, lock), append(args, names(lock).Replace(channel))
		} else {
			keys = append(keys, strings.Fields(names(lock).Replace(form))...)
		}
	}
	return locks, keys, args
}

// several reports whether a script is about several locks.
func several(s *scripts.Script) bool { return s == scripts.AcquireAll || s == scripts.YieldAll }

// put sets up the locks of a row.
func (r row) put(t *testing.T, d *db, locks []string, start time.Time) {
	t.Helper()
	for i, lock := range locks {
		d.put(t, lock, r.locks[i].before, start)
		d.listen(t, lock, r.listeners)
	}
}

// expect compares the reply, the state and the messages of a step with the wanted ones.
func (d *db) expect(t *testing.T, what, lock string, start time.Time, reply, wantReply, state, published string) {
	t.Helper()
	if !agree(reply, wantReply, time.Since(start)) {
		t.Errorf("%s: reply %q, want %q", what, reply, wantReply)
	}
	d.expectState(t, what, lock, start, state)
	if got := d.published(t, lock); got != published {
		t.Errorf("%s: published %q, want %q", what, got, published)
	}
}

// queueWithTTL matches a state that has the TTL of the queue of a fair lock.
var queueWithTTL = regexp.MustCompile(`\bqueue [^,]* \d+s(,|$)`)

func (d *db) expectState(t *testing.T, what, lock string, start time.Time, want string) {
	t.Helper()
	if got := d.state(t, lock, start, queueWithTTL.MatchString(want)); !agree(got, want, time.Since(start)) {
		t.Errorf("%s: the lock is %q, want %q", what, got, want)
	}
}

func TestScripts(t *testing.T) {
	eachRedis(t, func(t *testing.T, d *db) {
		for _, r := range rows {
			t.Run(r.script.Name+"/"+r.name, func(t *testing.T) {
				start := time.Now().Truncate(time.Millisecond)
				d.frozenAt = start // so that times may be on the edge
				locks, keys, args := r.call(t)
				r.put(t, d, locks, start)
				for run := range 2 {
					published := [...]string{r.published, r.publishedAgain}[run]
					reply := d.run(t, r.script, keys, args)
					for i, lock := range locks {
						d.expect(t, fmt.Sprintf("run %d, lock %d", run, i), lock, start, reply, r.replyTo(run), r.locks[i].afterRun(run), published)
						published = "" // for the other locks
					}
				}
			})
		}
	})
}

// Each script has a header that documents its arguments and reply, and rows in a table.
func TestScripts_HaveHeaderAndRows(t *testing.T) {
	for _, s := range scripts.All {
		for _, word := range []string{"-- KEYS[", "-- ARGV", "-- Reply"} {
			if !strings.Contains(s.Source, word) {
				t.Errorf("%s.lua: its header lacks %q", s.Name, word)
			}
		}
		if s != scripts.Memory && !strings.HasPrefix(s.Name, "system_") && !strings.HasPrefix(s.Name, "singleton_") &&
			!strings.HasPrefix(s.Name, "expirable_") && !slices.ContainsFunc(rows, func(r row) bool { return r.script == s }) {
			t.Errorf("%s: it is in no table", s.Name)
		}
	}
}
