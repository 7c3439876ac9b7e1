package scripts_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The signs in the rows of *_rows_test.go are explained here; table_test.go has an example.
//
// A state (before, after) is what Redis has of a lock: the value of its key, and after each comma other keys with a
// label. "30s" alone is the TTL of the key; a time after "@" counts from the start of the test.
//
//	a=1 u:2=1 30s            a hash with these fields and a TTL; u:2 is the owner of the client u with its term 2
//	'7'                      a string, without a TTL; any key can be a string or a hash, too: "tokens 'x' 60s"
//	leases u:1#1=30s v:1#2   read leases: the first of u:1, with its TTL, and the second of v:1, without one
//	calls u=3.1.9            the record of u's last command: its number 3 and its reply [1 9]
//	counted a b              the ids by which a latch was counted down
//	waitqueue v=2.7@-3s open@5s turns=1 15s
//	                         the wait queue: an entry of v, until when the lock is left to foreign clients, how many
//	                         transfers there were since, and the TTL
//	waitorder 'x' 30s        the order of the wait queue, if that is not a sorted set
//	tokens '7'               the counter of fencing tokens
//	queue v:1@300s v:2 60s   the queue of a fair lock, in order: v:1 times out at 300 s, and v:2 has no timeout
//	timeouts v:3@50s         timeouts of owners that are not in the queue
//
// Of an expirable semaphore the parts are, besides the TTLs:
//
//	free 3                   the number of permits that are free
//	taken a@5s b             the permits that are taken, with 16 times the letter as the id; b never expires
//	reserved u               the client for which permits are reserved
//	restore 2@9s             a restore waits until then, and has seen two permits taken; "old2" if in another memory
//
// An entry "v=2.7@-3s" is of the client v, its term 2 and its command 7, was added 3 s before the test, and was last
// seen 1 s before it, unless "seen@0s" follows. It may have options, as in "v=2.7+reads+tokens3@-3s". In args an entry
// has no times. The options:
//
//	+reads +tokens3       wants to read, and wants 3 tokens
//	+listens +ttl60s      listens on its turn channel, and lasts for 60 s instead of 20 s
//	+reserves +lapsed     is of a MultiLock that reserves the lock, or has done so for too long
//	reserved@-4s          is a word of its own: the lock is reserved for the entry since then
//
// A message (published) is "<channel>=<payload>", with dots for spaces:
//
//	channel=0 rwchannel=0 permits=9 latch=1   on the channel of a lock, read/write lock, semaphore or latch
//	channel:v:2=0                             to the owner v:2 in the queue of a fair lock
//	turn:v=2.7.10                             to v: its entry 2.7 got the lock, with the token 10; without one, 2.7.0
//	turn:v:asked=2.0.0                        to v: others ask for the lock that it holds with the term 2
//
// A listener is a client that subscribes to these channels: "foreign", or "ours" if it uses the wait queue too, or an
// owner in the queue of a fair lock, "v:2". Letters stand for the UUIDs of clients: see owners_test.go.

const (
	callTTL = "3600000"
	idTTL   = "604800000"
)

// labels begin the parts of a state, in this order; "" is the lock itself. In capitals they name keys: see names.
var labels = []string{"", "leases", "calls", "counted", "waitqueue", "waitorder", "tokens", "queue", "timeouts"}

// countedMark is the mark in a set of ids.
var countedMark = strings.Repeat("\x00", 513)

// names replaces the names that the tables use for the keys and channels of a lock.
func names(lock string) *strings.Replacer {
	tag := "{" + lock + "}"
	return strings.NewReplacer("NAME", lock, "LEASES", tag, "RECORD", "record "+tag,
		"RWCHANNEL", "redisson_rwlock:"+tag, "CHANNEL", "redisson_lock__channel:"+tag, "PERMITS", "redisson_sc:"+tag, "LATCH", "redisson_countdownlatch__channel__"+tag,
		"CALLS", "lockkeeper_calls:"+tag, "COUNTED", "lockkeeper_counted:"+tag, "TOKENS", "redisson_lock_token:"+tag,
		"QUEUE", "redisson_lock_queue:"+tag, "TIMEOUTS", "redisson_lock_timeout:"+tag,
		"WAITQUEUE", "lockkeeper_wait_queue:"+tag, "WAITORDER", "lockkeeper_wait_order:"+tag, "WAITERS", "lockkeeper_waiters:"+tag, "SETTINGS", "5000 1 0")
}

// list returns the elements of an array.
func (d *db) list(t *testing.T, words ...string) (elements []string) {
	t.Helper()
	all, err := d.Do(t.Context(), d.B().Arbitrary(longWords(words)...).Build()).ToArray()
	if err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	for _, e := range all {
		elements = append(elements, short(text(e, e.Error())))
	}
	return elements
}

