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
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A row of permits is
//
//	name | the permits before | arguments | reply | the permits after | what is published
//
// Permits are the number of free ones, if it is set; the taken ones, each a letter with the seconds from
// the start of the test until it expires, if it does; and the TTLs of the number, "~60000", and of the set
// of taken ones. The id of a permit is its letter, 16 times.
const permitsRows = `
permits_acquire
enough                          | 3               | 30000 b 5000 a          | [2 -1]   | 1 a@5 b@30
not for all                     | 1 z@40          | 30000 a 30000 b 30000 c | [1 40000] | 0 a@30 z@40
none, and one never expires     | 0 a             | 30000 b                 | [0 -1]   | 0 a
none since fewer were set       | -2 a@20         | 30000 b                 | [0 20000] | -2 a@20
no permits                      |                 | 30000 b                 | [-2 -1]  |
expired                         | 0 a@-5 b@9 c@-1 | 30000 d                 | [1 9000] | 1 b@9 d@30 | 1
expired, all taken again        | 0 a@-5 b        | 30000 d 30000 e         | [1 -1]   | 0 b d@30
expired, since fewer were set   | -3 a@-5 b@-1    | 30000 d                 | [0 -1]   | -1
expired, of no permits          | a@-5            | 30000 d                 | [-2 -1]  | a@-5
a negative time                 | 0 z@-3000000000 | 30000 d                 | [0 -1]   | 0 z@-3000000000
a negative time, and another    | 0 b@9 z@-3000000000 | 30000 d             | [0 9000] | 0 b@9 z@-3000000000
a negative time, and one expired | 0 a@-5 b@9 z@-3000000000 | 30000 d       | [1 9000] | 0 b@9 d@30 z@-3000000000
one expired, some left          | 1 a@0 b@9       | 30000 d                 | [1 9000] | 1 b@9 d@30    | 1
they end                        | 2 ~60000        | 30000 a                 | [1 -1]   | 1 a@30 ~60000 ~60000
wrong type                      | x               | 30000 a                 | -WRONGTYPE | x

permits_release
one                             | 3 a@9 b         | a                       | [1 received] | 4 b           | 4
one that has expired            | 3 a@-9 b        | a                       | [1 received] | 4 b           | 4
several, some gone              | 3 a@9 b c       | a z c                   | [5 received] | 5 b           | 2
one twice                       | 3 a@9 b         | a a                     | [1 received] | 4 b           | 4
gone                            | 3 b             | a                       | [0 0]    | 3 b
too many                        | -3 a@9 b        | a                       | [1 0]    | -2 b
as many as were taken away      | -1 a@9 b        | a                       | [1 0]    | 0 b
of no permits                   | a@9             | a                       | [1 0]    |
32 at once                      | 0 a@9           | z z z z z z z z z z z z z z z z z z z z z z z z z z z z z z z a | [2147483648 received] | 1 | 1
wrong type                      | x a@9           | a                       | -WRONGTYPE | x a@9

permits_renew
all                             | 1 a@9 b@40      | 30000 a b               | 11       | 1 a@30 b@30
gone, expired, never expires    | 1 b@-1 c        | 30000 a b c             | 001      | 1 b@-1 c@30
expired just now                | 1 a@0           | 30000 a                 | 0        | 1 a@0

permits_set
try                             |                 | try 10                  | [1]      | 10            | 10
try, there are some             | 0 a             | try 10                  | [0]      | 0 a
try nothing                     |                 | try 0                   | [1]      | 0
more                            | 3 a b           | set 10                  | [1]      | 8 a b         | 10
as many                         | 3 a b           | set 5                   | [1]      | 3 a b
fewer than taken                | 3 a b           | set 1                   | [1]      | -1 a b        | 1
none                            | 3 a b           | set 0                   | [1]      | -2 a b
the first                       |                 | set 5                   | [1]      | 5             | 5
as many as can be               |                 | set 2147483647          | [1]      | 2147483647    | 2147483647
add                             | 3 a b ~60000    | add 5                   | [1]      | 8 a b ~60000  | 5
too many                        | 2147483640 a    | add 8                   | -BADVALUE there would be more than 2147483647 permits | 2147483640 a
add the first                   |                 | add 5                   | [1]      | 5             | 5
subtract                        | 3 a b           | add -5                  | [1]      | -2 a b
wrong type                      | x               | set 5                   | -WRONGTYPE | x

permits_inspect
some                            | 1 a@-1 b@9 c    |                         | [2 2 4 set] | 1 a@-1 b@9 c
expired just now                | 1 a@0 b@9       |                         | [2 1 3 set] | 1 a@0 b@9
none                            | 0               |                         | [0 0 0 set] | 0
no number is set                |                 |                         | [0 0 0 ] |
`

type permitsRow struct {
	script                                      *scripts.Script
	name, before, args, reply, after, published string
}

