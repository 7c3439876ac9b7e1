package scripts_test

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Acquire and release have fast paths, which read entries with patterns of their own. Whatever the form of an entry,
// the scripts do the same without them, when they call parse_entry.
func TestFastPaths_ReadEntriesAsParseEntryDoes(t *testing.T) {
	d := onRedis(t)
	for _, s := range full {
		d.must(t, "SCRIPT", "LOAD", withFixedTime(s).Source)
	}
	d.frozenAt = time.Now().Truncate(time.Millisecond)
	ago := strconv.FormatInt(d.frozenAt.Add(-5*time.Second).UnixMicro(), 10)
	entry := strings.Fields(ago + " " + ago + " 20000 3 1 0 0 1")
	const confirms = "20000 3 2 0 0 1"

	// outcome is what a script does to a lock that is held, with one entry in its wait queue. TTLs are rounded up.
	outcome := func(of, s *scripts.Script, hold, client, stored, added string) string {
		lock := redistest.Name(t)
		d.put(t, lock, hold+"=1 30s, waitqueue "+client+"=3.1+listens@-5s seen@-5s 15s", d.frozenAt)
		d.must(t, "HSET", names(lock).Replace("WAITQUEUE"), client, stored)
		keys, args := call(of, lock, "lease=30000")
		if i := len(args) - 2; of == scripts.Acquire {
			args[i] = added
		}
		all := d.run(t, s, keys, args) + "\n" + d.do(t, "EVAL", dump, "0", lock) + "\n" + d.published(t, lock)
		all = strings.ReplaceAll(regexp.MustCompile(`user_script:\d.*`).ReplaceAllString(all, "error"), lock, "NAME")
		return regexp.MustCompile(`\b\d{4,5}\b`).ReplaceAllStringFunc(all, func(ttl string) string {
			return strconv.Itoa((number(t, ttl) + 4999) / 5000 * 5000)
		})
	}
	compare := func(s *scripts.Script, hold, client, stored, added string) {
		fast, slow := outcome(s, s, hold, client, stored, added), outcome(s, full[s], hold, client, stored, added)
		if fast != slow {
			t.Errorf("%s, the entry is %q, and %q confirms it:\n%s\nwithout the fast path:\n%s", s.Name, stored, added, fast, slow)
		}
	}
	try := func(odd string) {
		compare(scripts.Release, "u:1", "v", odd, "")
		compare(scripts.Acquire, "v:2", "u", odd, confirms)
		if _, added, ok := strings.Cut(odd, ago+" "+ago+" "); ok {
			compare(scripts.Acquire, "v:2", "u", strings.Join(entry, " "), added)
		}
	}
	for _, value := range []string{"", "1", "2", "4", "40000", "x", "-", "-1", "1.5", "0x1", "1 1", " 1"} {
		for i := range entry {
			odd := slices.Clone(entry)
			odd[i] = value
			try(strings.Join(odd, " "))
		}
	}
	for _, odd := range []string{"0", "-", ago, "x", "", " "} {
		try(strings.Join(append(entry, odd), " "))
	}
	for i := range entry {
		try(strings.Join(entry[:i], " "))
	}
}

// usual are scripts that fail where their fast path leaves a case to the wait queue.
var usual = map[*scripts.Script]*scripts.Script{
	scripts.Acquire: with(scripts.Acquire, "queue_was_empty = admit(", "queue_was_empty = error("),
	scripts.Release: with(scripts.Release, "local queue = wait_queue(", "local queue = error("),
}

// What package protocol writes as an entry is read by parse_entry, and by each fast path that is for such an entry.
func TestFastPaths_ReadTheEntriesOfClients(t *testing.T) {
	d := onRedis(t)
	for of, s := range usual {
		d.must(t, "SCRIPT", "LOAD", s.Source)
		d.must(t, "SCRIPT", "LOAD", full[of].Source)
	}
	const usualTTL = 20 * time.Second
	for name, e := range map[string]lock.Entry{
		"listens":             {Term: 3, TTL: usualTTL, Listens: true},
		"does not listen":     {Term: 3, TTL: usualTTL},
		"reads, with tokens":  {Term: 3, TTL: usualTTL, Mode: machine.Shared, Tokens: 12, Listens: true},
		"longest":             {Term: math.MaxUint64, TTL: time.Duration(scripts.MaxEntryTTL) * time.Millisecond, Listens: true},
		"most tokens":         {Term: 3, TTL: usualTTL, Tokens: math.MaxUint32, Listens: true},
		"reserves":            {Term: 3, TTL: usualTTL, Reserves: true, Listens: true},
		"reserves and waited": {Term: 3, TTL: usualTTL, Reserves: true, Waited: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			key := redistest.Name(t)
			d.put(t, key, "v:2=1 60s", time.Now())
			run := func(s *scripts.Script, client string, c lock.Command) string {
				settings := protocol.WaitQueue{OpenTime: time.Second, OneServer: true}
				of := protocol.New(forms.Plain, key, &protocol.Options{Client: longOf(client), WaitQueue: settings})
				c.Count, c.Lease = 1, time.Minute
				if c.Kind == lock.Release {
					c.Count = 0
				}
				call := of.Call(&c, time.Time{})
				return d.run(t, s, call.Keys, call.Args)
			}
			try := func(s *scripts.Script, seq uint64) {
				t.Helper()
				c := lock.Command{Kind: lock.Acquire, Term: e.Term, Seq: seq, Entry: e}
				if reply := run(s, "u", c); !strings.HasPrefix(reply, "[") {
					t.Errorf("the try %d replies %s, want a refusal", seq, reply)
				}
				words := strings.Fields(d.do(t, "HGET", names(key).Replace("WAITQUEUE"), "u"))
				if len(words) < 8 || words[3] != strconv.FormatUint(e.Term, 10) || words[4] != strconv.FormatUint(seq, 10) {
					t.Errorf("the try %d leaves the entry %q", seq, words)
				}
			}
			try(full[scripts.Acquire], math.MaxUint64-1)
			if e.Reserves {
				return
			}
			try(usual[scripts.Acquire], math.MaxUint64)
			if e.Mode == machine.Exclusive && e.Tokens == 0 && e.Listens {
				run(usual[scripts.Release], "v", lock.Command{Kind: lock.Release, Term: 2})
				want := "[u:" + strconv.FormatUint(e.Term, 10) + " 1]"
				if got := d.do(t, "EVAL", "return redis.call('HGETALL', KEYS[1])", "1", key); got != want {
					t.Errorf("after the release the lock is %s, want %s", got, want)
				}
			}
		})
	}
}
