package scripts_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// numbered reports whether the script must have its effect only once.
func (r permitsRow) numbered() bool { return len(r.keys("")) >= 3 }

func (r permitsRow) keys(lock string) []string {
	free, taken := lock, keyspace.Taken(lock)
	switch r.script {
	case scripts.ExpirableRenew:
		return []string{taken}
	case scripts.ExpirableInspect:
		return []string{free, taken}
	}
	keys := []string{free, taken, keyspace.Calls(lock) + ":u"}
	if r.script == scripts.ExpirableSet {
		keys = append(keys, restoreKey(lock))
	}
	return keys
}

func restoreKey(lock string) string { return keyspace.Calls(lock) + ":restore" }

func reservedKey(lock string) string { return keyspace.Calls(lock) + ":kept" }

// oldMemory is what the name of another server's memory begins with.
const oldMemory = "another:memory:"

// memory returns what the name of the server's present memory begins with.
func (d *db) memory(t *testing.T) string {
	t.Helper()
	id := func(section, field string) string {
		_, rest, _ := strings.Cut(d.do(t, "INFO", section), field)
		id, _, _ := strings.Cut(rest, "\r\n")
		return id + ":"
	}
	return id("server", "run_id:") + id("replication", "master_replid:")
}

// run runs the script as the client's command with that number.
func (r permitsRow) run(t *testing.T, d *db, lock string, number int) string {
	t.Helper()
	var args []string
	if r.numbered() {
		args = []string{strconv.Itoa(number), keyspace.PermitsChannel(lock)}
	}
	words := strings.Fields(r.args)
	switch r.script {
	case scripts.ExpirableRelease:
		args = append(args, restoreKey(lock))
	case scripts.ExpirableAcquire:
		reserve := "0"
		if len(words) > 0 && words[0] == "reserve" {
			reserve, words = "2000", words[1:]
		}
		args = append(args, reservedKey(lock), reserve)
	}
	for _, word := range words {
		together := r.script == scripts.ExpirableAcquire || r.script == scripts.ExpirableRelease
		switch isID := word[0] >= 'a'; {
		case isID && together:
			args = append(args, strconv.Itoa(len(word)))
			for _, letter := range word {
				args = append(args, strings.Repeat(string(letter), 16))
			}
		case isID && len(word) == 1:
			args = append(args, strings.Repeat(word, 16))
		default:
			args = append(args, word)
		}
	}
	reply := d.run(t, r.script, r.keys(lock), args)
	if r.script == scripts.ExpirableRelease { // other tests listen as well
		reply = regexp.MustCompile(` [1-9]\d*\]`).ReplaceAllString(reply, " received]")
	}
	return reply
}

func (d *db) putPermits(t *testing.T, lock, state string, start time.Time) {
	t.Helper()
	d.must(t, "DEL", lock, keyspace.Taken(lock), keyspace.Calls(lock)+":u", restoreKey(lock), reservedKey(lock))
	for part := range strings.SplitSeq(state, ", ") {
		label, words, _ := strings.Cut(part, " ")
		for i, word := range strings.Fields(words) {
			name, _, expires := strings.Cut(word, "@")
			_, ms, _ := cutTime(word)
			at := strconv.Itoa(int(start.UnixMilli()) + ms)
			switch old, isOld := strings.CutPrefix(name, "old"); {
			case label == "free" && i == 0:
				d.must(t, "SET", lock, word)
			case label == "free":
				d.must(t, "PEXPIRE", lock, strconv.Itoa(ms))
			case label == "taken" && expires:
				d.must(t, "ZADD", keyspace.Taken(lock), at, strings.Repeat(name, 16))
			case label == "taken":
				d.must(t, "ZADD", keyspace.Taken(lock), "922337203685477", strings.Repeat(name, 16))
			case label == "reserved":
				d.must(t, "SET", reservedKey(lock), long(keyspace.Calls(lock)+":"+word), "PX", "60000")
			case isOld:
				d.must(t, "SET", restoreKey(lock), oldMemory+at+":"+old, "PX", "60000")
			default:
				d.must(t, "SET", restoreKey(lock), d.memory(t)+at+":"+name, "PX", "60000")
			}
		}
	}
}

