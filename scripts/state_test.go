package scripts_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A lock is written as its hash, the fields sorted, and its TTL in ms, if it has one:
// "a=1 b=2 30000". A string in its place is "'text'". Then come, each behind a comma, what a
// read/write lock has beside its hash: its read leases, "u:1#1 60000"; and the line, ">v=2.7.0.0.1@-3 ^@-1
// >open@5 >turns=2 >20000": each place as "<client>=<term>.<seq>.<mode>.<tokens>.<listens>",
// before which stand its TTL and a colon unless that is 20000, with when it came and when it was seen, in seconds from the start of the test; the two special
// fields; and the TTL. A place that reserves the lock has another word, which is "k" and a time, too,
// while the lock is kept for it. Behind a slash stands what else a lock has beside its hash: the
// counter of a fenced one, "'7'"; or the queue of a fair one, each owner with the seconds from
// the start of the test to its timeout, "v:1@300 v:2" (the second has none), a timeout of
// somebody who is not in the queue, "+v:3@50", and the TTL of the queue, "~60000".
//
// A synchronizer is a string. Behind a comma come the records of the clients' last commands, which
// last for callTTL: each as "%<client>.<number of the command>.<reply, with dots>", unless it was none;
// and the ids by which a latch was counted down, "&a &b", which last for idTTL.

const (
	callTTL = "3600000"
	idTTL   = "604800000"
)

// countedMark is in a set of ids besides.
var countedMark = strings.Repeat("\x00", 513)

// names replaces what the keys and channels of a lock are called in the tables.
func names(lock string) *strings.Replacer {
	tag := "{" + lock + "}"
	return strings.NewReplacer("NAME", lock, "HOLDS", tag, "RECORD", "record "+tag,
		"RWCHANNEL", "redisson_rwlock:"+tag, "CHANNEL", "redisson_lock__channel:"+tag, "PERMITS", "redisson_sc:"+tag, "LATCH", "redisson_countdownlatch__channel__"+tag,
		"CALLS", "lockkeeper_calls:"+tag, "COUNTED", "lockkeeper_counted:"+tag, "TOKENS", "redisson_lock_token:"+tag,
		"QUEUE", "redisson_lock_queue:"+tag, "TIMEOUTS", "redisson_lock_timeout:"+tag,
		"LINE", "lockkeeper_wait_queue:"+tag, "WAITERS", "lockkeeper_waiters:"+tag, "SETTINGS", "5000 1 0")
}

// placeWords are the words that the scripts have for a place.
func placeWords(place string) string {
	ttl, rest, timed := strings.Cut(place, ":")
	if !timed {
		ttl, rest = "20000", place
	}
	return ttl + " " + strings.ReplaceAll(rest, ".", " ")
}

// lineWord puts a word of the line; place is the last one that came before it.
func (d *db) lineWord(t *testing.T, line, word, place string, start time.Time) {
	t.Helper()
	at := func(seconds string) string { return strconv.Itoa(int(start.UnixMicro()) + 1e6*number(t, seconds)) }
	if seen, isSeen := strings.CutPrefix(word, "^@"); isSeen {
		place, arrived, _ := strings.Cut(place, "@")
		client, rest, _ := strings.Cut(place, "=")
		if text, since, isKept := strings.Cut(rest, ".k"); isKept {
			rest = text + "." + at(since)
		}
		d.must(t, "HSET", line, client[1:], at(arrived)+" "+at(seen)+" "+placeWords(rest))
		return
	}
	field, value, isPlace := strings.Cut(word[1:], "=")
	until, isOpen := strings.CutPrefix(word, ">open@")
	switch {
	case isOpen:
		d.must(t, "HSET", line, "open", at(until))
	case field == "turns":
		d.must(t, "HSET", line, field, value)
	case !isPlace:
		d.must(t, "PEXPIRE", line, field)
	}
}

// lineWords are the words of a line.
func lineWords(t *testing.T, fields []string, ttl string, start time.Time) string {
	t.Helper()
	since := func(micros string) string { return strconv.Itoa(number(t, micros)/1000 - int(start.UnixMilli())) }
	var places []string // each behind when it came
	var open, turns string
	for i := 0; i < len(fields); i += 2 {
		field, value := fields[i], strings.Fields(fields[i+1])
		switch field {
		case "open":
			open = " >open@" + since(value[0])
		case "turns":
			turns = " >turns=" + value[0]
		default:
			if len(value) == 9 && len(value[8]) > 1 {
				value[8] = "k" + strconv.Itoa(int(math.Floor(float64(number(t, value[8])-int(start.UnixMicro()))/1e6)))
			}
			ttl := strings.TrimPrefix(value[2]+":", "20000:")
			places = append(places, value[0]+" >"+field+"="+ttl+strings.Join(value[3:], ".")+"@"+since(value[0])+" ^@"+since(value[1]))
		}
	}
	slices.Sort(places)
	words := ","
	for _, place := range places {
		_, place, _ = strings.Cut(place, " ")
		words += " " + place
	}
	return words + open + turns + " >" + ttl
}

