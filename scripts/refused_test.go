package scripts_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// refusal is a run of a script that writes.
type refusal struct {
	script *scripts.Script
	name   string
	lock   string // before, as putRW takes it
	beside string // the counter's value, or the queue of a fair lock
	args   string // NAME is the lock's
}

const (
	fairTail  = " 300000 redisson_lock_queue:{NAME} redisson_lock_timeout:{NAME} redisson_lock__channel:{NAME}"
	rwTail    = " redisson_rwlock:{NAME} lockkeeper_writer:{NAME}"
	plainTail = " redisson_lock__channel:{NAME}"
	counter   = " redisson_lock_token:{NAME}"
)

var refusals = []refusal{
	{scripts.Acquire, "free", "", "", "u:1 1 30000"},
	{scripts.Acquire, "re-entry", "u:1=1 30000", "", "u:1 2 30000"},
	{scripts.FencedAcquire, "free", "", "", "u:1 1 30000 5" + counter},
	{scripts.FencedAcquire, "re-entry", "u:1=1 30000", "7", "u:1 2 30000 5" + counter},
	{scripts.FencedAcquire, "without tokens", "u:1=1 30000", "7", "u:1 2 30000 0" + counter},
	{scripts.QuorumAcquire, "free", "", "", "u:1 1 30000 0"},
	{scripts.QuorumAcquire, "re-entry", "u:1=1 30000", "", "u:1 2 30000 0"},
	{scripts.Release, "wholly", "u:1=1 30000", "", "u:1 0 30000" + plainTail},
	{scripts.Release, "partly", "u:1=2 30000", "", "u:1 1 30000" + plainTail},
	{scripts.Renew, "own", "u:1=1 30000", "", "u:1 30000"},
	{scripts.Yield, "kept", "u:1=2 30000", "", "u:1 0 30000 0" + plainTail},
	{scripts.Yield, "released", "u:1=2 30000", "", "u:1 0 30000 1" + plainTail},
	{scripts.ForceRelease, "held", "u:1=2 30000", "", plainTail},

	{scripts.FairQueue, "free", "", "", "u - 1 9" + fairTail + " u:1 30000 1"},
	{scripts.FairQueue, "free, others wait", "", "", "u - 1 9" + fairTail + " u:1 30000 1 u:2 30000 1"},
	{scripts.FairQueue, "a new queue", "v:1=1 30000", "", "u - 1 9" + fairTail + " u:1 30000 1"},
	{scripts.FairQueue, "a longer queue", "v:1=1 30000", "v:2@300 v:3", "u - 1 9" + fairTail + " u:1 30000 1"},
	{scripts.FairQueue, "released to the next", "u:1=1 30000", "u:2@300 v:3@600", "u u:1 1 9" + fairTail + " u:2 30000 1 u:3 30000 1"},
	{scripts.FairQueue, "the dead and those who left", "", "v:1@-5 u:2@300 v:3@600", "u - 1 9" + fairTail},
	{scripts.FairQueue, "taken before", "u:1=1 10000", "", "u - 1 9" + fairTail + " u:1 30000 1"},
	{scripts.FairForceRelease, "held", "v:1=1 30000", "v:2@-5 v:3@300", strings.TrimPrefix(fairTail, " 300000")},

	{scripts.ReadWriteSet, "free, to write", "", "", "u:1 1 0 30000 5000 {NAME} 0" + rwTail},
	{scripts.ReadWriteSet, "free, to read", "", "", "u:1 0 1 30000 0 {NAME} 0" + rwTail},
	{scripts.ReadWriteSet, "announced, to write", "!u:1 5000", "", "u:1 1 0 30000 5000 {NAME} 0" + rwTail},
	{scripts.ReadWriteSet, "joins", "mode=read v:1=1 30000, v:1#1 30000", "", "u:1 0 1 60000 0 {NAME} 0" + rwTail},
	{scripts.ReadWriteSet, "reads more", "mode=read u:1=1 30000, u:1#1 30000", "", "u:1 0 3 20000 0 {NAME} 0" + rwTail},
	{scripts.ReadWriteSet, "reads less", "mode=read u:1=2 30000, u:1#1 30000, u:1#2 30000", "", "u:1 0 1 60000 0 {NAME} 1" + rwTail},
	{scripts.ReadWriteSet, "upgrades", "mode=read u:1=1 30000, u:1#1 30000", "", "u:1 1 0 30000 5000 {NAME} 0" + rwTail},
	{scripts.ReadWriteSet, "downgrades", "mode=write u:1:write=1 30000", "", "u:1 0 1 30000 0 {NAME} 0" + rwTail},
	{scripts.ReadWriteSet, "refused", "mode=read v:1=1 30000, v:1#1 30000", "", "u:1 1 0 30000 5000 {NAME} 0" + rwTail},
	{scripts.ReadWriteRelease, "a writer", "mode=write u:1:write=1 30000, !u:1 5000", "", "u:1 {NAME}" + rwTail},
	{scripts.ReadWriteRelease, "a reader of two", "mode=read u:1=1 v:1=1 30000, u:1#1 30000, v:1#1 20000", "", "u:1 {NAME}" + rwTail},
	{scripts.ReadWriteRenew, "a lease is gone", "mode=read u:1=2 30000, u:1#1 30000", "", "u:1 30000 {NAME}"},
	{scripts.ReadWriteYield, "kept", "mode=read u:1=2 30000, u:1#1 30000, u:1#2 30000", "", "u:1 0 20000 0 {NAME}" + rwTail},
	{scripts.ReadWriteYield, "released", "mode=write u:1:write=1 30000", "", "u:1 0 20000 1 {NAME}" + rwTail},
	{scripts.ReadWriteForceRelease, "readers", "mode=read u:1=1 30000, u:1#1 30000", "", "{NAME} read redisson_rwlock:{NAME}"},

	{scripts.AcquireAll, "plain", "", "", "u:1 30000 5 plain - -"},
	{scripts.AcquireAll, "fenced", "", "", "u:1 30000 5 fenced - -"},
	{scripts.AcquireAll, "fair, behind the dead", "", "v:1@-5", "u:1 30000 5 fair - -"},
	{scripts.AcquireAll, "write", "!u:1 5000", "", "u:1 30000 5 write {NAME} lockkeeper_writer:{NAME}"},
	{scripts.AcquireAll, "read", "", "", "u:1 30000 5 read {NAME} lockkeeper_writer:{NAME}"},
	{scripts.AcquireAll, "read, among others", "mode=read v:1=1 30000, v:1#1 30000", "", "u:1 30000 5 read {NAME} lockkeeper_writer:{NAME}"},
}

