package actors

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func servers(n int) *quorum {
	q := &quorum{}
	for range n {
		q.leaves = append(q.leaves, &leaf{})
	}
	return q
}

func TestMajority(t *testing.T) {
	for n, want := range map[int]int{3: 2, 4: 3, 5: 3, 6: 4, 7: 4} {
		if got := servers(n).majority(); got != want {
			t.Errorf("of %d: %d, want %d", n, got, want)
		}
	}
}

// held is a refusal by that holder, for ttl more.
func held(holder string, ttl time.Duration) vote {
	return vote{verdict: verdict{Result: core.Result{Outcome: core.Refused, Holder: holder, TTL: ttl}}}
}

func TestRefusal(t *testing.T) {
	const ms = time.Millisecond
	done, down, wrong := vote{verdict: outcome(core.Done)}, vote{verdict: failing(true, false)}, vote{verdict: failing(false, false)}
	unsure := vote{verdict: failing(true, true)}
	tests := []struct {
		name   string
		votes  []vote
		want   core.Outcome
		holder string
		least  time.Duration
		most   time.Duration
	}{
		{"a majority holds it: until the first of them runs out", []vote{done, done, held("a", 900*ms), held("a", 500*ms), held("a", 700*ms)}, core.Refused, "a", 500 * ms, 500 * ms},
		{"all: until three have run out", []vote{held("a", 1*ms), held("a", 2*ms), held("a", 3*ms), held("a", 4*ms), held("a", 5*ms)}, core.Refused, "a", 3 * ms, 3 * ms},
		{"known from three of them", []vote{held("a", 7*ms), held("a", 8*ms), held("a", 9*ms)}, core.Refused, "a", 9 * ms, 9 * ms},
		{"without an end", []vote{held("a", -1), held("a", -1), held("a", -1)}, core.Refused, "a", -1, -1},
		{"one of them without an end", []vote{done, done, held("a", -1), held("a", 50*ms), held("a", -1)}, core.Refused, "a", 50 * ms, 50 * ms},
		{"a split vote", []vote{done, done, held("a", time.Hour), held("a", time.Hour), held("b", time.Hour)}, core.Refused, "a", 0, split},
		{"a split vote of three", []vote{done, held("a", time.Hour), held("a", time.Hour), held("b", time.Hour), held("b", time.Hour)}, core.Refused, "", 0, split},
		{"those who are down may be its holder's", []vote{done, done, held("a", 40*ms), down, down}, core.Refused, "a", 40 * ms, 40 * ms},
		{"a majority is down", []vote{done, held("a", time.Hour), down, down, down}, core.Failed, "", 0, 0},
		{"nobody holds it", []vote{done, done, down, unsure, wrong}, core.Failed, "", 0, 0},
	}
	for _, test := range tests {
		v := servers(5).refusal(count(test.votes))
		if v.Outcome != test.want || test.holder != "" && v.Holder != test.holder || v.TTL < test.least || v.TTL > test.most {
			t.Errorf("%s: %+v", test.name, v.Result)
		}
		if v.Outcome == core.Failed && (!errors.Is(v.Err, errDown) || !v.Transient) {
			t.Errorf("%s: %+v", test.name, v.Result)
		}
	}
	if v := servers(3).failure(count([]vote{wrong, wrong, done})); v.Transient || v.Unsure {
		t.Errorf("refused for good by two of three: %+v", v.Result)
	}
	if v := servers(3).failure(count([]vote{unsure, wrong})); !v.Transient || !v.Unsure {
		t.Errorf("one may have been carried out: %+v", v.Result)
	}
}

// Only those servers are waited for that the holder has. The others' minorities come and
// go, and whoever minds them has everybody try again for ever.
func TestRefusalMindsTheHolder(t *testing.T) {
	at := func(server string, v vote) vote {
		v.busy = []ear{{channel: server}}
		return v
	}
	votes := []vote{at("1", held("b", time.Hour)), at("2", held("a", time.Hour)), at("3", held("a", time.Hour)), at("4", held("c", time.Hour))}
	if v := servers(5).refusal(count(votes)); !slices.Equal(v.busy, []ear{{channel: "2"}, {channel: "3"}}) {
		t.Errorf("it waits for %v", v.busy)
	}
}

// However many answers come at once: enough is said once, and the last is known as such.
func TestGather(t *testing.T) {
	const n = 64
	for enough := 1; enough <= n; enough *= 2 {
		calls, said, lasts := 0, 0, 0
		g := &gather[int]{n: n, judge: func(answers []int, last bool) (func(), bool) {
			if calls++; len(answers) != calls {
				t.Errorf("call %d has %d answers", calls, len(answers))
			}
			if last {
				lasts++
			}
			if len(answers) < enough {
				return nil, false
			}
			return func() { said++ }, true
		}}
		var all sync.WaitGroup
		var late atomic.Int64
		for i := range n {
			all.Go(func() {
				if g.add(i) {
					late.Add(1)
				}
			})
		}
		all.Wait()
		if late := int(late.Load()); late != n-enough {
			t.Errorf("enough with %d of %d: %d are late", enough, n, late)
		}
		want := 0
		if enough == n {
			want = 1
		}
		if said != 1 || calls != enough || lasts != want {
			t.Errorf("enough with %d: said %d times in %d calls, %d of them the last", enough, said, calls, lasts)
		}
	}
}
