package redisio

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// next chooses one of the answers of several Sentinels.
func TestNextMaster(t *testing.T) {
	type answer struct {
		master string
		epoch  uint64
	}
	silent := answer{}
	for name, c := range map[string]struct {
		answers []answer
		doubted bool
		want    string
	}{
		"all agree":                        {answers: []answer{{"a", 3}, {"a", 3}, {"a", 3}}},
		"one names a later one":            {answers: []answer{{"a", 3}, {"b", 4}, {"a", 3}}, want: "b"},
		"the latest of several":            {answers: []answer{{"c", 5}, {"b", 4}, {"a", 3}}, want: "c"},
		"one is behind":                    {answers: []answer{{"a", 3}, {"b", 2}, {"b", 2}}},
		"only one that is behind answers":  {answers: []answer{silent, {"b", 2}, silent}},
		"most answer, and none knows ours": {answers: []answer{silent, {"b", 2}, {"b", 2}}, want: "b"},
		"ours has become a replica":        {answers: []answer{silent, {"b", 2}, silent}, doubted: true, want: "b"},
		"as all say it, ours is in doubt":  {answers: []answer{{"a", 3}, {"b", 3}, {"a", 3}}, doubted: true},
		"no Sentinel answers":              {answers: []answer{silent, silent, silent}, doubted: true},
	} {
		f := &follower{master: "a", epoch: 3, demoted: c.doubted, sentinels: map[string]*sentinel{}}
		for i, a := range c.answers {
			f.sentinels[string(rune('0'+i))] = &sentinel{master: a.master, epoch: a.epoch}
		}
		if got, _ := f.nextMaster(); got != c.want {
			t.Errorf("%s: moves to %q, want %q", name, got, c.want)
		}
	}
}

// A reply after its connection was cut may be that of a former master.
func TestReplyOfAFormerMaster(t *testing.T) {
	client := &spy{Client: connect(t, redistest.Shared(t).URL())}
	r, in, hash := open(t, client), newInbox(), redistest.Name(t)
	letGo := client.hold(hash)
	demoted := lua("return redis.error_reply('READONLY it is a replica')", number)
	r.Run(Call{Script: demoted, Keys: []string{hash}, Deadline: soon(), To: in})
	redistest.Eventually(t, "the call to be under way", func() bool { return len(client.sent()) == 1 })
	r.pool.cuts.Add(1)
	letGo()
	expect(t, "an old reply", in.await(t, 0).Err, doubtful)
	if !r.stale.last.IsZero() {
		t.Error("connections to the new master are closed because of it")
	}
	if reply := acquire(t, r, hash+"after"); reply.Err != nil {
		t.Error(reply.Err)
	}
}

// If the user may not subscribe at the Sentinels, no client is opened. If the right is removed later, the
// client follows the master by asking.
func TestSentinelWithoutTheRightToSubscribe(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Replica(t, master)
	url, all := redistest.Sentinels(t, master, 1)
	url += "&sentinel_username=watcher&sentinel_password=pw"
	for _, s := range all {
		do(t, s, strings.Fields("ACL SETUSER watcher on >pw resetchannels "+strings.TrimSuffix(SentinelRules, " &*"))...)
	}
	if client, err := Connect(url); err == nil {
		client.Close()
		t.Error("a client was opened that may not listen to the Sentinels")
	} else {
		expect(t, "connecting", Sort(err), hinted(SentinelRules))
	}
	for _, s := range all {
		do(t, s, "ACL", "SETUSER", "watcher", "allchannels")
		do(t, s, "ACL", "LOG", "RESET")
	}
	client := connect(t, url)
	refused := func(s *redistest.Server) (times int64) {
		log, _ := s.Do(t, "ACL", "LOG").ToArray()
		for _, entry := range log {
			fields, _ := entry.AsMap()
			count := fields["count"]
			n, _ := count.AsInt64()
			times += n
		}
		return times
	}
	for _, s := range all {
		do(t, s, "ACL", "SETUSER", "watcher", "resetchannels")
		redistest.Eventually(t, "a refusal", func() bool { return refused(s) > 0 })
	}
	do(t, all[0], "SENTINEL", "FAILOVER", "master")
	redistest.Eventually(t, "the client to move", func() bool {
		return client.Do(t.Context(), client.B().Arbitrary("SET", "moved", "1").Build()).Error() == nil && replica.IsMaster(t) && len(replica.Keys(t, "moved")) == 1
	})
	for _, s := range all {
		if n := refused(s); n != 1 {
			t.Errorf("%s has refused %d times", s.Addr(), n)
		}
	}
}