// put brings a lock into a state.
func (d *db) put(t *testing.T, lock, state string, start time.Time) {
	t.Helper()
	what := names(lock).Replace
	key, queue, timeouts := lock, what("QUEUE"), what("TIMEOUTS") // key: of what the next TTL is
	place := ""
	for word := range strings.FieldsSeq(strings.NewReplacer(",", " ", "/", " / ").Replace(state)) {
		owner, value, isField := strings.Cut(word, "=")
		switch reader, i, isLease := strings.Cut(word, "#"); {
		case word[0] == '>' && isField && strings.Contains(word, "@"):
			place = word
		case word[0] == '>', word[0] == '^':
			d.lineWord(t, what("LINE"), word, place, start)
		case word[0] == '%':
			record, said, _ := strings.Cut(word[1:], ".")
			d.must(t, "SET", what("CALLS:")+record, strings.ReplaceAll(said, ".", " "), "PX", callTTL)
		case word[0] == '&':
			d.must(t, "SADD", what("COUNTED"), countedMark, word[1:])
			d.must(t, "PEXPIRE", what("COUNTED"), idTTL)
		case word == "/":
			key = what("TOKENS")
		case word == "queue", word == "timeouts", word == "line":
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
			owner, nobody := strings.CutPrefix(owner, "+")
			if !nobody {
				d.must(t, "RPUSH", queue, owner)
			}
			if timed {
				d.must(t, "ZADD", timeouts, strconv.Itoa(int(start.UnixMilli())+1000*number(t, seconds)), owner)
			}
		}
	}
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
		t.Fatalf("%s: %s", words, reply)
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
    local value = redis.call(unpack(({hash = {'HGETALL', key}, string = {'GET', key}, list = {'LRANGE', key, 0, -1}, set = {'SMEMBERS', key}, zset = {'ZRANGE', key, 0, -1, 'WITHSCORES'}})[kind]))
    table.insert(lines, table.concat({key, kind, redis.call('PTTL', key), type(value) == 'table' and table.concat(value, '\t') or value}, '\t'))
  end
end
return table.concat(lines, '\n')`

// state reads a lock. Timeouts in its queue are in ms; the TTLs of the queue are left out
// unless they are wanted.
func (d *db) state(t *testing.T, lock string, start time.Time, wantTTLs bool) string {
	t.Helper()
	var hash, leases, places, beside string
	var queue []string
	var ttls []int // of the queue
	timeouts := map[string]string{}
	what := names(lock).Replace
	for line := range strings.Lines(d.do(t, "EVAL", dump, "0", lock)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(words) < 4 {
			t.Fatal(line)
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
		case key == what("LINE") && kind == "hash":
			places = lineWords(t, value, ttl, start)
		case key == what("LINE"):
			places = ", line " + state
		case key == what("TOKENS"):
			beside += state
		case key == what("QUEUE") && kind == "list":
			queue, ttls = value, append(ttls, number(t, ttl))
		case key == what("TIMEOUTS") && kind == "zset":
			for i := 0; i < len(value); i += 2 {
				timeouts[value[i]] = fmt.Sprint("@", number(t, value[i+1])-int(start.UnixMilli()))
			}
			ttls = append(ttls, number(t, ttl))
		case key == what("QUEUE"):
			beside += "queue " + state
		case key == what("TIMEOUTS"):
			beside += "timeouts " + state
		case key != what("RECORD"):
			beside += key + " is " + kind + " " + state
		}
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
	if beside += strings.Join(queue, " "); beside != "" {
		beside = " /" + beside
	}
	return strings.TrimSpace(strings.TrimPrefix(hash+leases+places, ", ") + beside)
}

// agree reports whether two states, or replies, are the same, but for the time that has
// passed meanwhile: what is to last for a second or more may have less left, and timeouts in a
// queue may be later, or earlier by what has gone of a TTL, unless there is a "!" behind them.
func agree(got, want string, passed time.Duration) bool {
	if strings.HasPrefix(want, "-") && len(want) != 2 { // of an error, want is a part
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
		least, most := ms, 0 // what may be missing, and what may be too much
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
		if err != nil || err2 != nil || wanted < 1000 && !timed || ours < wanted-least || ours > wanted+most {
			return false
		}
	}
	return true
}
