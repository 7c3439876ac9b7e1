package scripts_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A lock is written as its hash, the fields sorted, and its TTL in ms, if it has one:
// "a=1 b=2 30000". A string instead of a hash is "'text'". Then come, each after a comma, the read leases of
// a read/write lock, "u:1#1 60000", and the wait queue, ">v=2.7+listens@-3 seen@-1 >open@5 >turns=2 >20000": each
// entry as "<client>=<term>.<seq>", preceded by its TTL and a colon unless that is 20000; with "+reads",
// "+tokens3", "+listens", and of a MultiLock "+reserves", "+reserved-4" while the lock is reserved for it since then, or
// "+lapsed"; and with the times when it was added and last seen, in seconds from the start of the test. The two special
// fields follow, and the TTL. After a slash come the other keys of a lock: the counter of a fenced one, "'7'"; or the
// queue of a fair one, each owner with the seconds from the start of the test to its timeout, "v:1@300 v:2" (the second
// has none), a timeout of an owner that is not in the queue, "+v:3@50", and the TTL of the queue, "~60000".
//
// A synchronizer is a string. After a comma come the records of the clients' last commands, with the TTL
// callTTL: each as "%<client>.<number of the command>.<reply, with dots>", unless it was none; and the ids
// by which a latch was counted down, "&a &b", with the TTL idTTL.

const (
	callTTL = "3600000"
	idTTL   = "604800000"
)

// countedMark is the mark in a set of ids.
var countedMark = strings.Repeat("\x00", 513)