// putOrder writes the order of the entries of a wait queue.
func (d *db) putOrder(t *testing.T, lock string) {
	t.Helper()
	queue, order := names(lock).Replace("WAITQUEUE"), names(lock).Replace("WAITORDER")
	if d.do(t, "TYPE", queue) != "hash" || d.do(t, "TYPE", order) == "string" {
		return
	}
	for _, scored := range orderWords(t, d.list(t, "EVAL", "return redis.call('HGETALL', KEYS[1])", "1", queue)) {
		member, score, _ := strings.Cut(scored, " ")
		if client, ends := strings.CutPrefix(member, "-"); ends {
			member = "-" + long(client)
		}
		d.must(t, "ZADD", order, score, member)
	}
	d.must(t, "PEXPIRE", order, d.do(t, "PTTL", queue))
}

// put brings a lock into a state.
func (d *db) put(t *testing.T, lock, state string, start time.Time) {
	t.Helper()
	what := names(lock).Replace
	for part := range strings.SplitSeq(state, ", ") {
		label, rest, _ := strings.Cut(part, " ")
		key := what(strings.ToUpper(label))
		if !slices.Contains(labels, label) {
			label, key, rest = "", lock, part
		}
		if label == "waitqueue" {
			rest = d.putEntries(t, key, rest, start)
		}
		for word := range strings.FieldsSeq(rest) {
			name, value, _ := strings.Cut(word, "=")
			owner, _, _ := strings.Cut(word, "@")
			before, ms, timed := cutTime(word)
			after := strconv.Itoa(int(start.UnixMilli()) + ms)
			switch {
			case word[0] == '\'':
				d.must(t, "SET", key, strings.Trim(word, "'"))
			case timed && before == "":
				d.must(t, "PEXPIRE", key, strconv.Itoa(ms))
				if label == "queue" {
					d.must(t, "PEXPIRE", what("TIMEOUTS"), strconv.Itoa(ms))
				}
			case label == "leases":
				reader, i, _ := strings.Cut(name, "#")
				lease := key + ":" + reader + ":rwlock_timeout:" + i
				if d.must(t, "SET", lease, "1"); timed {
					d.must(t, "PEXPIRE", lease, strconv.Itoa(ms))
				}
			case label == "calls":
				d.must(t, "SET", key+":"+name, strings.ReplaceAll(value, ".", " "), "PX", callTTL)
			case label == "counted":
				d.must(t, "SADD", key, countedMark, word)
				d.must(t, "PEXPIRE", key, idTTL)
			case label == "queue", label == "timeouts":
				if label == "queue" {
					d.must(t, "RPUSH", key, owner)
				}
				if timed {
					d.must(t, "ZADD", what("TIMEOUTS"), after, owner)
				}
			case before == "open@":
				d.must(t, "HSET", key, "open", after+"000")
			default:
				d.must(t, "HSET", key, name, value)
			}
		}
	}
	d.putOrder(t, lock)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Error(err)
	}
	return n
}

func (d *db) must(t *testing.T, words ...string) {
	t.Helper()
	if reply := d.do(t, words...); strings.HasPrefix(reply, "-") {
		t.Fatalf("%s failed: %s", words, reply)
	}
}

// dump lists all keys of a lock: their names, types, TTLs and values.
const dump = `
local all, lines = redis.call('KEYS', '*{' .. ARGV[1] .. '}*'), {}
table.insert(all, ARGV[1])
table.sort(all)
for _, key in ipairs(all) do
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'none' then
    local commands = {
      hash = {'HGETALL', key}, string = {'GET', key}, list = {'LRANGE', key, 0, -1}, set = {'SMEMBERS', key},
      zset = {'ZRANGE', key, 0, -1, 'WITHSCORES'},
    }
    local value = redis.call(unpack(commands[kind]))
    table.insert(lines, table.concat({key, kind, redis.call('PTTL', key), type(value) == 'table' and table.concat(value, '\t') or value}, '\t'))
  end
end
return table.concat(lines, '\n')`

