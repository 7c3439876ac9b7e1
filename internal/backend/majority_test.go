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
		{"a majority holds it: until the first of them runs out", []vote{done, done, held("a", 900*ms), held("a", 500*ms), held("a", 700*ms)}, lock.Refused, "a", 500 * ms, 500 * ms},
		{"all: until three have run out", []vote{held("a", 1*ms), held("a", 2*ms), held("a", 3*ms), held("a", 4*ms), held("a", 5*ms)}, lock.Refused, "a", 3 * ms, 3 * ms},
		{"known from three of them", []vote{held("a", 7*ms), held("a", 8*ms), held("a", 9*ms)}, lock.Refused, "a", 9 * ms, 9 * ms},
		{"without an end", []vote{held("a", -1), held("a", -1), held("a", -1)}, lock.Refused, "a", -1, -1},
		{"one of them without an end", []vote{done, done, held("a", -1), held("a", 50*ms), held("a", -1)}, lock.Refused, "a", 50 * ms, 50 * ms},
		{"a split vote", []vote{done, done, held("a", time.Hour), held("a", time.Hour), held("b", time.Hour)}, lock.Refused, "a", 0, split},
		{"a split vote of three", []vote{done, held("a", time.Hour), held("a", time.Hour), held("b", time.Hour), held("b", time.Hour)}, lock.Refused, "", 0, split},
		{"servers that are down may have granted it", []vote{done, done, held("a", 40*ms), down, down}, lock.Refused, "a", 40 * ms, 40 * ms},
		{"a majority is down", []vote{done, held("a", time.Hour), down, down, down}, lock.Failed, "", 0, 0},
		{"not held", []vote{done, done, down, unsure, wrong}, lock.Failed, "", 0, 0},
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
