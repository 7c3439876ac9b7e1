package scripts_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// garbage returns fields and values of a wait queue that no client of ours has written; now is the time in µs.
func garbage(now string, r *rand.Rand) (fields []string) {
	digits := strings.Repeat("9", 400)
	entry := func(arrived, seen, ttl, term, seq, mode, tokens, listens string) string {
		return strings.Join([]string{arrived, seen, ttl, term, seq, mode, tokens, listens}, " ")
	}
	values := []string{
		"", " ", "text", "-5", "12.5", "1e400", "inf", "nan", "0x10", digits, "\x00", "\xff\xfe", "1 2 3", "5 ", now + " " + now, "{}", strings.Repeat("1 ", 500),
		entry(now, now, digits, "5", "1", "0", "0", "1"), entry(now, now, "20000", "5", "1", "0", digits, "1"), entry(now, now, "20000", digits, "1", "0", "0", "1"),
		entry(digits, now, "20000", "5", "1", "0", "0", "1"), entry(now, digits, "20000", "5", "1", "0", "0", "1"), entry(now, now, "20000", "5", "1", "2", "0", "1"),
		entry(now, now, "20000", "5", "1", "0", "0", "1 --"), entry(now, now, "20000", "5", "1", "0", "0", "1 1-2"), entry(now, now, "20000", "5", "1", "0", "0", "1 -7"),
		entry(now, now, "20000", "5", "1", "0", "0", "1 "+digits), entry(now, now, "20000", "5", digits, "0", "0", "1"), entry(now, now, "99999999999999", "5", "1", "0", "0", "1"),
		// Entries, but not under the names of clients.
		entry(now, now, "20000", "5", "1", "0", "0", "1"), entry(now, now, "20000", "5", "1", "0", "0", "0 0"), entry(now, now, "20000", "5", "1", "0", "0", "0 "+now),
	}
	names := []string{"open", "turns", "", "stray", "a b", "v:1", "\x00", "OPEN", "garbage", digits[:100],
		"9F1C8F0A-6B1D-4A53-9A5E-2F4B7C1D0E88", "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1", "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e8"}
	for range 1 + r.IntN(4) {
		fields = append(fields, names[r.IntN(len(names))], values[r.IntN(len(values))])
	}
	for _, name := range []string{"garbage", "garbage 2", "garbage 3"} { // more than spoilOrder adds: as many would hide each other
		fields = append(fields, name, values[r.IntN(len(values))])
	}
	return fields
}

// spoilOrder takes members from the order of a wait queue, or adds some that no client of ours has written, which it
// returns.
func (d *db) spoilOrder(t *testing.T, order string, now int64, r *rand.Rand) (strays []string) {
	t.Helper()
	if r.IntN(4) == 0 {
		d.must(t, "DEL", order)
		return nil
	}
	for range r.IntN(3) {
		members := []string{"", "-", "stray", "-stray", longOf("z"), "-" + longOf("z"), "\x00"}
		scores := []string{"inf", "-inf", "0", "5", "-5", "1e300", fmt.Sprint(now), fmt.Sprint(-now), fmt.Sprint(-now - 20_000_000), fmt.Sprint(now - 1<<53)}
		strays = append(strays, members[r.IntN(len(members))])
		d.must(t, "ZADD", order, scores[r.IntN(len(scores))], strays[len(strays)-1])
		d.must(t, "PEXPIRE", order, "20000")
	}
	return strays
}

