package scripts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A read/write lock is written as its hash, then, each behind a comma, the keys of its
// read leases and the announcement: "mode=read v:1=2 60000, v:1#1 60000, v:1#2 30000, !u:1 5000".

func channelRW(name string) string         { return "redisson_rwlock:{" + name + "}" }
func writerOf(name string) string          { return "lockkeeper_writer:{" + name + "}" }
func leaseOf(name, owner, i string) string { return "{" + name + "}:" + owner + ":rwlock_timeout:" + i }

// rwNames are what the scripts take as their last arguments.
func rwNames(name string) []string { return []string{channelRW(name), writerOf(name)} }

func rwChannel(name string) []string { return rwNames(name)[:1] }

func (d *db) putRW(t *testing.T, name, state string) {
	t.Helper()
	for part := range strings.SplitSeq(state, ",") {
		first, ttl, _ := strings.Cut(strings.TrimSpace(part), " ")
		if owner, announced := strings.CutPrefix(first, "!"); announced {
			d.put(t, writerOf(name), "'"+owner+"' "+ttl)
		} else if owner, i, lease := strings.Cut(first, "#"); lease {
			d.put(t, leaseOf(name, owner, i), "'1' "+ttl)
		} else {
			d.put(t, name, part)
		}
	}
}

// stateRW reads a read/write lock, the leases sorted; TTLs as db.state does.
func (d *db) stateRW(t *testing.T, name, want string, start time.Time) string {
	t.Helper()
	wanted := map[string]string{}
	for part := range strings.SplitSeq(want, ",") {
		first, _, _ := strings.Cut(strings.TrimSpace(part), " ")
		wanted[first] = part
	}
	hash, _, _ := strings.Cut(want, ",")
	parts := []string{d.state(t, name, hash, start)}
	keys := strings.Fields(strings.Trim(d.do(t, "KEYS", leaseOf(name, "*", "*")), "[]"))
	slices.Sort(keys)
	for _, key := range keys {
		owner, i, _ := strings.Cut(strings.TrimPrefix(key, "{"+name+"}:"), ":rwlock_timeout:")
		state := d.state(t, key, wanted[owner+"#"+i], start)
		parts = append(parts, strings.Replace(state, "'1'", owner+"#"+i, 1))
	}
	if writer := d.do(t, "GET", writerOf(name)); writer != "(nil)" {
		parts = append(parts, strings.Replace(d.state(t, writerOf(name), wanted["!"+writer], start), "'"+writer+"'", "!"+writer, 1))
	}
	return strings.TrimPrefix(strings.Join(parts, ", "), ", ")
}

// rwRow is one run of a script on a read/write lock, and the same run once more.
type rwRow struct {
	name, before string
	subscribers  int    // on the lock's channel
	args         string // without how the keys of leases begin
	reply, after string
	told         string // what is published

	again string // the second reply, if it differs
}

// checkRW runs rows; the prefix of the lease keys is put where the script wants it, and the
// names behind all.
func checkRW(t *testing.T, s *scripts.Script, names func(string) []string, prefixAt int, rows []rwRow) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, s)
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				name, start := redistest.Name(t), time.Now()
				db.putRW(t, name, r.before)
				db.subscribe(t, channelRW(name), r.subscribers)
				args := words(r.args)
				if prefixAt >= 0 {
					args = slices.Insert(args, prefixAt, "{"+name+"}")
				}
				for i := range 2 {
					reply, told := r.reply, strings.Fields(r.told)
					if i == 1 {
						told = nil
						if r.again != "" {
							reply = r.again
						}
					}
					got := db.run(t, s, []string{name}, append(args, names(name)...))
					if got != reply && settleSecond(got, reply, start) != reply && settleReply(got, reply, start) != reply && !isError(got, reply) {
						t.Errorf("run %d: reply %q, want %q", i, got, reply)
					}
					if got := db.stateRW(t, name, r.after, start); got != r.after {
						t.Errorf("run %d: state %q, want %q", i, got, r.after)
					}
					if got := db.messages(t, channelRW(name)); !slices.Equal(got, told) {
						t.Errorf("run %d: published %q, want %q", i, got, told)
					}
				}
			})
		}
	})
}

