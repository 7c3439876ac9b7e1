package backend

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

func servers(n int) *majority {
	m := &majority{}
	for range n {
		m.members = append(m.members, &member{})
	}
	return m
}

// held returns a refusal because of a holder, with that TTL.
func held(holder string, ttl time.Duration) vote {
	return vote{Reply: Reply{Result: lock.Result{Outcome: lock.Refused, Holder: holder, TTL: ttl}}}
}

func TestMajority_RefusalNamesTheHolder(t *testing.T) {
	const ms = time.Millisecond
	done, down, wrong := vote{Reply: outcome(lock.Done)}, vote{Reply: failing(true, false)}, vote{Reply: failing(false, false)}
	unsure := vote{Reply: failing(true, true)}
	tests := []struct {
		name   string
		votes  []vote
		want   lock.Outcome
		holder string
		least  time.Duration
		most   time.Duration
	}{
		{
			name: "a majority holds it: until the first of them runs out", votes: []vote{done, done, held("a", 900*ms), held("a", 500*ms), held("a", 700*ms)},
			want: lock.Refused, holder: "a", least: 500 * ms, most: 500 * ms,
		},
		{
			name: "all: until three have run out", votes: []vote{held("a", 1*ms), held("a", 2*ms), held("a", 3*ms), held("a", 4*ms), held("a", 5*ms)},
			want: lock.Refused, holder: "a", least: 3 * ms, most: 3 * ms,
		},
		{name: "known from three of them", votes: []vote{held("a", 7*ms), held("a", 8*ms), held("a", 9*ms)}, want: lock.Refused, holder: "a", least: 9 * ms, most: 9 * ms},
		{name: "without an end", votes: []vote{held("a", -1), held("a", -1), held("a", -1)}, want: lock.Refused, holder: "a", least: -1, most: -1},
		{
			name: "one of them without an end", votes: []vote{done, done, held("a", -1), held("a", 50*ms), held("a", -1)},
			want: lock.Refused, holder: "a", least: 50 * ms, most: 50 * ms,
		},
		{name: "a split vote", votes: []vote{done, done, held("a", time.Hour), held("a", time.Hour), held("b", time.Hour)}, want: lock.Refused, holder: "a", most: split},
		{
			name: "a split vote of three", votes: []vote{done, held("a", time.Hour), held("a", time.Hour), held("b", time.Hour), held("b", time.Hour)},
			want: lock.Refused, most: split,
		},
		{
			name: "servers that are down may have granted it", votes: []vote{done, done, held("a", 40*ms), down, down},
			want: lock.Refused, holder: "a", least: 40 * ms, most: 40 * ms,
		},
		{name: "a majority is down", votes: []vote{done, held("a", time.Hour), down, down, down}, want: lock.Failed},
		{name: "not held", votes: []vote{done, done, down, unsure, wrong}, want: lock.Failed},
	}
	for _, test := range tests {
		v := servers(5).refusal(count(test.votes))
		if v.Outcome != test.want || test.holder != "" && v.Holder != test.holder || v.TTL < test.least || v.TTL > test.most {
			t.Errorf("%s: %+v", test.name, v.Result)
		}
		if v.Outcome == lock.Failed && (!errors.Is(v.Err, errDown) || !v.Transient) {
			t.Errorf("%s: %+v", test.name, v.Result)
		}
	}
	if v := servers(3).failure(count([]vote{wrong, wrong, done})); v.Transient || v.Unsure {
		t.Errorf("refused permanently by two of three: %+v", v.Result)
	}
	if v := servers(3).failure(count([]vote{unsure, wrong})); !v.Transient || !v.Unsure {
		t.Errorf("one may have been carried out: %+v", v.Result)
	}
}

// Only servers on which the holder has the lock are waited for. The minorities of other owners come and go: waiting
// for those would cause endless retries.
func TestMajority_RefusalWaitsOnlyForTheHolder(t *testing.T) {
	at := func(server string, v vote) vote {
		v.Busy = []Channel{{Name: server}}
		return v
	}
	votes := []vote{at("1", held("b", time.Hour)), at("2", held("a", time.Hour)), at("3", held("a", time.Hour)), at("4", held("c", time.Hour))}
	if v := servers(5).refusal(count(votes)); !slices.Equal(v.Busy, []Channel{{Name: "2"}, {Name: "3"}}) {
		t.Errorf("it waits for %v", v.Busy)
	}
}

// A server that has not carried out the last re-entry yet does not decide the result of an inspection, however long
// its TTL is.
func TestMajority_AgreesOnTheHoldCount(t *testing.T) {
	m := &majority{members: make([]*member, 3)}
	view := func(count int, ttl time.Duration) inspection {
		return inspection{View: protocol.View{Locked: true, Holder: "a", Count: count, TTL: ttl}}
	}
	behind, first, second := view(1, 9*time.Second), view(2, 7*time.Second), view(2, 8*time.Second)
	if v, known, _ := m.view([]inspection{behind, first}); known {
		t.Errorf("%+v is known, though the third server decides", v)
	}
	if v, known, _ := m.view([]inspection{behind, first, second}); !known || v.Count != 2 || v.TTL != 8*time.Second {
		t.Errorf("%+v, known %v", v, known)
	}
}