// Fields of a wait queue that are not entries are ignored, or removed, and an order that differs from the entries is
// made anew: every row replies, leaves and publishes the same. A semaphore at least replies.
func TestWaitQueue_IgnoresGarbage(t *testing.T) {
	d := onRedis(t)
	random := rand.New(rand.NewPCG(7, 7))
	granted := strings.NewReplacer("[-4 ]", "(nil)", "[-4 ", "[1 ") // garbage may count as a process that waits
	for _, r := range rows {
		if !strings.Contains(calls[r.script], "WAITQUEUE") && !several(r.script) || slices.ContainsFunc(r.locks, func(p part) bool {
			return strings.Contains(p.before, "waitqueue '") || strings.Contains(p.before, "waitorder '")
		}) {
			continue
		}
		for range 3 {
			start := time.Now().Truncate(time.Millisecond)
			d.frozenAt = start
			locks, keys, args := r.call(t)
			r.put(t, d, locks, start)
			put, strays := map[string][]string{}, map[string][]string{}
			for i, lock := range locks {
				queue := names(lock).Replace("WAITQUEUE")
				fields := garbage(strconv.FormatInt(start.UnixMicro(), 10), random)
				for j := 0; j < len(fields); j += 2 {
					if fields[j] == "open" && strings.Contains(r.locks[i].before, " open@") ||
						fields[j] == "turns" && strings.Contains(r.locks[i].before, " turns=") {
						fields[j] = "stray"
					}
					put[queue] = append(put[queue], fields[j])
				}
				d.must(t, append([]string{"HSET", queue}, fields...)...)
				strays[lock] = d.spoilOrder(t, names(lock).Replace("WAITORDER"), start.UnixMicro(), random)
			}
			reply := d.run(t, r.script, keys, args)
			if strings.HasPrefix(r.script.Name, "semaphore") { // its wait queue only says which processes to wake
				if strings.HasPrefix(reply, "-") != strings.HasPrefix(r.reply, "-") {
					t.Errorf("%s/%s, with %q in its wait queue: %s", r.script.Name, r.name, put, reply)
				}
				continue
			}
			published := r.published
			for i, lock := range locks {
				queue := names(lock).Replace("WAITQUEUE")
				for _, field := range put[queue] { // ignored fields may stay
					if word := " " + field; (field == "open" || field == "turns") && strings.Contains(r.locks[i].after, word) {
						continue
					}
					d.must(t, "HDEL", queue, field)
				}
				for _, member := range strays[lock] {
					d.must(t, "ZREM", names(lock).Replace("WAITORDER"), member)
				}
				if d.do(t, "EXISTS", names(lock).Replace("WAITORDER")) == "0" {
					d.putOrder(t, lock) // the script has not looked at it
				}
				d.expect(
					t,
					fmt.Sprintf(
						"%s/%s, lock %d, with %q in its wait queue, and %q in its order", r.script.Name, r.name, i,
						put[queue], strays[lock],
					),
					lock, start, granted.Replace(reply), granted.Replace(r.reply), r.locks[i].after, published,
				)
				published = ""
			}
		}
	}
}

// An entry in the queue of a fair lock that is not an owner is refused, as a foreign field of the lock is. An owner
// that no client would write stops no request.
func TestFairQueue_RefusesGarbage(t *testing.T) {
	owner := "u:" + strings.Repeat("9", 400)
	d := onRedis(t)
	for i, word := range []string{"", ":", "text", "u:", "u:x", "\x00", strings.Repeat("9", 400), owner} {
		for j, score := range []string{"inf", "-inf", "1e300", "-1", "0", "none"} {
			lock := fmt.Sprint("fair garbage ", i, j)
			what := names(lock).Replace
			d.must(t, "RPUSH", what("QUEUE"), word)
			if score != "none" {
				d.must(t, "ZADD", what("TIMEOUTS"), score, word)
			}
			for range 2 {
				reply := d.run(t, scripts.SyncQueue, []string{lock}, []string{"u", "", "1", "0", "5000", what("QUEUE"), what("TIMEOUTS"), what("CHANNEL"), "u:1", "30000", "1"})
				if word != owner {
					if !strings.HasPrefix(reply, "-WRONGTYPE") {
						t.Errorf("%q with the timeout %s: reply %s, want a refusal", word, score, reply)
					}
					continue
				}
				if granted := strings.HasPrefix(reply, "[1 "); !granted && !strings.HasPrefix(reply, "[0 ") || strings.HasPrefix(reply, "[0 -") {
					t.Errorf("%q with the timeout %s: reply %s", word, score, reply)
				}
			}
		}
	}
}

// A plain lock without a token counter keeps its channel, and is not taken for a read/write lock, which has none.
func TestWaitQueue_NeedsNoTokenCounter(t *testing.T) {
	d := onRedis(t)
	lock := redistest.Name(t)
	d.put(t, lock, "waitqueue v=2.7+reserves@-3s 15s", time.Now())
	keys, args := call(scripts.Yield, lock, "")
	args[slices.Index(args, names(lock).Replace("TOKENS"))] = ""
	d.run(t, scripts.Yield, keys, args)
	if got := d.published(t, lock); got != "channel=0" {
		t.Errorf("published %q, want %q on the channel of a plain lock", got, "channel=0")
	}
}

// A place that was lost is made anew when the process confirms its entry: without it, all others would be served first.
func TestWaitQueue_MakesALostPlaceAnew(t *testing.T) {
	d := onRedis(t)
	lock := redistest.Name(t)
	order := names(lock).Replace("WAITORDER")
	d.put(t, lock, "b=1 30s, waitqueue u=1.3+listens@-3s 15s", time.Now())
	d.must(t, "ZREM", order, longOf("u"))
	keys, args := call(scripts.Acquire, lock, "entry=1.4+listens")
	d.run(t, scripts.Acquire, keys, args)
	if place := d.do(t, "ZSCORE", order, longOf("u")); place == "(nil)" {
		t.Error("the entry has no place")
	}
}

