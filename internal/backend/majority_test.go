package backend

import (
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

func servers(n int) *majority {
	m := &majority{}
	for i := range n {
		m.members = append(m.members, newMember(MemberSpec{Server: NewServer(clock(0), nil, Config{}), Form: forms.Plain, Name: strconv.Itoa(i + 1)}, options()))
	}
	return m
}

// tally counts votes, which come from one server after another.
func (m *majority) tally(votes []vote) tally {
	for i := range votes {
		votes[i].on = m.members[i]
	}
	return count(votes)
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
		{
			name: "known from three of them: the others may be free", votes: []vote{held("a", 9*ms), held("a", 7*ms), held("a", 8*ms)},
			want: lock.Refused, holder: "a", least: 7 * ms, most: 7 * ms,
		},
		{
			name: "one that is down may be free when two have run out", votes: []vote{held("a", 9*ms), held("b", 7*ms), held("c", 8*ms), held("d", -1), down},
			want: lock.Refused, least: 8 * ms, most: 8 * ms,
		},
		{name: "without an end", votes: []vote{held("a", -1), held("a", -1), held("a", -1)}, want: lock.Refused, holder: "a", least: -1, most: -1},
		{
			name: "one of them without an end", votes: []vote{done, done, held("a", -1), held("a", 50*ms), held("a", -1)},
			want: lock.Refused, holder: "a", least: 50 * ms, most: 50 * ms,
		},
		{name: "a split vote", votes: []vote{done, done, held("a", time.Hour), held("a", time.Hour), held("b", time.Hour)}, want: lock.Refused, holder: "a", most: maxSplitPause},
		{
			name: "a split vote of three", votes: []vote{done, held("a", time.Hour), held("a", time.Hour), held("b", time.Hour), held("b", time.Hour)},
			want: lock.Refused, most: maxSplitPause,
		},
		{
			name: "servers that are down may have granted it", votes: []vote{done, done, held("a", 40*ms), down, down},
			want: lock.Refused, holder: "a", least: 40 * ms, most: 40 * ms,
		},
		{name: "a majority is down", votes: []vote{done, held("a", time.Hour), down, down, down}, want: lock.Failed},
		{name: "not held", votes: []vote{done, done, down, unsure, wrong}, want: lock.Failed},
	}
	for _, test := range tests {
		m := servers(5)
		v := m.refusal(m.tally(test.votes), nil)
		if v.Outcome != test.want || test.holder != "" && v.Holder != test.holder || v.TTL < test.least || v.TTL > test.most {
			t.Errorf("%s: refused with %+v", test.name, v.Result)
		}
		if v.Outcome == lock.Failed && (!errors.Is(v.Err, errDown) || !v.Transient) {
			t.Errorf("%s: the failure is not that of the servers: %+v", test.name, v.Result)
		}
	}
	if v := servers(3).failure(count([]vote{wrong, wrong, done})); v.Transient || v.Unsure {
		t.Errorf("refused permanently by two of three: %+v", v.Result)
	}
	if v := servers(3).failure(count([]vote{unsure, wrong})); !v.Transient || !v.Unsure {
		t.Errorf("one may have been carried out: %+v", v.Result)
	}
}

// ballot returns the votes of servers in the order of their answers: "+" grants, "-" fails, and a letter is the owner
// that holds the lock there.
func ballot(words string) (votes []vote) {
	for of := range strings.FieldsSeq(words) {
		switch of {
		case "+":
			votes = append(votes, vote{Reply: outcome(lock.Done)})
		case "-":
			votes = append(votes, vote{Reply: failing(true, false)})
		default:
			votes = append(votes, held(of, time.Hour))
		}
	}
	return votes
}

// refused returns how many of the votes refuse a try, 0 if they never do, and the servers that are then busy. before
// are the votes of the try before.
func refused(votes, before []vote) (after int, r Reply, busy string) {
	m := servers(len(votes))
	last := m.tally(before).refused
	for n := 1; n <= len(votes); n++ {
		t := m.tally(votes[:n])
		if !m.isRefused(t) {
			continue
		}
		r = m.refusal(t, last)
		var names []string
		for i, on := range m.members {
			if slices.Contains(r.Busy, on.channels()[0]) {
				names = append(names, strconv.Itoa(i+1))
			}
		}
		return n, r, strings.Join(names, " ")
	}
	return 0, r, ""
}