func permitsTable() (rows []permitsRow) {
	var of *scripts.Script
	for line := range strings.Lines(permitsRows) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if !strings.Contains(line, "|") {
			of = script(line)
			continue
		}
		cells := append(split(line, "|"), "")[:6]
		rows = append(rows, permitsRow{of, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]})
	}
	return rows
}

// numbered reports whether the script must have its effect only once.
func (r permitsRow) numbered() bool { return len(r.keys("")) >= 3 }

func (r permitsRow) keys(lock string) []string {
	free, taken := lock, keyspace.Taken(lock)
	switch r.script {
	case scripts.PermitsRenew:
		return []string{taken}
	case scripts.PermitsInspect:
		return []string{free, taken}
	}
	keys := []string{free, taken, keyspace.Calls(lock) + ":u"}
	if r.script == scripts.PermitsSet {
		keys = append(keys, keyspace.Calls(lock)+":restore")
	}
	return keys
}

// run runs the script as the client's command with that number.
func (r permitsRow) run(t *testing.T, d *db, lock string, number int) string {
	t.Helper()
	var args []string
	if r.numbered() {
		args = []string{strconv.Itoa(number), keyspace.PermitsChannel(lock)}
	}
	for word := range strings.FieldsSeq(r.args) {
		if len(word) == 1 && word[0] >= 'a' {
			word = strings.Repeat(word, 16)
		}
		args = append(args, word)
	}
	reply := d.run(t, r.script, r.keys(lock), args)
	if r.script == scripts.PermitsRelease { // other tests listen as well
		reply = regexp.MustCompile(` [1-9]\d*\]`).ReplaceAllString(reply, " received]")
	}
	return reply
}

func (d *db) putPermits(t *testing.T, lock, state string, start time.Time) {
	t.Helper()
	d.must(t, "DEL", lock, keyspace.Taken(lock), keyspace.Calls(lock)+":u")
	for word := range strings.FieldsSeq(state) {
		letter, seconds, ends := strings.Cut(word, "@")
		switch _, err := strconv.Atoi(word); {
		case word[0] == '~':
			d.must(t, "PEXPIRE", lock, word[1:])
		case err == nil, word == "x":
			d.must(t, "SET", lock, word)
		case ends:
			d.must(t, "ZADD", keyspace.Taken(lock), strconv.Itoa(int(start.UnixMilli())+1000*number(t, seconds)), strings.Repeat(letter, 16))
		default:
			d.must(t, "ZADD", keyspace.Taken(lock), "922337203685477", strings.Repeat(letter, 16))
		}
	}
}

// permits reads what putPermits wrote; the times are in ms.
func (d *db) permits(t *testing.T, lock string, start time.Time) string {
	t.Helper()
	words := strings.Fields(strings.TrimSuffix(d.do(t, "GET", lock), "(nil)"))
	taken := strings.Fields(strings.Trim(d.do(t, "EVAL", "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')", "1", keyspace.Taken(lock)), "[]"))
	for i := 0; i < len(taken); i += 2 {
		word := taken[i][:1]
		if taken[i] != strings.Repeat(word, 16) {
			t.Errorf("the id %q is taken", taken[i])
		}
		if taken[i+1] != "922337203685477" {
			word += fmt.Sprint("@", number(t, taken[i+1])-int(start.UnixMilli()))
		}
		taken[i/2] = word
	}
	taken = taken[:len(taken)/2]
	slices.Sort(taken)
	words = append(words, taken...)
	for _, key := range []string{lock, keyspace.Taken(lock)} {
		if ttl := d.do(t, "PTTL", key); ttl[0] != '-' {
			words = append(words, "~"+ttl)
		}
	}
	return strings.Join(words, " ")
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
		for _, r := range permitsTable() {
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
				if r.script == scripts.PermitsRelease {
					d.putPermits(t, lock, r.before, start)
					d.must(t, "SET", keyspace.Calls(lock)+":u", "7 0 0")
				} else if r.reply[0] != '-' {
					r.reply = "-LATE"
				}
				if r.numbered() {
					r.expect(t, d, "an earlier command", lock, start, r.run(t, d, lock, 6))
				}
				if got := d.do(t, "GET", keyspace.Calls(lock)+":u"); r.script == scripts.PermitsRelease && got != "7 0 0" {
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
	for _, r := range permitsTable() {
		if r.reply[0] == '-' || r.script == scripts.PermitsInspect {
			continue
		}
		lock := redistest.Name(t)
		rules := []string{"~* resetchannels +@all"}
		for _, command := range r.script.Commands() {
			rules = append(rules, "~* &* +@all -"+command)
		}
		for i, key := range r.keys(lock) {
			others := "~" + strings.Join(slices.Delete(r.keys(lock), i, i+1), " ~")
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