var inScript = regexp.MustCompile(`\('([A-Z]+)'(?:, '([A-Z]+)')?`)

// rules are all the users that lack one thing that a script may need: a command, all rights
// to a key or the right to change it, the channels.
func (r refusal) rules(name string) (all []string) {
	for _, command := range inScript.FindAllStringSubmatch(r.script.Source, -1) {
		refused := "-" + strings.ToLower(command[1])
		if command[1] == "PUBSUB" {
			refused += "|" + strings.ToLower(command[2])
		}
		if rule := "~* &* +@all " + refused; !slices.Contains(all, rule) {
			all = append(all, rule)
		}
	}
	keys := []string{name, tokensOf(name), queueOf(name), timeoutsOf(name), writerOf(name), "{" + name + "}:*"}
	for i := range keys {
		others := "~" + strings.Join(slices.Delete(slices.Clone(keys), i, i+1), " ~")
		all = append(all, others+" &* +@all", others+" %R~"+keys[i]+" &* +@all")
	}
	return append(all, "~* resetchannels +@all")
}

func (r refusal) keys(name string) []string {
	if r.script != scripts.AcquireAll {
		return []string{name}
	}
	switch {
	case strings.HasPrefix(r.name, "fenced"):
		return []string{name, tokensOf(name), name}
	case strings.HasPrefix(r.name, "fair"):
		return []string{name, queueOf(name), timeoutsOf(name)}
	}
	return []string{name, name, name}
}