// permits reads what putPermits wrote.
func (d *db) permits(t *testing.T, lock string, start time.Time) string {
	t.Helper()
	var parts []string
	add := func(label, key string, words ...string) {
		if len(words) == 0 || words[0] == "(nil)" {
			return
		}
		if ttl := number(t, d.do(t, "PTTL", key)); ttl >= 0 {
			words = append(words, inUnits(ttl))
		}
		parts = append(parts, label+" "+strings.Join(words, " "))
	}
	since := func(at string) string { return "@" + inUnits(number(t, at)-int(start.UnixMilli())) }
	add("free", lock, d.do(t, "GET", lock))
	var taken []string
	for pair := range slices.Chunk(d.list(t, "EVAL", "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')", "1", keyspace.Taken(lock)), 2) {
		id, at := pair[0], pair[1]
		word := id[:1]
		if id != strings.Repeat(word, 16) {
			t.Errorf("the id %q is taken", id)
		}
		if at != "922337203685477" {
			word += since(at)
		}
		taken = append(taken, word)
	}
	slices.Sort(taken)
	add("taken", keyspace.Taken(lock), taken...)
	if keeper := d.do(t, "GET", reservedKey(lock)); keeper != "(nil)" {
		parts = append(parts, "reserved "+strings.TrimPrefix(keeper, keyspace.Calls(lock)+":"))
	}
	if restore := d.do(t, "GET", restoreKey(lock)); restore != "(nil)" {
		at, count, _ := strings.Cut(strings.TrimPrefix(restore, d.memory(t)), ":")
		if rest, isOld := strings.CutPrefix(restore, oldMemory); isOld {
			at, count, _ = strings.Cut(rest, ":")
			count = "old" + count
		}
		parts = append(parts, "restore "+count+since(at))
	}
	for _, key := range []string{reservedKey(lock), restoreKey(lock)} {
		if d.do(t, "PTTL", key) == "-1" {
			t.Errorf("%s has no TTL", key)
		}
	}
	return strings.Join(parts, ", ")
}

func (r permitsRow) expect(t *testing.T, d *db, what, lock string, start time.Time, reply string) {
	t.Helper()
	if !agree(reply, r.reply, time.Since(start)) {
		t.Errorf("%s: reply %q, want %q", what, reply, r.reply)
	}
	if got := d.permits(t, lock, start); !agree(got, r.after, time.Since(start)) {
		t.Errorf("%s: the permits are %q, want %q", what, got, r.after)
	}
}

func TestPermits(t *testing.T) {
	eachRedis(t, func(t *testing.T, d *db) {
		for _, r := range permitsRows() {
			t.Run(r.script.Name+"/"+r.name, func(t *testing.T) {
				lock, start, published := redistest.Name(t), time.Now().Truncate(time.Millisecond), r.published
				d.frozenAt = start
				d.putPermits(t, lock, r.before, start)
				for _, what := range []string{"the command", "the command again"} {
					r.expect(t, d, what, lock, start, r.run(t, d, lock, 7))
					if got := d.published(t, lock); got != published {
						t.Errorf("%s: published %q, want %q", what, got, published)
					}
					published = ""
				}
				if r.script == scripts.ExpirableRelease {
					d.putPermits(t, lock, r.before, start)
					d.must(t, "SET", keyspace.Calls(lock)+":u", "7 0 0")
				} else if r.reply[0] != '-' {
					r.reply = "-LATE"
				}
				if r.numbered() {
					r.expect(t, d, "an earlier command", lock, start, r.run(t, d, lock, 6))
				}
				if got := d.do(t, "GET", keyspace.Calls(lock)+":u"); r.script == scripts.ExpirableRelease && got != "7 0 0" {
					t.Errorf("a late command is recorded: %s", got)
				}
			})
		}
	})
}

// A command about permits that is refused in the middle, for any missing right, has no effect, and succeeds
// when the user has all rights. The same applies when the server is out of memory, except that permits are
// then still given back and renewed.
func TestPermits_RefusedCommandHasNoEffect(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}})
	admin.must(t, "ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all")
	limited := &db{Client: connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}, Username: "limited", Password: "secret"}).Client}
	refused := map[*scripts.Script]int{}
	for _, r := range permitsRows() {
		if r.reply[0] == '-' || r.script == scripts.ExpirableInspect {
			continue
		}
		lock := redistest.Name(t)
		rules := []string{"~* resetchannels +@all"}
		for _, command := range r.script.Commands() {
			rules = append(rules, "~* &* +@all -"+command)
		}
		keys := r.keys(lock)
		switch r.script {
		case scripts.ExpirableRelease:
			keys = append(keys, restoreKey(lock))
		case scripts.ExpirableAcquire:
			keys = append(keys, reservedKey(lock))
		}
		for i, key := range keys {
			others := "~" + strings.Join(slices.Delete(slices.Clone(keys), i, i+1), " ~")
			rules = append(rules, others+" &* +@all", others+" %R~"+key+" &* +@all")
		}
		try := func(what string, by *db, before, after func()) (refused bool) {
			start := time.Now()
			admin.putPermits(t, lock, r.before, start)
			before()
			reply := r.run(t, by, lock, 7)
			after()
			what = fmt.Sprintf("%s, %s, %s", r.script.Name, r.name, what)
			if refused = strings.HasPrefix(reply, "-"); refused {
				reply = r.run(t, admin, lock, 7)
			}
			r.expect(t, admin, what, lock, start, reply)
			return refused
		}
		for _, rule := range rules {
			if try("with "+rule, limited, func() { admin.must(t, strings.Fields("ACL SETUSER limited reset on >secret "+rule)...) }, func() {}) {
				refused[r.script]++
			}
		}
		full := func(most string) func() { return func() { admin.must(t, "CONFIG", "SET", "maxmemory", most) } }
		if try("out of memory", admin, full("1"), full("0")) && regexp.MustCompile("release|renew").MatchString(r.script.Name) {
			t.Errorf("%s, %s: refused because of memory", r.script.Name, r.name)
		}
	}
	if len(refused) != 4 {
		t.Errorf("refused: %v", refused)
	}
}
