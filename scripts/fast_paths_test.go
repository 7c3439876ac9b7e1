package scripts_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Acquire and release have fast paths, which read entries with patterns of their own. Whatever the form of an entry, the
// scripts do the same without them, when they call parse_entry.
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
		d.put(t, lock, hold+"=1 30000, >"+client+"=3.1+listens@-5 seen@-5 >15000", d.frozenAt)
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