// put brings the lock into the state before, in which everything ends but the counter and
// what Redisson has queued.
func (r refusal) put(t *testing.T, db *db, name string) {
	t.Helper()
	db.putRW(t, name, r.lock)
	switch {
	case strings.Contains(r.beside, "@"):
		db.putQueue(t, name, r.beside, time.Now())
	case r.beside != "":
		db.put(t, tokensOf(name), "'"+r.beside+"'")
	}
}

// endless are the keys of a lock that do not end by themselves, but for the counter of tokens.
func (d *db) endless(t *testing.T, name string) (keys []string) {
	t.Helper()
	for _, key := range strings.Fields(strings.Trim(d.do(t, "KEYS", "*"+name+"*"), "[]")) {
		if key != tokensOf(name) && d.do(t, "PTTL", key) == "-1" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// check runs the script as somebody, and looks for what it has left.
func (r refusal) check(t *testing.T, admin *db, somebody rueidis.Client, name, lacks string) (reply string) {
	t.Helper()
	before := admin.endless(t, name)
	as := &db{somebody, admin.listener}
	reply = as.run(t, r.script, r.keys(name), words(strings.ReplaceAll(r.args, "NAME", name)))
	for _, key := range admin.endless(t, name) {
		if !slices.Contains(before, key) {
			t.Errorf("%s, %s, with %q: %s has no end; the reply was %s", r.script.Name, r.name, lacks, key, reply)
		}
	}
	return reply
}

// A script that is refused in the middle, whatever its user lacks, leaves nothing behind that
// does not end by itself.
func TestRefusedInTheMiddle(t *testing.T) {
	server := redistest.Start(t)
	admin := connect(t, server.Addr(), false)
	admin.do(t, "ACL", "SETUSER", "somebody", "reset", "on", ">secret", "~*", "&*", "+@all")
	somebody, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, Username: "somebody", Password: "secret",
		DisableCache: true, DisableRetry: true, ForceSingleClient: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(somebody.Close)
	refused := map[*scripts.Script]int{}
	for _, r := range refusals {
		admin.load(t, r.script)
		for i, rule := range r.rules("NAME") {
			name := fmt.Sprint(redistest.Name(t), i)
			r.put(t, admin, name)
			rights := strings.Fields("ACL SETUSER somebody reset on >secret " + strings.ReplaceAll(rule, "NAME", name))
			if reply := admin.do(t, rights...); reply != "OK" {
				t.Fatalf("%s: %s", rights, reply)
			}
			if strings.HasPrefix(r.check(t, admin, somebody, name, rule), "-") {
				refused[r.script]++
			}
		}
	}
	for _, r := range refusals {
		if refused[r.script] == 0 {
			t.Errorf("%s was never refused", r.script.Name)
		}
	}
}

// Nor one that Redis refuses when it is out of memory; and who gives back is not refused.
func TestOutOfMemoryInTheMiddle(t *testing.T) {
	db := connect(t, redistest.Start(t).Addr(), false)
	for i, r := range refusals {
		db.load(t, r.script)
		name := fmt.Sprint(redistest.Name(t), i)
		r.put(t, db, name)
		db.do(t, "CONFIG", "SET", "maxmemory", "1")
		reply := r.check(t, db, db.Client, name, "no memory")
		db.do(t, "CONFIG", "SET", "maxmemory", "0")
		gives := []*scripts.Script{scripts.Release, scripts.Renew, scripts.Yield, scripts.ForceRelease, scripts.FairForceRelease,
			scripts.ReadWriteRelease, scripts.ReadWriteRenew, scripts.ReadWriteYield, scripts.ReadWriteForceRelease}
		if strings.HasPrefix(reply, "-") && (slices.Contains(gives, r.script) || strings.HasSuffix(r.name, "less")) {
			t.Errorf("%s, %s: %s", r.script.Name, r.name, reply)
		}
	}
}
