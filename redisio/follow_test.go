package redisio

import (
	"testing"
)

// next chooses one of the answers of several Sentinels.
func TestNextMaster_IsTheLatestAnswer(t *testing.T) {
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