// checkSet runs rows, whose owner gives nothing back unless a last "1" says so.
func checkSet(t *testing.T, rows []rwRow) {
	for i, r := range rows {
		if len(words(r.args)) == 5 {
			rows[i].args += " 0"
		}
	}
	checkRW(t, scripts.ReadWriteSet, rwNames, 5, rows)
}

func TestReadWriteSetWrite(t *testing.T) {
	checkSet(t, []rwRow{
		{name: "free", args: "u:1 1 0 30000 0", reply: "[1 0 ]", after: "mode=write u:1:write=1 30000"},
		{name: "free, to re-enter", args: "u:1 2 0 30000 5000", reply: "[-1 0 ]"},
		{name: "free, for both", args: "u:1 1 1 30000 5000", reply: "[-1 0 ]"},
		{name: "own", before: "mode=write u:1:write=1 30000", args: "u:1 1 0 20000 0", reply: "[1 0 ]", after: "mode=write u:1:write=1 20000"},
		{name: "own, once more", before: "mode=write u:1:write=1 30000", args: "u:1 2 0 40000 0", reply: "[1 0 ]", after: "mode=write u:1:write=2 40000"},
		{name: "own, less", before: "mode=write u:1:write=3 30000", args: "u:1 1 0 40000 0", reply: "[1 0 ]", after: "mode=write u:1:write=1 40000"},
		{name: "own, and read", before: "mode=write u:1:write=1 30000", args: "u:1 1 2 40000 0", reply: "[1 0 ]",
			after: "mode=write u:1:write=1 u:1=2 40000, u:1#1 40000, u:1#2 40000"},
		{name: "own, and read less", before: "mode=write u:1:write=1 u:1=2 30000, u:1#1 30000, u:1#2 30000", args: "u:1 1 1 40000 0",
			reply: "[1 0 ]", after: "mode=write u:1:write=1 u:1=1 40000, u:1#1 40000"},
		{name: "own, and read no more", before: "mode=write u:1:write=1 u:1=1 30000, u:1#1 30000", args: "u:1 1 0 40000 0",
			reply: "[1 0 ]", after: "mode=write u:1:write=1 40000"},
		{name: "other", before: "mode=write v:1:write=1 40000", args: "u:1 1 0 30000 0", reply: "[0 40000 v:1:write]", after: "mode=write v:1:write=1 40000"},
		{name: "other, without end", before: "mode=write v:1:write=1", args: "u:1 1 0 30000 0", reply: "[0 -1 v:1:write]", after: "mode=write v:1:write=1"},
		{name: "other, to re-enter", before: "mode=write v:1:write=1 40000", args: "u:1 2 0 30000 0", reply: "[0 40000 v:1:write]", after: "mode=write v:1:write=1 40000"},
		{name: "other of the client", before: "mode=write u:2:write=1 40000", args: "u:1 1 0 30000 0", reply: "[0 40000 u:2:write]", after: "mode=write u:2:write=1 40000"},
		{name: "other, announced", before: "mode=write v:1:write=1 40000", args: "u:1 1 0 30000 5000", reply: "[0 40000 v:1:write]", after: "mode=write v:1:write=1 40000, !u:1 5000"},
		{name: "other reads, announced", before: "mode=read v:1=1 40000, v:1#1 40000", args: "u:1 1 0 30000 5000", reply: "[0 40000 v:1]", after: "mode=read v:1=1 40000, v:1#1 40000, !u:1 5000"},
		{name: "announced after another", before: "mode=read v:1=1 40000, v:1#1 40000, !w:1 9000", args: "u:1 1 0 30000 5000", reply: "[0 40000 v:1]", after: "mode=read v:1=1 40000, v:1#1 40000, !u:1 5000"},
		{name: "had announced itself", before: "!u:1 5000", args: "u:1 1 0 30000 5000", reply: "[1 0 ]", after: "mode=write u:1:write=1 30000"},
		{name: "another had announced itself", before: "!u:2 5000", args: "u:1 1 0 30000 5000", reply: "[1 0 ]", after: "mode=write u:1:write=1 30000, !u:2 5000"},
		{name: "a plain lock", before: "v:1=1 40000", args: "u:1 1 0 30000 0", reply: "[0 40000 v:1]", after: "v:1=1 40000"},
		{name: "wrong type", before: "'x'", args: "u:1 1 0 30000 5000", reply: "-WRONGTYPE", after: "'x'"},
	})
}