// state reads a lock. The state has the TTL of the queue of a fair lock only if that is wanted.
func (d *db) state(t *testing.T, lock string, start time.Time, wantQueueTTL bool) string {
	t.Helper()
	parts := map[string]string{} // by label; "" is the lock itself
	var order, wantOrder, queue []string
	var queueTTLs []int
	timeouts := map[string]string{}
	for line := range strings.Lines(d.do(t, "EVAL", dump, "0", lock)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(words) < 4 {
			t.Fatalf("no key with type and TTL: %q", line)
		}
		kind, ttl, value := words[1], number(t, words[2]), words[3:]
		label, rest := labelOf(lock, words[0])
		ends := ""
		if ttl >= 0 {
			ends = " " + inUnits(ttl)
		}
		switch {
		case label == "leases" && value[0] == "1":
			parts[label] += " " + strings.Replace(rest, ":rwlock_timeout:", "#", 1) + strings.Replace(ends, " ", "=", 1)
		case label == "calls" && value[0] == "0":
		case label == "calls":
			parts[label] += " " + rest + "=" + strings.Join(strings.Fields(value[0]), ".")
			if !agree(words[2], callTTL, time.Since(start)) {
				parts[label] += ends
			}
		case label == "counted":
			ids := slices.DeleteFunc(slices.Clone(value), func(id string) bool { return id == countedMark })
			slices.Sort(ids)
			if parts[label] = " " + strings.Join(ids, " "); len(ids) == len(value) {
				parts[label] += " without a mark"
			}
			if !agree(words[2], idTTL, time.Since(start)) {
				parts[label] += ends
			}
		case label == "waitqueue" && kind == "hash":
			parts[label], wantOrder = entriesOf(t, value, start)+ends, orderWords(t, value)
		case label == "waitorder" && kind == "zset" && ttl > 0:
			order = pairs(value, " ")
		case label == "queue" && kind == "list":
			queue, queueTTLs = value, append(queueTTLs, ttl)
		case label == "timeouts" && kind == "zset":
			for i := 0; i < len(value); i += 2 {
				timeouts[value[i]] = "@" + inUnits(number(t, value[i+1])-int(start.UnixMilli()))
			}
			queueTTLs = append(queueTTLs, ttl)
		case label == "record":
		case kind == "hash":
			parts[label] = " " + strings.Join(pairs(value, "="), " ") + ends
		default:
			parts[label] += " '" + strings.Join(value, " ") + "'" + ends
		}
	}
	if !slices.Equal(order, wantOrder) && parts["waitorder"] == "" {
		parts["waitqueue"] += fmt.Sprintf(" in the order %s instead of %s", order, wantOrder)
	}
	for _, owner := range queue {
		parts["queue"] += " " + owner + timeouts[owner]
		delete(timeouts, owner)
	}
	for _, owner := range slices.Sorted(maps.Keys(timeouts)) {
		parts["timeouts"] += " " + owner + timeouts[owner]
	}
	if wantQueueTTL && len(queueTTLs) == 2 { // one was read later than the other
		least, most := slices.Min(queueTTLs), slices.Max(queueTTLs)
		if parts["queue"] += " " + inUnits(least); most-least >= 1000 {
			parts["queue"] += " " + inUnits(most)
		}
	}
	state := ""
	for _, label := range append(slices.Clone(labels), slices.Sorted(maps.Keys(parts))...) { // each once, and then unknown keys
		if parts[label] != "" {
			state += ", " + strings.TrimSpace(label+parts[label])
		}
		delete(parts, label)
	}
	return strings.TrimPrefix(state, ", ")
}

// labelOf returns the label of a key, and what follows it in the key.
func labelOf(lock, key string) (label, rest string) {
	for _, label := range append(labels, "record")[1:] {
		if rest, ok := strings.CutPrefix(key, names(lock).Replace(strings.ToUpper(label))); ok {
			return label, strings.TrimPrefix(rest, ":")
		}
	}
	return strings.TrimPrefix(key, lock), "" // the lock itself, or an unknown key
}

// pairs joins each word with the next one, and sorts the pairs.
func pairs(words []string, by string) (all []string) {
	for pair := range slices.Chunk(words, 2) {
		all = append(all, strings.Join(pair, by))
	}
	slices.Sort(all)
	return all
}

var timeInWord = regexp.MustCompile(`^(?:(.*[@=])?(-?\d+)(ms|s|h)|(-?\d+))$`)

// cutTime cuts a word before its time, which it returns in ms: "v:1@" and 300000 of "v:1@300s". The times in replies
// have no unit.
func cutTime(word string) (before string, ms int, timed bool) {
	m := timeInWord.FindStringSubmatch(strings.Trim(word, "[],"))
	if m == nil {
		return "", 0, false
	}
	n, err := strconv.Atoi(m[2] + m[4])
	return m[1], n * map[string]int{"h": 3600_000, "s": 1000, "ms": 1, "": 1}[m[3]], err == nil
}

// inUnits writes a time in ms with a unit.
func inUnits(ms int) string {
	if ms%1000 == 0 {
		return strconv.Itoa(ms/1000) + "s"
	}
	return strconv.Itoa(ms) + "ms"
}

// agree reports whether two states, or replies, are the same, apart from the time that has passed: TTLs of a second or
// more may have less left, and times after "@" may be later or earlier by that time, unless they end with "!".
func agree(got, want string, passed time.Duration) bool {
	if strings.HasPrefix(want, "-") && len(want) != 2 { // want is a part of an error
		// Redis before 7 puts the code of a script's error behind other words.
		return strings.HasPrefix(got, want) || strings.HasPrefix(got, "-Error running script") && strings.Contains(got, want[1:])
	}
	gots, wants := strings.Split(got, " "), strings.Split(want, " ")
	if len(gots) != len(wants) {
		return false
	}
	for i, w := range wants {
		if w == gots[i] {
			continue
		}
		inexact := strings.Replace(w, "!", "", 1)
		before, wanted, timed := cutTime(inexact)
		sameBefore, ours, ok := cutTime(gots[i])
		least, most := int(passed.Milliseconds())+2, 0 // how much may be missing, and how much too many
		switch {
		case !timed || !ok || before != sameBefore:
			return false
		case inexact != w, before == "reserved@": // which scripts write by the fixed time
			least = 0
		case strings.HasSuffix(before, "@"):
			most = least
		case wanted <= -1000:
			wanted, ours = -wanted, -ours // for how many ms a restore still waits
		case wanted < 1000:
			return false
		}
		if ours < wanted-least || ours > wanted+most {
			return false
		}
	}
	return true
}