// names replaces the names that the tables use for the keys and channels of a lock.
func names(lock string) *strings.Replacer {
	tag := "{" + lock + "}"
	return strings.NewReplacer("NAME", lock, "HOLDS", tag, "RECORD", "record "+tag,
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
	key, queue, timeouts := lock, what("QUEUE"), what("TIMEOUTS") // key: the key to which the next TTL applies
	entry := ""
	for word := range strings.FieldsSeq(strings.NewReplacer(",", " ", "/", " / ").Replace(state)) {
		owner, value, isField := strings.Cut(word, "=")
		switch reader, i, isLease := strings.Cut(word, "#"); {
		case word[0] == '>' && isField && strings.Contains(word, "@"):
			entry = word
		case word[0] == '>', strings.HasPrefix(word, "seen@"):
			d.putQueueWord(t, what("WAITQUEUE"), word, entry, start)
		case word[0] == '%':
			record, said, _ := strings.Cut(word[1:], ".")
			d.must(t, "SET", what("CALLS:")+record, strings.ReplaceAll(said, ".", " "), "PX", callTTL)
		case word[0] == '&':
			d.must(t, "SADD", what("COUNTED"), countedMark, word[1:])
			d.must(t, "PEXPIRE", what("COUNTED"), idTTL)
		case word == "/":
			key = what("TOKENS")
		case word == "queue", word == "timeouts", word == "waitqueue", word == "waitorder":
			key = what(strings.ToUpper(word))
		case isField:
			d.must(t, "HSET", key, owner, value)
		case isLease:
			key = what("HOLDS:") + reader + ":rwlock_timeout:" + i
			d.must(t, "SET", key, "1")
		case word[0] == '\'':
			d.must(t, "SET", key, strings.Trim(word, "'"))
		case word[0] == '~':
			d.must(t, "PEXPIRE", queue, word[1:])
			d.must(t, "PEXPIRE", timeouts, word[1:])
		case !strings.Contains(word, ":"):
			d.must(t, "PEXPIRE", key, word)
		default:
			owner, seconds, timed := strings.Cut(word, "@")
			owner, stray := strings.CutPrefix(owner, "+")
			if !stray {
				d.must(t, "RPUSH", queue, owner)
			}
			if timed {
				d.must(t, "ZADD", timeouts, strconv.Itoa(int(start.UnixMilli())+1000*number(t, seconds)), owner)
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

// state reads a lock. Timeouts in its queue are in ms; the TTLs of the queue are left out unless wanted.
func (d *db) state(t *testing.T, lock string, start time.Time, wantTTLs bool) string {
	t.Helper()
	var hash, leases, waiting, others string
	var order, wantOrder []string
	var queue []string
	var ttls []int // of the queue
	timeouts := map[string]string{}
	what := names(lock).Replace
	for line := range strings.Lines(d.do(t, "EVAL", dump, "0", lock)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(words) < 4 {
			t.Fatalf("no key with type and TTL: %q", line)
		}
		key, kind, ttl, value := words[0], words[1], words[2], words[3:]
		ends := strings.TrimSuffix(" "+ttl, " -1")
		state := "'" + strings.Join(value, " ") + "'" + ends
		if kind == "hash" {
			var fields []string
			for i := 0; i < len(value); i += 2 {
				fields = append(fields, value[i]+"="+value[i+1])
			}
			slices.Sort(fields)
			state = strings.Join(fields, " ") + ends
		}
		reader, isLease := strings.CutPrefix(key, what("HOLDS:"))
		switch {
		case key == lock:
			hash = state
		case isLease && value[0] == "1":
			leases += ", " + strings.Replace(reader, ":rwlock_timeout:", "#", 1) + ends
		case strings.HasPrefix(key, what("CALLS:")) && value[0] == "0":
		case strings.HasPrefix(key, what("CALLS:")):
			leases += ", %" + strings.TrimPrefix(key, what("CALLS:")) + "." + strings.Join(strings.Fields(value[0]), ".")
			if !agree(ttl, callTTL, time.Since(start)) {
				leases += " " + ttl
			}
		case key == what("COUNTED"):
			if i := slices.Index(value, countedMark); i >= 0 {
				value = slices.Delete(value, i, i+1)
			} else {
				leases += ", without a mark"
			}
			slices.Sort(value)
			leases += ", &" + strings.Join(value, " &")
			if !agree(ttl, idTTL, time.Since(start)) {
				leases += " " + ttl
			}
		case key == what("WAITQUEUE") && kind == "hash":
			waiting, wantOrder = queueWords(t, value, ttl, start), orderWords(t, value)
		case key == what("WAITORDER") && kind == "zset" && number(t, ttl) > 0:
			for i := 0; i < len(value); i += 2 {
				order = append(order, value[i]+" "+value[i+1])
			}
		case key == what("WAITQUEUE"):
			waiting = ", waitqueue " + state
		case key == what("WAITORDER"):
			others += "waitorder " + state
		case key == what("TOKENS"):
			others += state
		case key == what("QUEUE") && kind == "list":
			queue, ttls = value, append(ttls, number(t, ttl))
		case key == what("TIMEOUTS") && kind == "zset":
			for i := 0; i < len(value); i += 2 {
				timeouts[value[i]] = fmt.Sprint("@", number(t, value[i+1])-int(start.UnixMilli()))
			}
			ttls = append(ttls, number(t, ttl))
		case key == what("QUEUE"):
			others += "queue " + state
		case key == what("TIMEOUTS"):
			others += "timeouts " + state
		case key != what("RECORD"):
			others += key + " is " + kind + " " + state
		}
	}
	if slices.Sort(order); !slices.Equal(order, wantOrder) && !strings.Contains(others, "waitorder") {
		waiting += fmt.Sprintf(" in the order %s instead of %s", order, wantOrder)
	}
	for i, owner := range queue {
		queue[i] = owner + timeouts[owner]
		delete(timeouts, owner)
	}
	for owner, timeout := range timeouts {
		queue = append(queue, "+"+owner+timeout)
	}
	if wantTTLs && len(ttls) == 2 { // one was read later than the other
		least, most := slices.Min(ttls), slices.Max(ttls)
		if queue = append(queue, fmt.Sprint("~", least)); most-least >= 1000 {
			queue = append(queue, fmt.Sprint("~", most))
		}
	}
	if others += strings.Join(queue, " "); others != "" {
		others = " /" + others
	}
	return strings.TrimSpace(strings.TrimPrefix(hash+leases+waiting, ", ") + others)
}

// agree reports whether two states, or replies, are the same, apart from the time that has passed: TTLs of
// a second or more may have less left, and timeouts in a queue may be later or earlier by that time, unless
// they end with "!".
func agree(got, want string, passed time.Duration) bool {
	if strings.HasPrefix(want, "-") && len(want) != 2 { // want is a part of an error
		// Redis before 7 puts the code of a script's error behind other words.
		return strings.HasPrefix(got, want) || strings.HasPrefix(got, "-Error running script") && strings.Contains(got, want[1:])
	}
	gots, wants := strings.Split(got, " "), strings.Split(want, " ")
	if len(gots) != len(wants) {
		return false
	}
	ms := int(passed.Milliseconds()) + 2
	for i, w := range wants {
		if w == gots[i] {
			continue
		}
		least, most := ms, 0 // how much may be missing, and how much too many
		owner, seconds, timed := strings.Cut(w, "@")
		if timed {
			most = ms
			exact := false
			if seconds, exact = strings.CutSuffix(seconds, "!"); exact {
				least, most = 0, 0
			}
			if !strings.HasPrefix(gots[i], owner+"@") {
				return false
			}
			gots[i], w = strings.TrimPrefix(gots[i], owner+"@"), seconds+"000"
		}
		wanted, err := strconv.Atoi(strings.Trim(w, "[],~>"))
		ours, err2 := strconv.Atoi(strings.Trim(gots[i], "[],~>"))
		if wanted <= -1000 && !timed {
			wanted, ours = -wanted, -ours // for how many ms a restore still waits
		}
		if err != nil || err2 != nil || wanted < 1000 && !timed || ours < wanted-least || ours > wanted+most {
			return false
		}
	}
	return true
}