// A wait queue may have any number of entries, but with garbage among them only so many are looked through.
func TestWaitQueue_MayBeLong(t *testing.T) {
	d := connect(t, rueidis.ClientOption{InitAddress: []string{redistest.Start(t).Addr()}})
	lock := redistest.Name(t)
	d.put(t, lock, "u:1=1 30s", time.Now())
	queue, order := names(lock).Replace("WAITQUEUE"), names(lock).Replace("WAITORDER")
	d.do(t, "EVAL", `local t = redis.call('TIME')
			local now = t[1] * 1000000 + t[2]
			for i = 1, 10001 do
				local client = string.format('00000000-0000-0000-0000-%012x', i)
				redis.call('HSET', KEYS[1], client, string.format('%.0f %.0f 60000 1 1 0 0 1', now + i, now))
				redis.call('ZADD', KEYS[2], -(now + 60000000), '-' .. client, now + i, client)
			end`, "2", queue, order)
	keys, args := call(scripts.Acquire, lock, "owner=a entry=1.4+listens")
	if reply := d.run(t, scripts.Acquire, keys, args); !strings.HasSuffix(reply, "u:1]") {
		t.Errorf("an acquire replies %s", reply)
	}
	keys, args = call(scripts.Release, lock, "owner=u:1 lease=30000")
	args[slices.Index(args, "5000 1 0")] = "5000 0 0" // it does not look whether each listens
	if reply := d.run(t, scripts.Release, keys, args); reply != "0" {
		t.Errorf("a release replies %s", reply)
	}
	d.do(t, "HSET", queue, "garbage", "text")
	keys, args = call(scripts.Acquire, lock, "owner=v entry=1.4+listens")
	if reply := d.run(t, scripts.Acquire, keys, args); !strings.HasPrefix(reply, "-WRONGTYPE") {
		t.Errorf("with garbage among its fields, an acquire replies %s", reply)
	}
}

// The queue of a fair lock does not become longer than what a script reads: waiters that find it full join it later,
// and those in it leave it and get the lock.
func TestSyncQueue_IsNeverTooLong(t *testing.T) {
	d := connect(t, rueidis.ClientOption{InitAddress: []string{redistest.Start(t).Addr()}})
	lock := redistest.Name(t)
	d.put(t, lock, "v:1=1 30s", time.Now())
	queue := names(lock).Replace("QUEUE")
	d.do(t, "EVAL", `local t = redis.call('TIME')
			for i = 1, 9999 do
				local owner = string.format('00000000-0000-0000-0000-%012x:1', i)
				redis.call('RPUSH', KEYS[1], owner)
				redis.call('ZADD', KEYS[2], t[1] * 1000 + 60000000 + i, owner)
			end`, "2", queue, names(lock).Replace("TIMEOUTS"))
	sync := func(args, want, length string) {
		t.Helper()
		keys, argv := call(scripts.SyncQueue, lock, args)
		if reply := d.run(t, scripts.SyncQueue, keys, argv); !strings.HasPrefix(reply, want) {
			t.Errorf("%s: reply %s", args, reply)
		}
		if n := d.do(t, "LLEN", queue); n != length {
			t.Errorf("%s: the queue has %s entries", args, n)
		}
	}
	sync("upto=0 listed=u:1,u:2,u:3", "[0 ", "10000")
	sync("client=v releases=v:1 take=0", "[0 ", "10000")
	sync("upto=0 listed=u:1,u:2,u:3", "[0 ", "10000")
	sync("upto=1 listed=u:2,u:3", "[0 ", "10000")
	sync("upto=3", "[0 ", "9999")
}

// More owners than fit on Lua's stack at once join a queue, each once.
func TestSyncQueue_TakesThousandsOfOwners(t *testing.T) {
	d := onRedis(t)
	const many = 2001
	lock, args := redistest.Name(t), "take=0 upto=0 listed="
	for i := range many {
		args += fmt.Sprintf("u:%d,", i)
	}
	keys, argv := call(scripts.SyncQueue, lock, args)
	for range 2 {
		d.run(t, scripts.SyncQueue, keys, argv)
		for _, count := range []string{"LLEN QUEUE", "ZCARD TIMEOUTS"} {
			if n := d.do(t, strings.Fields(names(lock).Replace(count))...); n != strconv.Itoa(many) {
				t.Errorf("%s: %s, want all %d entries", count, n, many)
			}
		}
	}
}