// Who gives back a part of what it holds gets nothing if it holds nothing.
func TestReadWriteSetLess(t *testing.T) {
	const theirs = "mode=read v:1=1 40000, v:1#1 40000"
	checkSet(t, []rwRow{
		{name: "free", args: "u:1 0 1 30000 0 1", reply: "[-1 0 ]"},
		{name: "free, of a writer", args: "u:1 1 0 30000 0 1", reply: "[-1 0 ]"},
		{name: "others read", before: theirs, args: "u:1 0 1 30000 0 1", reply: "[-1 0 ]", after: theirs},
		{name: "another writes", before: "mode=write v:1:write=1 40000", args: "u:1 0 1 30000 0 1", reply: "[-1 0 ]", after: "mode=write v:1:write=1 40000"},
		{name: "own", before: "mode=read u:1=2 20000, u:1#1 20000, u:1#2 20000", args: "u:1 0 1 30000 0 1",
			reply: "[1 0 ]", after: "mode=read u:1=1 30000, u:1#1 30000"},
		{name: "own, of a writer that reads on", before: "mode=write u:1:write=1 u:1=1 20000, u:1#1 20000", args: "u:1 0 1 30000 0 1",
			reply: "[1 0 ]", after: "mode=read u:1=1 30000, u:1#1 30000", told: "1"},
	})
}

// A reader that wants to write, too.
func TestReadWriteSetUpgrade(t *testing.T) {
	checkSet(t, []rwRow{
		{name: "the only reader", before: "mode=read u:1=1 20000, u:1#1 20000", args: "u:1 1 1 30000 0",
			reply: "[1 0 ]", after: "mode=write u:1:write=1 u:1=1 30000, u:1#1 30000"},
		{name: "the only reader, instead", before: "mode=read u:1=2 20000, u:1#1 20000, u:1#2 20000", args: "u:1 1 0 30000 0",
			reply: "[1 0 ]", after: "mode=write u:1:write=1 30000"},
		{name: "one of two", before: "mode=read u:1=2 v:1=1 90000, u:1#1 20000, u:1#2 90000, v:1#1 40000", args: "u:1 1 2 30000 5000",
			reply: "[0 40000 v:1]", after: "mode=read v:1=1 40000, v:1#1 40000, !u:1 5000"},
		{name: "one of two, of one client", before: "mode=read u:1=1 u:2=1 40000, u:1#1 20000, u:2#1 40000", args: "u:1 1 1 30000 0",
			reply: "[0 40000 u:2]", after: "mode=read u:2=1 40000, u:2#1 40000"},
		{name: "besides one who is dead", before: "mode=read u:1=1 v:1=1 20000, u:1#1 20000", args: "u:1 1 1 30000 5000",
			reply: "[1 0 ]", after: "mode=write u:1:write=1 u:1=1 30000, u:1#1 30000"},
		{name: "had announced itself", before: "mode=read u:1=1 20000, u:1#1 20000, !u:1 5000", args: "u:1 1 1 30000 5000",
			reply: "[1 0 ]", after: "mode=write u:1:write=1 u:1=1 30000, u:1#1 30000"},
	})
}

