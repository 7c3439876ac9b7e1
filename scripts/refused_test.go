package scripts_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// writes reports whether the script writes or publishes.
func (r row) writes() bool {
	return r.published != "" || slices.ContainsFunc(r.locks, func(p part) bool { return p.before != p.after || p.afterAgain != "" })
}

// releasesPastQueue reports whether the script ends a hold even if the wait queue is malformed: then it
// need not do the rest.
func (r row) releasesPastQueue() bool {
	ends := r.script == scripts.Release && r.reply != "1" || r.script == scripts.ReadWriteRelease || strings.Contains(r.published, "rwchannel=1")
	return ends && hasQueue.MatchString(r.locks[0].before+r.locks[0].after)
}

// hasQueue matches a state with a wait queue that is a hash.
var hasQueue = regexp.MustCompile(`waitqueue [^']`)

// once reports whether the script is about a synchronizer, whose key has no TTL.
func (r row) once() bool { return strings.Contains(r.script.Source, "function once") }

// foreign matches fields of another application.
var foreign = regexp.MustCompile(`\b(email|path)=|mode=dark|=tiger|=-3`)

// keepsForeign reports whether the script leaves fields of another application behind, without a TTL.
func (r row) keepsForeign() bool { return r.reply[0] != '-' && foreign.MatchString(r.locks[0].after) }

// runAs runs a script as a user that lacks a right, and reports keys that it has left without a TTL, apart
// from the token counter and a synchronizer; and read/write locks without an owner, which keep every client out.
func (r row) runAs(t *testing.T, limited rueidis.Client, lacks string, admin *db, locks, keys, args []string) (reply string) {
	t.Helper()
	endless := func() (all []string) {
		for _, lock := range locks {
			for line := range strings.Lines(admin.do(t, "EVAL", dump, "0", lock)) {
				if words := strings.Split(line, "\t"); words[2] == "-1" && words[0] != names(lock).Replace("TOKENS") &&
					words[0] != names(lock).Replace("RECORD") && !((r.once() || r.keepsForeign()) && words[0] == lock) {
					all = append(all, words[0])
				}
			}
		}
		return all
	}
	before := endless()
	reply = (&db{Client: limited, frozenAt: admin.frozenAt}).run(t, r.script, keys, args)
	if strings.HasPrefix(reply, "-user_script:") {
		t.Errorf("%s, %s, with %q: the error code is behind other words: %s", r.script.Name, r.name, lacks, reply)
	}
	for _, key := range endless() {
		if !slices.Contains(before, key) {
			t.Errorf("%s, %s, with %q: %s has no TTL; the reply was %s", r.script.Name, r.name, lacks, key, reply)
		}
	}
	for _, lock := range locks {
		if admin.do(t, "HKEYS", lock) == "[mode]" {
			t.Errorf("%s, %s, with %q: the lock has a mode and no owner; the reply was %s", r.script.Name, r.name, lacks, reply)
		}
	}
	return reply
}

var inScript = regexp.MustCompile(`\('([A-Z]+)'(?:, '([A-Z]+)')?`)

// rules are the ACL rules of users that lack one right that a script needs: to a command that it has sent, by its
// calls, to read one of its keys or to change it, to the channels.
func (r row) rules(locks, keysAndArgs []string, calls map[string]int64) (all []string) {
	for _, command := range inScript.FindAllStringSubmatch(r.script.Source, -1) {
		name := strings.ToLower(command[1])
		if command[1] == "PUBSUB" {
			name += "|" + strings.ToLower(command[2])
		}
		if rule := "~* &* +@all -" + name; calls[name] > 0 && !slices.Contains(all, rule) {
			all = append(all, rule)
		}
	}
	var keys []string
	for _, lock := range locks {
		keys = append(keys, strings.Fields(names(lock).Replace("NAME TOKENS QUEUE TIMEOUTS WAITQUEUE WAITORDER LEASES:* CALLS:* COUNTED"))...)
	}
	for i := range keys {
		names := func(arg string) bool { return strings.Contains(arg, strings.TrimSuffix(keys[i], ":*")) }
		if !slices.ContainsFunc(keysAndArgs, names) {
			continue
		}
		others := "~" + strings.Join(slices.Delete(slices.Clone(keys), i, i+1), " ~")
		all = append(all, others+" &* +@all", others+" %R~"+keys[i]+" &* +@all")
	}
	return append(all, "~* resetchannels +@all")
}

