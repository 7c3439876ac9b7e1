package scripts_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A table has a part for each script: a line with its name, and the KEYS and ARGV that it takes. ARG is
// one of the arguments of a row, ARGS are the remaining ones, and OR is followed by the default of an
// optional one. An entry of the wait queue is written as in states, without times. Each row is
//
//	name | the lock before, and <its waiters | arguments | reply | the lock after | what is published
//
// Every script must be safe to send again after its reply was lost, so each row is run twice. "x then y" is
// for runs that differ; only the first run publishes. An argument "-" is empty, and a lock "same" is
// unchanged. The locks of acquire_all have a ";" between them, and each begins with its kind.
type row struct {
	script              *scripts.Script
	name, waiting, args string
	kinds, before       []string // of each lock
	reply, published    string
	after               []string // of each lock
}

var rows, forms = parse(plainRows + allRows() + yieldRows + fairRows + readWriteRows + semaphoreRows + latchRows)

func parse(tables string) (rows []row, forms map[*scripts.Script]string) {
	forms = map[*scripts.Script]string{}
	var of *scripts.Script
	for line := range strings.Lines(tables) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if !strings.Contains(line, "|") {
			name, form, _ := strings.Cut(line, ":")
			of = script(name)
			forms[of] = form
			continue
		}
		cells := append(split(line, "|"), "", "", "")[:6]
		r := row{script: of, name: cells[0], args: cells[2], reply: cells[3], published: cells[5]}
		cells[1], r.waiting, _ = strings.Cut(cells[1], "<")
		r.before, r.after = split(cells[1], ";"), split(cells[4], ";")
		if several(of) {
			for i, lock := range r.before {
				kind, state, _ := strings.Cut(lock, " ")
				r.kinds, r.before[i] = append(r.kinds, kind), state
			}
		}
		if cells[4] == "same" {
			r.after = r.before
		}
		rows = append(rows, r)
	}
	return rows, forms
}

func split(text, by string) (parts []string) {
	for part := range strings.SplitSeq(text, by) {
		parts = append(parts, strings.TrimSpace(part))
	}
	return parts
}

// ofRun returns the part of a cell for the first or the second run.
func ofRun(run int, cell string) string {
	first, second, differs := strings.Cut(cell, " then ")
	if run == 0 || !differs {
		return strings.TrimSuffix(first, " then")
	}
	return second
}

func script(name string) *scripts.Script {
	i := slices.IndexFunc(scripts.All, func(s *scripts.Script) bool { return s.Name == name })
	if i < 0 {
		panic("no such script: " + name)
	}
	return scripts.All[i]
}

var isEntry = regexp.MustCompile(`^(\d+:)?\d+\.\d+\.\d\.\d+\.\d(\.r)?$`)

// argument returns an argument of a script; an entry is expanded.
func argument(word string) string {
	switch {
	case word == "-":
		return ""
	case isEntry.MatchString(word):
		return entryWords(word)
	}
	return word
}

// call makes the keys and arguments of a script from those of a row.
func call(s *scripts.Script, lock, args string) (keys, argv []string) {
	before, after, _ := strings.Cut(forms[s], "/")
	given := strings.Fields(args)
	for word := range strings.FieldsSeq(after) {
		switch word {
		case "ARG":
			argv, given = append(argv, given[0]), given[1:]
		case "OR-", "OR0":
			if len(given) == 0 {
				given = []string{word[2:]}
			}
			argv, given = append(argv, given[0]), given[1:]
		case "ARGS":
			argv, given = append(argv, given...), nil
		default:
			argv = append(argv, names(lock).Replace(word))
		}
	}
	for i, word := range argv {
		argv[i] = argument(word)
	}
	return strings.Fields(names(lock).Replace(before)), argv
}

// call names the locks of a row, and makes the keys and arguments of its script.
func (r row) call(t *testing.T) (locks, keys, args []string) {
	if !several(r.script) {
		lock := redistest.Name(t)
		keys, args = call(r.script, lock, r.args)
		return []string{lock}, keys, args
	}
	given := append(strings.Fields(r.args), "-", "0")
	yields := r.script == scripts.YieldAll
	if yields {
		args = []string{given[0], names("").Replace("SETTINGS"), argument(given[1])}
	} else {
		args = append(given[:3:3], names("").Replace("SETTINGS"), argument(given[3]), given[4])
	}
	for _, kind := range r.kinds {
		lock := redistest.Name(t)
		form := map[string]string{"fenced": "NAME TOKENS NAME", "fair": "NAME QUEUE TIMEOUTS"}[kind]
		if form == "" {
			form = "NAME NAME NAME"
		}
		beside, channel := "HOLDS", "RWCHANNEL"
		if kind == "plain" || kind == "fenced" {
			beside, channel = "TOKENS", "CHANNEL"
		}
		locks, args = append(locks, lock), append(args, kind, names(lock).Replace(beside), names(lock).Replace("WAITQUEUE"))
		if yields {
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
		d.put(t, lock, r.before[i], start)
		d.listen(t, lock, r.waiting)
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

func (d *db) expectState(t *testing.T, what, lock string, start time.Time, want string) {
	t.Helper()
	if got := d.state(t, lock, start, strings.Contains(want, "~")); !agree(got, want, time.Since(start)) {
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
				published := r.published
				for run := range 2 {
					reply := d.run(t, r.script, keys, args)
					for i, lock := range locks {
						d.expect(t, fmt.Sprintf("run %d, lock %d", run, i), lock, start, reply, ofRun(run, r.reply), ofRun(run, r.after[i]), published)
						published = "" // for the other locks, and the second run
					}
				}
			})
		}
	})
}

// Each lock of a batch is renewed, or not, as it would be alone.
func TestRenew_TreatsEachLockAlone(t *testing.T) {
	eachRedis(t, func(t *testing.T, d *db) {
		for _, s := range []*scripts.Script{scripts.Renew, scripts.ReadWriteRenew} {
			start := time.Now()
			of := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.script != s })
			var keys, args, locks, replies []string
			for _, r := range of {
				l, k, a := r.call(t)
				r.put(t, d, l, start)
				keys, args, locks = append(keys, k...), append(args, a...), append(locks, l...)
				replies = append(replies, strings.Trim(r.reply, "[]"))
			}
			for range 2 {
				if reply, want := d.run(t, s, keys, args), fmt.Sprint(replies); reply != want {
					t.Errorf("%s: reply %s, want %s", s.Name, reply, want)
				}
				for i, r := range of {
					d.expectState(t, s.Name+", "+r.name, locks[i], start, r.after[0])
				}
			}
			if reply := d.run(t, s, nil, nil); reply != "[]" {
				t.Errorf("%s of none: reply %s", s.Name, reply)
			}
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
		if s != scripts.Memory && !strings.HasPrefix(s.Name, "system_") && !strings.HasPrefix(s.Name, "permits_") && !slices.ContainsFunc(rows, func(r row) bool { return r.script == s }) {
			t.Errorf("%s: it is in no table", s.Name)
		}
	}
}
