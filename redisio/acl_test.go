package redisio

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// user adds a user to the server, and gives the URL to log in by.
func user(t *testing.T, s *redistest.Server, rules ...string) (url string) {
	t.Helper()
	do(t, s, append([]string{"ACL", "SETUSER", "user", "reset", "on", ">secret"}, rules...)...)
	return "redis://user:secret@" + s.Addr()
}

// needed are the commands that the hint of NOPERM speaks of.
var needed = []string{
	"+eval", "+evalsha", "+subscribe",
	"+pttl", "+hexists", "+hrandfield", "+hset", "+pexpire", "+hdel", "+hlen", "+del", "+exists", "+publish", "+pubsub|numsub",
}

// A user that may do nothing but what the hint says can do everything.
func TestNeededRights(t *testing.T) {
	s := redistest.Start(t)
	client := connect(t, user(t, s, append(needed, "~lock", "&redisson_lock__channel:{lock}")...))
	r, e := open(t, client), newEars()
	subs := subscribe(t, client, e)
	channel := Channel("lock")
	subs.Add(channel)
	e.awaitSubscribed(t, channel, 1)
	for _, call := range []struct {
		script *scripts.Script
		args   []string
	}{
		{scripts.Acquire, []string{"a", "1", "30000"}},
		{scripts.Acquire, []string{"b", "1", "30000"}},
		{scripts.Renew, []string{"a", "30000"}},
		{scripts.Renew, []string{"b", "30000"}},
		{scripts.Inspect, []string{channel}},
		{scripts.Release, []string{"a", "1", "30000", channel}},
		{scripts.Yield, []string{"a", "1", "30000", "0", channel}},
		{scripts.Release, []string{"a", "0", "30000", channel}},
		{scripts.Renew, []string{"a", "30000"}},
		{scripts.Acquire, []string{"a", "1", "30000"}},
		{scripts.Yield, []string{"a", "1", "30000", "1", channel}},
		{scripts.Acquire, []string{"a", "1", "30000"}},
		{scripts.ForceRelease, []string{channel}},
	} {
		if reply := run(t, r, call.script, []string{"lock"}, call.args...); reply.Err != nil {
			t.Errorf("%s: %v", call.script.Name, reply.Err)
		}
	}
	e.awaitHeard(t, channel, 3)
	subs.Remove(channel)
	awaitSubscribers(t, s, channel, 0)
	subs.Add(channel)
	e.awaitSubscribed(t, channel, 2)
	s.KillClients(t, "pubsub")
	e.awaitSubscribed(t, channel, 3)
}

// What is missing is told, whether the command, the key or the channel.
func TestMissingRights(t *testing.T) {
	s := redistest.Start(t)
	for name, test := range map[string]struct {
		rules []string
		hint  string
	}{
		"no scripts":            {[]string{"-evalsha", "~*", "&*"}, "+evalsha"},
		"a command in a script": {[]string{"-hset", "~*", "&*"}, "lacks a command"},
		"the key":               {[]string{"~other*", "&*"}, "access to the locks' keys"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := append([]string{"+@all"}, test.rules...)
			refused(t, s, connect(t, user(t, s, rules...)), hinted(test.hint))
		})
	}
	t.Run("the channel", func(t *testing.T) {
		r := open(t, connect(t, user(t, s, "+@all", "~*", "resetchannels")))
		acquire(t, r, "k")
		expect(t, "release", release(t, r, "k").Err, hinted("channel"))
	})
}
