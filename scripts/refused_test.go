package scripts_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// writes reports whether the script does anything.
func (r row) writes() bool { return r.told != "" || !slices.Equal(r.before, r.after) }

// releasesPastLine reports whether the script ends a hold whatever is wrong with the line: then it
// need not do the rest.
func (r row) releasesPastLine() bool {
	ends := r.script == scripts.Release && r.reply != "1" || r.script == scripts.ReadWriteRelease || strings.Contains(r.told, "rw1")
	return ends && strings.Contains(r.before[0], ">")
}

// once reports whether the script is about a synchronizer. It has no end.
func (r row) once() bool { return strings.Contains(r.script.Source, "function once") }

// runAs runs a script as somebody who lacks something, and looks for what it has left without
// an end, apart from the counter of tokens and a synchronizer.
func (r row) runAs(t *testing.T, somebody rueidis.Client, lacks string, admin *db, locks, keys, args []string) (reply string) {
	t.Helper()
	endless := func() (all []string) {
		for _, lock := range locks {
			for line := range strings.Lines(admin.do(t, "EVAL", dump, "0", lock)) {
				if words := strings.Split(line, "\t"); words[2] == "-1" && words[0] != names(lock).Replace("TOKENS") && words[0] != names(lock).Replace("RECORD") && !(r.once() && words[0] == lock) {
					all = append(all, words[0])
				}
			}
		}
		return all
	}
	before := endless()
	reply = (&db{Client: somebody, stands: admin.stands}).run(t, r.script, keys, args)
	if strings.HasPrefix(reply, "-user_script:") {
		t.Errorf("%s, %s, with %q: what Redis says is behind other words: %s", r.script.Name, r.name, lacks, reply)
	}
	for _, key := range endless() {
		if !slices.Contains(before, key) {
			t.Errorf("%s, %s, with %q: %s has no end; the reply was %s", r.script.Name, r.name, lacks, key, reply)
		}
	}
	return reply
}

var inScript = regexp.MustCompile(`\('([A-Z]+)'(?:, '([A-Z]+)')?`)

// rules are all the users that lack one thing that a script may need: a command, all rights
// to a key or the right to change it, the channels.
func (r row) rules(locks []string) (all []string) {
	for _, command := range inScript.FindAllStringSubmatch(r.script.Source, -1) {
		refused := "-" + strings.ToLower(command[1])
		if command[1] == "PUBSUB" {
			refused += "|" + strings.ToLower(command[2])
		}
		if rule := "~* &* +@all " + refused; !slices.Contains(all, rule) {
			all = append(all, rule)
		}
	}
	var keys []string
	for _, lock := range locks {
		keys = append(keys, strings.Fields(names(lock).Replace("NAME TOKENS QUEUE TIMEOUTS LINE HOLDS:* CALLS:* COUNTED"))...)
	}
	for i := range keys {
		others := "~" + strings.Join(slices.Delete(slices.Clone(keys), i, i+1), " ~")
		all = append(all, others+" &* +@all", others+" %R~"+keys[i]+" &* +@all")
	}
	return append(all, "~* resetchannels +@all")
}

// A script that is refused in the middle, whatever its user lacks, leaves nothing behind that
// does not end by itself; and one that says that it was not refused has done all of it.
func TestRefusedInTheMiddle(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}})
	admin.must(t, "ACL", "SETUSER", "somebody", "on", ">secret", "~*", "&*", "+@all")
	somebody := connect(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}, Username: "somebody", Password: "secret"})
	refused := map[*scripts.Script]int{}
	for _, r := range rows {
		if !r.writes() {
			continue
		}
		locks, keys, args := r.call(t)
		for _, rule := range r.rules(locks) {
			start := time.Now().Truncate(time.Millisecond)
			admin.stands = start
			r.put(t, admin, locks, start)
			admin.must(t, strings.Fields("ACL SETUSER somebody reset on >secret "+rule)...)
			if strings.HasPrefix(r.runAs(t, somebody, rule, admin, locks, keys, args), "-") {
				refused[r.script]++
				if r.once() {
					admin.expectState(t, r.script.Name+", "+r.name+", refused with "+rule, locks[0], start, r.before[0])
				}
			} else if r.releasesPastLine() {
				if got := admin.do(t, "HMGET", locks[0], args[0], args[0]+":write"); !strings.HasSuffix(got, "(nil)]") || r.script != scripts.ReadWriteSet && got != "[(nil) (nil)]" {
					t.Errorf("%s, %s, with %s: the owner still has %s", r.script.Name, r.name, rule, got)
				}
			} else if !several(r.script) {
				admin.expectState(t, r.script.Name+", "+r.name+", with "+rule, locks[0], start, which(0, r.after[0]))
			}
			admin.must(t, "FLUSHDB")
		}
	}
	for s := range forms {
		if refused[s] == 0 && !strings.HasSuffix(s.Name, "inspect") && s != scripts.CountWaiters {
			t.Errorf("%s was never refused", s.Name)
		}
	}
}

// Nor one that Redis refuses when it is out of memory; and who gives back is not refused.
func TestOutOfMemoryInTheMiddle(t *testing.T) {
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
			t.Errorf("%s, %s: %s", r.script.Name, r.name, reply)
		}
	}
}