func TestReadWriteSetRead(t *testing.T) {
	const theirs = "mode=read v:1=1 40000, v:1#1 40000"
	checkSet(t, []rwRow{
		{name: "free", args: "u:1 0 1 30000 0", reply: "[1 0 ]", after: "mode=read u:1=1 30000, u:1#1 30000"},
		{name: "free, to re-enter", args: "u:1 0 2 30000 0", reply: "[-1 0 ]"},
		{name: "own", before: "mode=read u:1=1 30000, u:1#1 30000", args: "u:1 0 1 20000 0", reply: "[1 0 ]", after: "mode=read u:1=1 20000, u:1#1 20000"},
		{name: "own, more", before: "mode=read u:1=1 30000, u:1#1 30000", args: "u:1 0 3 20000 0", reply: "[1 0 ]",
			after: "mode=read u:1=3 20000, u:1#1 20000, u:1#2 20000, u:1#3 20000"},
		{name: "own, less", before: "mode=read u:1=3 30000, u:1#1 30000, u:1#2 30000, u:1#3 30000", args: "u:1 0 1 40000 0", reply: "[1 0 ]",
			after: "mode=read u:1=1 40000, u:1#1 40000"},
		{name: "own, among others", before: "mode=read u:1=1 v:1=1 40000, u:1#1 20000, v:1#1 40000", args: "u:1 0 2 30000 0", reply: "[1 0 ]",
			after: "mode=read u:1=2 v:1=1 40000, u:1#1 30000, u:1#2 30000, v:1#1 40000"},
		{name: "own, among others, past a writer", before: "mode=read u:1=1 v:1=1 40000, u:1#1 20000, v:1#1 40000, !w:1 5000", args: "u:1 0 2 30000 0", reply: "[1 0 ]",
			after: "mode=read u:1=2 v:1=1 40000, u:1#1 30000, u:1#2 30000, v:1#1 40000, !w:1 5000"},
		{name: "joins for less", before: theirs, args: "u:1 0 1 30000 0", reply: "[1 0 ]", after: "mode=read u:1=1 v:1=1 40000, u:1#1 30000, v:1#1 40000"},
		{name: "joins for more", before: theirs, args: "u:1 0 1 60000 0", reply: "[1 0 ]", after: "mode=read u:1=1 v:1=1 60000, u:1#1 60000, v:1#1 40000"},
		{name: "joins one of the client", before: "mode=read u:2=1 40000, u:2#1 40000", args: "u:1 0 1 30000 0", reply: "[1 0 ]", after: "mode=read u:1=1 u:2=1 40000, u:1#1 30000, u:2#1 40000"},
		{name: "does not join to re-enter", before: theirs, args: "u:1 0 2 30000 0", reply: "[0 40000 v:1]", after: theirs},
		{name: "does not join past a writer", before: theirs + ", !w:1 5000", args: "u:1 0 1 30000 0", reply: "[0 40000 v:1]", after: theirs + ", !w:1 5000"},
		{name: "joins past a writer of the client", before: theirs + ", !u:2 5000", args: "u:1 0 1 30000 0", reply: "[1 0 ]",
			after: "mode=read u:1=1 v:1=1 40000, u:1#1 30000, v:1#1 40000, !u:2 5000"},
		{name: "other writes", before: "mode=write v:1:write=1 40000", args: "u:1 0 1 30000 5000", reply: "[0 40000 v:1:write]", after: "mode=write v:1:write=1 40000"},
		{name: "downgrade", before: "mode=write u:1:write=2 20000", args: "u:1 0 1 30000 0", reply: "[1 0 ]",
			after: "mode=read u:1=1 30000, u:1#1 30000", told: "1"},
		{name: "downgrade of both", before: "mode=write u:1:write=1 u:1=1 20000, u:1#1 20000", args: "u:1 0 1 30000 0", reply: "[1 0 ]",
			after: "mode=read u:1=1 30000, u:1#1 30000", told: "1"},
		{name: "a plain lock", before: "v:1=1 40000", args: "u:1 0 1 30000 0", reply: "[0 40000 v:1]", after: "v:1=1 40000"},
		{name: "wrong type", before: "'x' 30000", args: "u:1 0 1 30000 0", reply: "-WRONGTYPE", after: "'x' 30000"},
	})
}