// withoutQueue is the state without the wait queue: an entry that was added or removed by a command that is refused
// then costs a poll at most.
func withoutQueue(state string) string {
	return strings.Trim(regexp.MustCompile("waitqueue.*").ReplaceAllString(state, ""), ", ")
}

// A script that is refused in the middle, for any missing right, leaves no key without a TTL; and a script
// that was not refused has had its whole effect.
func TestScripts_RefusedLeaveNoEndlessKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}})
	admin.must(t, "ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all")
	limited := connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}, Username: "limited", Password: "secret"})
	refused := map[*scripts.Script]int{}
	tried := map[string]bool{}
	for _, r := range rows {
		if !r.writes() {
			continue
		}
		locks, keys, args := r.call(t)
		admin.frozenAt = time.Now().Truncate(time.Millisecond)
		r.put(t, admin, locks, admin.frozenAt)
		server.ResetStats(t)
		admin.run(t, r.script, keys, args)
		calls := server.Calls(t)
		rules := r.rules(locks, slices.Concat(keys, args), calls)
		admin.must(t, "FLUSHDB")
		path := fmt.Sprint(r.script.Name, calls) // the commands and their numbers: rows that agree in them differ in values only
		if tried[path] {
			continue
		}
		tried[path] = true
		for _, rule := range rules {
			start := time.Now().Truncate(time.Millisecond)
			admin.frozenAt = start
			r.put(t, admin, locks, start)
			admin.must(t, strings.Fields("ACL SETUSER limited reset on >secret "+rule)...)
			if strings.HasPrefix(r.runAs(t, limited, rule, admin, locks, keys, args), "-") {
				refused[r.script]++
				if before := withoutQueue(r.locks[0].before); r.once() {
					if got := withoutQueue(admin.state(t, locks[0], start, false)); !agree(got, before, time.Since(start)) {
						t.Errorf("%s, %s, refused with %s: %q, want %q", r.script.Name, r.name, rule, got, before)
					}
				}
			} else if r.releasesPastQueue() || r.keepsForeign() {
				if got := admin.do(t, "HMGET", locks[0], args[0], args[0]+":write"); !strings.HasSuffix(got, "(nil)]") ||
					r.script != scripts.ReadWriteSet && got != "[(nil) (nil)]" {
					t.Errorf("%s, %s, with %s: the owner still has %s", r.script.Name, r.name, rule, got)
				}
			} else if !several(r.script) {
				admin.expectState(t, r.script.Name+", "+r.name+", with "+rule, locks[0], start, r.locks[0].after)
			}
			admin.must(t, "FLUSHDB")
		}
	}
	for s := range calls {
		if refused[s] == 0 && !strings.HasSuffix(s.Name, "inspect") && s != scripts.CountWaiters {
			t.Errorf("%s was never refused", s.Name)
		}
	}
}

// A script that Redis refuses because it is out of memory leaves no key without a TTL either; scripts that
// give back are not refused.
func TestScripts_OutOfMemoryLeaveNoEndlessKey(t *testing.T) {
	t.Parallel()
	d := connect(t, rueidis.ClientOption{InitAddress: []string{redistest.Start(t).Addr()}})
	for _, r := range rows {
		if !r.writes() {
			continue
		}
		locks, keys, args := r.call(t)
		r.put(t, d, locks, time.Now())
		d.must(t, "CONFIG", "SET", "maxmemory", "1")
		reply := r.runAs(t, d.Client, "no memory", d, locks, keys, args)
		d.must(t, "CONFIG", "SET", "maxmemory", "0")
		givesBack := r.script == scripts.ReadWriteSet && args[5] == "1" || regexp.MustCompile("release|renew|yield|count_down").MatchString(r.script.Name)
		if givesBack && strings.HasPrefix(reply, "-") && len(reply) > len("-1") {
			t.Errorf("%s, %s: a script that frees memory replied %s", r.script.Name, r.name, reply)
		}
	}
}
