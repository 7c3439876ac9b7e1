package redisio

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Which of several answers counts.
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
		"one has heard of a later one":     {answers: []answer{{"a", 3}, {"b", 4}, {"a", 3}}, want: "b"},
		"the latest of several":            {answers: []answer{{"c", 5}, {"b", 4}, {"a", 3}}, want: "c"},
		"one is behind":                    {answers: []answer{{"a", 3}, {"b", 2}, {"b", 2}}},
		"only one that is behind answers":  {answers: []answer{silent, {"b", 2}, silent}},
		"most answer, and none knows ours": {answers: []answer{silent, {"b", 2}, {"b", 2}}, want: "b"},
		"ours has become a replica":        {answers: []answer{silent, {"b", 2}, silent}, doubted: true, want: "b"},
		"as all say it, ours is in doubt":  {answers: []answer{{"a", 3}, {"b", 3}, {"a", 3}}, doubted: true},
		"nobody answers":                   {answers: []answer{silent, silent, silent}, doubted: true},
	} {
		f := &follower{master: "a", epoch: 3, doubted: c.doubted, sentinels: map[string]*sentinel{}}
		for i, a := range c.answers {
			f.sentinels[string(rune('0'+i))] = &sentinel{master: a.master, epoch: a.epoch}
		}
		if got, _ := f.next(); got != c.want {
			t.Errorf("%s: moves to %q, want %q", name, got, c.want)
		}
	}
}

// A reply that comes although its connection was cut may be that of a former master.
func TestReplyOfAFormerMaster(t *testing.T) {
	client := &spy{Client: connect(t, redistest.Shared(t).URL())}
	r, in, hash := open(t, client), newInbox(), redistest.Name(t)
	letGo := client.hold(hash)
	r.Run(counted(in, hash, 0, soon()))
	redistest.Eventually(t, "the call to be under way", func() bool { return len(client.sent()) == 1 })
	r.pool.cuts.Add(1)
	letGo()
	expect(t, "an old reply", in.await(t, 0).Err, doubtful)
	if reply := acquire(t, r, hash+"after"); reply.Err != nil {
		t.Error(reply.Err)
	}
}