func TestReadWriteRelease(t *testing.T) {
	checkRW(t, scripts.ReadWriteRelease, rwNames, 1, []rwRow{
		{name: "a writer", before: "mode=write u:1:write=2 30000", args: "u:1", reply: "0", told: "1", again: "-1"},
		{name: "a writer that reads", before: "mode=write u:1:write=1 u:1=2 30000, u:1#1 30000, u:1#2 30000", args: "u:1", reply: "0", told: "1", again: "-1"},
		{name: "the last reader", before: "mode=read u:1=2 30000, u:1#1 30000, u:1#2 20000", args: "u:1", reply: "0", told: "0", again: "-1"},
		{name: "a reader with the longest lease", before: "mode=read u:1=1 v:1=2 w:1=1 90000, u:1#1 90000, v:1#1 20000, v:1#2 40000, w:1#1 30000", args: "u:1", reply: "0",
			after: "mode=read v:1=2 w:1=1 40000, v:1#1 20000, v:1#2 40000, w:1#1 30000", again: "-1"},
		{name: "a reader with a shorter lease", before: "mode=read u:1=1 v:1=1 40000, u:1#1 20000, v:1#1 40000", args: "u:1", reply: "0",
			after: "mode=read v:1=1 40000, v:1#1 40000", again: "-1"},
		{name: "the last reader alive", before: "mode=read u:1=1 v:1=2 40000, u:1#1 20000", args: "u:1", reply: "0", told: "0", again: "-1"},
		{name: "what it announced", before: "mode=read v:1=1 40000, v:1#1 40000, !u:1 5000", args: "u:1", reply: "-1", after: "mode=read v:1=1 40000, v:1#1 40000"},
		{name: "and not what another announced", before: "mode=write u:1:write=1 30000, !u:2 5000", args: "u:1", reply: "0", after: "!u:2 5000", told: "1", again: "-1"},
		{name: "another writer", before: "mode=write v:1:write=1 30000", args: "u:1", reply: "-1", after: "mode=write v:1:write=1 30000"},
		{name: "free", args: "u:1", reply: "-1"},
		{name: "wrong type", before: "'x'", args: "u:1", reply: "-WRONGTYPE", after: "'x'"},
	})
}

func TestReadWriteYield(t *testing.T) {
	const reads = "mode=read u:1=2 20000, u:1#1 20000, u:1#2 20000"
	const kept = "mode=read u:1=1 30000, u:1#1 30000"
	checkRW(t, scripts.ReadWriteYield, rwNames, 4, []rwRow{
		{name: "nobody waits", before: reads, args: "u:1 0 30000 0", reply: "[0 0]", after: kept},
		{name: "only itself waits", before: reads, subscribers: 1, args: "u:1 1 30000 0", reply: "[0 0]", after: kept},
		{name: "not yet itself", before: reads, args: "u:1 1 30000 0", reply: "[0 0]", after: kept},
		{name: "written", before: "mode=write u:1:write=2 20000", args: "u:1 0 30000 0", reply: "[0 0]", after: "mode=write u:1:write=1 30000"},
		{name: "both", before: "mode=write u:1:write=1 u:1=1 20000, u:1#1 20000", args: "u:1 0 30000 0", reply: "[0 0]", after: "mode=write u:1:write=1 30000"},
		{name: "among longer readers", before: "mode=read u:1=1 v:1=1 40000, u:1#1 20000, v:1#1 40000", args: "u:1 0 30000 0", reply: "[0 0]",
			after: "mode=read u:1=1 v:1=1 40000, u:1#1 30000, v:1#1 40000"},
		{name: "others wait", before: reads, subscribers: 3, args: "u:1 1 30000 0", reply: "[1 2]", told: "0", again: "[-1 0]"},
		{name: "others wait for a writer", before: "mode=write u:1:write=1 20000", subscribers: 1, args: "u:1 0 30000 0", reply: "[1 1]", told: "1", again: "[-1 0]"},
		{name: "others wait, others read", before: "mode=read u:1=1 v:1=1 90000, u:1#1 90000, v:1#1 40000", subscribers: 1, args: "u:1 0 30000 0", reply: "[1 1]",
			after: "mode=read v:1=1 40000, v:1#1 40000", again: "[-1 0]"},
		{name: "a writer is announced", before: reads + ", !v:1 5000", args: "u:1 0 30000 0", reply: "[1 1]", after: "!v:1 5000", told: "0", again: "[-1 0]"},
		{name: "a writer is announced, and others wait", before: reads + ", !v:1 5000", subscribers: 2, args: "u:1 0 30000 0", reply: "[1 2]", after: "!v:1 5000", told: "0", again: "[-1 0]"},
		{name: "a writer is announced, not yet itself", before: reads + ", !v:1 5000", args: "u:1 1 30000 0", reply: "[1 1]", after: "!v:1 5000", told: "0", again: "[-1 0]"},
		{name: "a writer of its own client is announced", before: reads + ", !u:2 5000", args: "u:1 0 30000 0", reply: "[0 0]", after: kept + ", !u:2 5000"},
		{name: "opened for nobody", before: reads, args: "u:1 1 30000 1", reply: "[1 0]", told: "0", again: "[-1 0]"},
		{name: "what it announced", before: reads + ", !u:1 5000", args: "u:1 0 30000 1", reply: "[1 0]", told: "0", again: "[-1 0]"},
		{name: "other", before: "mode=write v:1:write=1 40000", subscribers: 1, args: "u:1 0 30000 1", reply: "[-1 0]", after: "mode=write v:1:write=1 40000"},
		{name: "free", args: "u:1 0 30000 1", reply: "[-1 0]"},
		{name: "wrong type", before: "'x'", args: "u:1 0 30000 1", reply: "-WRONGTYPE", after: "'x'"},
	})
}

