package scripts_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Owners in Redisson's format: "<client>:<thread>".
const (
	own     = "11111111-2222-3333-4444-555555555555:1"
	thread2 = "11111111-2222-3333-4444-555555555555:2"
	foreign = "99999999-2222-3333-4444-555555555555:1"
)

// The life of a plain lock as it was observed with Redisson: the same states and
// messages, and replies that tell the same.
func TestRedissonLife(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		for _, s := range scripts.All {
			db.load(t, s)
		}
		name, start := redistest.Name(t), time.Now()
		key, channel := []string{name}, channelOf(name)
		for _, step := range []struct {
			name   string
			script *scripts.Script
			keys   []string
			args   []string
			reply  string // Redisson's own beside it
			state  string
			told   bool
		}{
			{"acquire", scripts.Acquire, key, []string{own, "1", "30000"}, "(nil)" /* nil */, own + "=1 30000", false},
			{"acquire again", scripts.Acquire, key, []string{own, "2", "30000"}, "(nil)" /* nil */, own + "=2 30000", false},
			{"another thread", scripts.Acquire, key, []string{thread2, "1", "30000"}, "[30000 " + own + "]" /* 30000 */, own + "=2 30000", false},
			{"release by a non-owner", scripts.Release, key, []string{thread2, "0", "30000", channel}, "-1" /* nil */, own + "=2 30000", false},
			{"renew", scripts.Renew, key, []string{own, "40000"}, "[1]" /* 1 */, own + "=2 40000", false},
			{"release once", scripts.Release, key, []string{own, "1", "30000", channel}, "1" /* 0 */, own + "=1 30000", false},
			{"the same request again", scripts.Release, key, []string{own, "1", "30000", channel}, "1" /* 0 */, own + "=1 30000", false},
			{"release wholly", scripts.Release, key, []string{own, "0", "30000", channel}, "0" /* 1 */, "", true},
			{"renew what is gone", scripts.Renew, key, []string{own, "30000"}, "[0]" /* 0 */, "", false},
			{"force what is free", scripts.ForceRelease, key, []string{channel}, "0" /* 0 */, "", false},
			{"acquire for another", scripts.Acquire, key, []string{foreign, "1", "30000"}, "(nil)" /* nil */, foreign + "=1 30000", false},
			{"force", scripts.ForceRelease, key, []string{channel}, "1" /* 1 */, "", true},
		} {
			reply := settleReply(db.run(t, step.script, step.keys, step.args), step.reply, start)
			if reply != step.reply {
				t.Errorf("%s: reply %q, want %q", step.name, reply, step.reply)
			}
			if state := db.state(t, name, step.state, start); state != step.state {
				t.Errorf("%s: state %q, want %q", step.name, state, step.state)
			}
			if heard := db.messages(t, channelOf(name)); (len(heard) == 1 && heard[0] == "0") != step.told || len(heard) > 1 {
				t.Errorf("%s: published %q", step.name, heard)
			}
		}
		if left := db.do(t, "KEYS", "*"+name+"*"); left != "[]" {
			t.Errorf("left behind: %s", left)
		}
	})
}

// What a Java client wrote by hand here is somebody else's lock to every script.
func TestForeignHash(t *testing.T) {
	check(t, scripts.Acquire, false, []row{
		{name: "refused", before: foreign + "=1 30000", args: own + " 1 60000", reply: "[30000 " + foreign + "]", after: foreign + "=1 30000"},
		{name: "not re-entered", before: foreign + "=2 30000", args: own + " 2 60000", reply: "[30000 " + foreign + "]", after: foreign + "=2 30000"},
		{name: "another thread's", before: thread2 + "=1 30000", args: own + " 1 60000", reply: "[30000 " + thread2 + "]", after: thread2 + "=1 30000"},
	})
	check(t, scripts.Release, true, []row{
		{name: "not released", before: foreign + "=1 30000", args: own + " 0 60000", reply: "-1", after: foreign + "=1 30000"},
	})
	check(t, scripts.Yield, true, []row{
		{name: "not yielded", before: foreign + "=1 30000", args: own + " 0 60000 1", reply: "[-1 0]", after: foreign + "=1 30000"},
	})
	check(t, scripts.Renew, false, []row{
		{name: "not renewed", before: foreign + "=1 30000", args: own + " 60000", reply: "[-1]", after: foreign + "=1 30000"},
	})
	check(t, scripts.Inspect, true, []row{
		{name: "seen", before: foreign + "=3 30000", reply: "[30000 0 " + foreign + " 3]", after: foreign + "=3 30000"},
	})
	check(t, scripts.ForceRelease, true, []row{
		{name: "forced", before: foreign + "=3 30000", reply: "1", told: true, again: "0"},
	})
}

// Names with braces of their own: the message comes on the channel where Redisson
// would listen.
func TestBraces(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.Acquire)
		db.load(t, scripts.Release)
		unique := redistest.Name(t)
		for _, lock := range []struct{ name, channel string }{
			{unique, "redisson_lock__channel:{" + unique + "}"},
			{unique + "{b}c", "redisson_lock__channel:" + unique + "{b}c"},
			{unique + "{b", "redisson_lock__channel:" + unique + "{b"},
			{unique + "}b", "redisson_lock__channel:{" + unique + "}b}"},
			{"{}" + unique, "redisson_lock__channel:{}" + unique},
		} {
			db.run(t, scripts.Acquire, []string{lock.name}, []string{own, "1", "30000"})
			if reply := db.run(t, scripts.Release, []string{lock.name}, []string{own, "0", "30000", redisio.Channel(lock.name)}); reply != "0" {
				t.Errorf("%s: reply %s", lock.name, reply)
			}
			if heard := db.messages(t, lock.channel); len(heard) != 1 || heard[0] != "0" {
				t.Errorf("%s: heard %q on %s", lock.name, heard, lock.channel)
			}
		}
	})
}