// A waiter waits for the servers of the owner that prevents every majority, or of the owners that have done so for
// longer. If there are none, it waits for all.
func TestMajority_RefusalSaysWhatToWaitFor(t *testing.T) {
	for _, test := range []struct {
		what          string
		before, votes string // of the try before, and of this one: see ballot
		after         int    // as many votes the try is refused; 0: never
		busy          string // the servers for which the waiter waits
	}{
		{"a majority has granted it", "", "h + h + +", 0, ""},
		{"a majority holds it", "", "h h h + +", 3, "1 2 3"},
		{"with the minority of another waiter, which comes and goes", "", "h w h h +", 4, "1 3 4"},
		{"with one that is down", "", "h h w - +", 4, "1 2 4"},
		{"with what a killed process has left", "", "a a h h h", 5, "3 4 5"},
		{"known when the last has voted", "", "b a a c a", 5, "2 3 5"},
		{"each of three has another owner, as behind plain locks or a RedLock of Redisson's", "", "b a c", 3, "1 2 3"},
		{"one of several owners has two of five", "", "a a b c d", 5, "1 2 3 4 5"},
		{"each of five has another owner", "", "b a c d e", 4, "1 2 3 4"},
		{"two of them have two of five", "", "a a b b c", 5, "1 2 3 4 5"},
		{"a server that is down decides", "", "a + -", 3, "1 3"},
		{"servers that are down, and the holder of another one", "", "- a - + +", 3, "1 2 3"},
		{"a majority is down", "", "- - - a a", 3, ""},
		{"plain locks have a majority", "a b c + +", "a b c + +", 4, "1 2 3"},
		{"and others have the minority meanwhile", "a b c + +", "a b c v w", 4, "1 2 3"},
		{"one of them on a server that failed", "a b c + +", "a b - + w", 5, "1 2 3"},
		{"two of them are left", "a b c + +", "a b v v +", 5, "3 4"},
	} {
		if after, _, busy := refused(ballot(test.votes), ballot(test.before)); after != test.after || busy != test.busy {
			t.Errorf("%s: %s is refused after %d votes, and waits for %s", test.what, test.votes, after, busy)
		}
	}
}

// Whatever the votes and their order: a try is refused only when a majority is impossible. A waiter then tries again
// soon, unless it was refused like that before, or every majority that may become free later has a busy server. The
// minorities of others are not busy while an owner has a majority: waiters that wait for one another would retry
// without end.
func TestMajority_RefusalMissesNoRelease(t *testing.T) {
	for n := 3; n <= 5; n++ {
		m := servers(n)
		for words := range sequences("+-abc", n) {
			votes := ballot(words)
			all := m.tally(votes)
			for _, before := range [][]vote{nil, votes, votes[:n-1]} {
				after, r, busy := refused(votes, before)
				if (after == 0) != (len(all.done) >= m.quorum()) {
					t.Fatalf("%s: refused after %d votes", words, after)
				}
				if after == 0 {
					continue
				}
				if granted := len(m.tally(votes[:after]).done); granted+n-after >= m.quorum() {
					t.Fatalf("%s: refused after %d votes, though a majority is possible", words, after)
				}
				if r.Outcome != lock.Refused {
					continue
				}
				among := strings.Fields(busy)
				if soon := 0 <= r.TTL && r.TTL <= maxSplitPause; !soon && n-len(among) >= m.quorum() || soon && len(before) == n {
					t.Fatalf("%s: after %d votes, and %d before, a waiter waits for %s, and for %v", words, after, len(before), busy, r.TTL)
				}
				holder, most := largestHolder(all.refused)
				for _, i := range among {
					at, _ := strconv.Atoi(i)
					if v := votes[at-1]; most >= m.quorum() && before == nil && v.Outcome == lock.Refused && v.Holder != holder.Holder {
						t.Fatalf("%s: behind the holder %s, the minority of %s is busy", words, holder.Holder, v.Holder)
					}
				}
			}
		}
	}
}

// sequences returns all sequences of n words of one letter each.
func sequences(letters string, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		var each func(words string, left int) bool
		each = func(words string, left int) bool {
			if left == 0 {
				return yield(words)
			}
			for _, letter := range letters {
				if !each(words+string(letter)+" ", left-1) {
					return false
				}
			}
			return true
		}
		each("", n)
	}
}

// The servers whose votes are missing have as long as the slowest of them should need.
func TestMajority_WaitsAsLongAsServersShouldNeed(t *testing.T) {
	now := time.Unix(1000, 0)
	const timeout = 2 * time.Second
	for _, test := range []struct {
		what  string
		tooks []time.Duration // of the missing servers; 0 for a server that has never answered
		want  time.Duration
	}{
		{"near", []time.Duration{time.Millisecond}, minTimeout},
		{"far", []time.Duration{120 * time.Millisecond}, 960 * time.Millisecond},
		{"near and far", []time.Duration{120 * time.Millisecond, time.Millisecond}, 960 * time.Millisecond},
		{"too far", []time.Duration{time.Second}, timeout},
		{"never answered", []time.Duration{time.Millisecond, 0}, timeout},
	} {
		m := servers(5)
		voted := []vote{{on: m.members[4]}, {on: m.members[1]}}
		for len(m.members)-len(voted) > len(test.tooks) {
			voted = append(voted, vote{on: missing(m, voted)[0]})
		}
		left := missing(m, voted)
		for i, took := range test.tooks {
			left[i].server.health.took = took
		}
		if got := answerBy(left, now, now.Add(timeout)).Sub(now); got != test.want {
			t.Errorf("%s: %v, want %v", test.what, got, test.want)
		}
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