func TestLook(t *testing.T) {
	checkRW(t, scripts.Look, rwNames, -1, []rwRow{
		{name: "nobody", args: "u 0", reply: "[0]"},
		{name: "not yet itself", args: "u 1", reply: "[0]"},
		{name: "others", subscribers: 3, args: "u 1", reply: "[2]"},
		{name: "a writer", before: "!v:1 5000", args: "u 1", reply: "[1]", after: "!v:1 5000"},
		{name: "a writer besides others", before: "!v:1 5000", subscribers: 2, args: "u 0", reply: "[2]", after: "!v:1 5000"},
		{name: "an own writer", before: "!u:1 5000", args: "u 0", reply: "[0]", after: "!u:1 5000"},
		{name: "one with a longer name", before: "!uu:1 5000", args: "u 0", reply: "[1]", after: "!uu:1 5000"},
	})
}

func TestReadWriteForceRelease(t *testing.T) {
	const reads = "mode=read u:1=2 v:1=1 40000, u:1#1 20000, u:1#2 30000, v:1#1 40000"
	const writes = "mode=write v:1:write=2 v:1=1 40000, v:1#1 40000"
	checkRW(t, scripts.ReadWriteForceRelease, rwChannel, 0, []rwRow{
		{name: "readers", before: reads, args: "read", reply: "1", told: "0", again: "0"},
		{name: "a writer", before: writes, args: "write", reply: "1", told: "1", again: "0"},
		{name: "readers, as a writer", before: reads, args: "write", reply: "0", after: reads},
		{name: "a writer, as readers", before: writes, args: "read", reply: "0", after: writes},
		{name: "who waits stays announced", before: "mode=write v:1:write=1 40000, !u:1 5000", args: "write", reply: "1", after: "!u:1 5000", told: "1", again: "0"},
		{name: "free", args: "read", reply: "0"},
		{name: "a plain lock", before: "v:1=1 40000", args: "read", reply: "0", after: "v:1=1 40000"},
		{name: "wrong type", before: "'x'", args: "read", reply: "-WRONGTYPE", after: "'x'"},
	})
}

func TestReadWriteInspect(t *testing.T) {
	checkRW(t, scripts.ReadWriteInspect, rwChannel, -1, []rwRow{
		{name: "read", before: "mode=read u:1=2 40000", subscribers: 2, reply: "[40000 2 1 u:1 2]", after: "mode=read u:1=2 40000"},
		{name: "written", before: "mode=write u:1:write=3", reply: "[-1 0 1 u:1:write 3]", after: "mode=write u:1:write=3"},
		{name: "written and read", before: "mode=write u:1:write=3 u:1=2", reply: "[-1 0 2 u:1:write 3]", after: "mode=write u:1:write=3 u:1=2"},
		{name: "read and written", before: "u:1=2 u:1:write=3 mode=write", reply: "[-1 0 2 u:1:write 3]", after: "mode=write u:1:write=3 u:1=2"},
		{name: "free", subscribers: 1, reply: "[-2 1 0  ]"},
		{name: "wrong type", before: "'x' 30000", reply: "-WRONGTYPE", after: "'x' 30000"},
	})
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.ReadWriteInspect)
		name := redistest.Name(t)
		db.put(t, name, "mode=read u:1=7 u:2=7 u:3=7")
		reply := db.run(t, scripts.ReadWriteInspect, []string{name}, rwChannel(name))
		if !strings.HasPrefix(reply, "[-1 0 3 u:") || !strings.HasSuffix(reply, " 7]") {
			t.Errorf("reply %q", reply)
		}
	})
}

// rwRenewals are what one lock may look like when "u:1" renews it for 60 s.
var rwRenewals = []struct{ name, before, reply, after string }{
	{"read", "mode=read u:1=1 30000, u:1#1 30000", "1", "mode=read u:1=1 60000, u:1#1 60000"},
	{"read twice, a lease is gone", "mode=read u:1=2 30000, u:1#2 5000", "1", "mode=read u:1=2 60000, u:1#1 60000, u:1#2 60000"},
	{"read among longer leases", "mode=read u:1=1 v:1=1 90000, u:1#1 30000, v:1#1 90000", "1", "mode=read u:1=1 v:1=1 90000, u:1#1 60000, v:1#1 90000"},
	{"written", "mode=write u:1:write=2 30000", "1", "mode=write u:1:write=2 60000"},
	{"written and read", "mode=write u:1:write=2 u:1=1 30000, u:1#1 30000", "1", "mode=write u:1:write=2 u:1=1 60000, u:1#1 60000"},
	{"without an end", "mode=write u:1:write=2", "1", "mode=write u:1:write=2 60000"},
	{"gone", "", "0", ""},
	{"other", "mode=read v:1=1 30000, v:1#1 30000", "-1", "mode=read v:1=1 30000, v:1#1 30000"},
	{"wrong type", "'x' 30000", "-1", "'x' 30000"},
	{"read, behind the bad ones", "mode=read u:1=1 30000, u:1#1 30000", "1", "mode=read u:1=1 60000, u:1#1 60000"},
}

func TestReadWriteRenew(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.ReadWriteRenew)
		start := time.Now()
		var keys, args, replies []string
		for _, r := range rwRenewals {
			name := redistest.Name(t)
			db.putRW(t, name, r.before)
			keys = append(keys, name)
			args = append(args, "u:1", "60000", "{"+name+"}")
			replies = append(replies, r.reply)
		}
		for range 2 {
			if reply, want := db.run(t, scripts.ReadWriteRenew, keys, args), fmt.Sprint(replies); reply != want {
				t.Errorf("reply %s, want %s", reply, want)
			}
			for i, r := range rwRenewals {
				if state := db.stateRW(t, keys[i], r.after, start); state != r.after {
					t.Errorf("%s: state %q, want %q", r.name, state, r.after)
				}
			}
		}
		if reply := db.run(t, scripts.ReadWriteRenew, nil, nil); reply != "[]" {
			t.Errorf("none: reply %s", reply)
		}
	})
}

// A server that is out of memory still lets holders renew.
func TestReadWriteRenewWithoutMemory(t *testing.T) {
	db := connect(t, redistest.Start(t).Addr(), false)
	db.load(t, scripts.ReadWriteRenew)
	db.putRW(t, "lock", "mode=read u:1=1 30000, u:1#1 30000")
	db.do(t, "CONFIG", "SET", "maxmemory", "1")
	start := time.Now()
	if reply := db.run(t, scripts.ReadWriteRenew, []string{"lock"}, words("u:1 60000 {lock}")); reply != "[1]" {
		t.Errorf("reply %s", reply)
	}
	if state, want := db.stateRW(t, "lock", rwRenewals[0].after, start), rwRenewals[0].after; state != want {
		t.Errorf("state %q, want %q", state, want)
	}
}
