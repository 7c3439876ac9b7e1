package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// measured is the result of the reports of three processes after 2 s of a scenario of s14-plain.
func measured(t *testing.T, name string, roundTrip time.Duration, turns ...int) result {
	t.Helper()
	chosen, err := choose(name)
	if err != nil {
		t.Fatal(err)
	}
	var reports []report
	for i, n := range turns {
		r := report{Seconds: 2, Grants: []int{n, n}, Turns: n, Changes: n, Longest: 50 * time.Millisecond, Without: time.Duration(i) * 10 * time.Millisecond}
		if i == len(turns)-1 {
			r.RoundTrip = roundTrip
		}
		reports = append(reports, r)
	}
	reports[0].Redis = usage{Sent: 600, All: 1500}
	r, err := sum(task{Lib: ours}, chosen[0], 1, reports)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDistance(t *testing.T) {
	far := measured(t, "s14-plain-20ms-1ms", 2*time.Millisecond, 40, 40, 20)
	if want := 4 * 22_000.0; far.Bound != want {
		t.Errorf("the bound is %v, and should be %v: that of four turns, with a round trip each", far.Bound, want)
	}
	if far.Longest != 50_000 || far.Without != 20_000 {
		t.Errorf("the longest waits are %v and %v", far.Longest, far.Without)
	}
	if far.SentPerTurn != 6 || far.AllPerTurn != 15 {
		t.Errorf("%v and %v commands for a hand-over", far.SentPerTurn, far.AllPerTurn)
	}
	if turns, all := far.allowed(); turns != 40 || !all {
		t.Errorf("the far process may have %v turns, %v", turns, all)
	}
	if got := farTurns.of(far); got != 50 {
		t.Errorf("it had %v %% of them", got)
	}
	if got := turnsMaxMin.of(measured(t, "s14-plain-20ms-1ms", 2*time.Millisecond, 119, 119, 0)); got != 119 {
		t.Errorf("most/least is %v, though one process had no turn", got)
	}
	// Turns of 5 ms, the hand-off limit, with 45 ms between them.
	further := measured(t, "s14-plain-0ms-20ms", 45*time.Millisecond, 200, 100, 20)
	if turns, all := further.allowed(); math.Abs(turns-40) > 1e-9 || all {
		t.Errorf("the far process may have %v turns, %v: more than there is time for", turns, all)
	}
}

func TestDistanceTables(t *testing.T) {
	results := []result{
		measured(t, "s14-plain-20ms-1ms", 2*time.Millisecond, 40, 40, 20),
		measured(t, "s14-plain-0ms-20ms", 45*time.Millisecond, 200, 100, 20),
		{Scenario: "s15-writer-5ms", Lib: ours, GrantsEach: []int{3, 4, 5, 6, 7, 8, 9, 10, 0}, Longest: 13_600_000, Bound: 600_000},
	}
	table := compare("s14-plain", results).table()
	for _, want := range []string{
		"| lockkeeper | 0s | 20ms | 400 : 200 : 40 | 200 : 100 : 20 | 10.00 | 40 turns | 50 |",
		"| lockkeeper | 20ms | 1ms | 80 : 80 : 40 | 40 : 40 : 20 | 2.00 | equal turns | 50 | 20.0 | 88.0 | 50.0 | 2.0 |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
	crowd := compare("s15-writer", results).table()
	if want := "| lockkeeper | 5ms | 0 | 3 : 4 : 5 : 6 : 7 : 8 : 9 : 10 | 13,600.0 | – | – | 600.0 |"; !strings.Contains(crowd, want) {
		t.Errorf("%q is not in\n%s", want, crowd)
	}
}

// A process waits while one of its users waits and none holds the lock.
func TestWaitStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		clock, shared := &phases{}, &shared{}
		one, other := newWaitStats(&task{shared: shared}, scenario{goroutines: 2, work: 35 * ms}, clock), newWaitStats(&task{shared: shared, Index: 1}, scenario{goroutines: 1}, clock)
		clock.begin()
		one.begin(0)
		one.begin(1)
		time.Sleep(10 * ms)
		one.enter(0) // after 10 ms
		time.Sleep(20 * ms)
		one.leave()
		one.begin(0)
		one.enter(1) // after 30 ms, but the process held the lock
		other.begin(0)
		time.Sleep(40 * ms)
		one.leave()
		other.enter(0) // after 40 ms
		time.Sleep(15 * ms)
		var first, second report
		one.report(&first) // the first user has waited for 55 ms, and the process for 15
		other.report(&second)
		if want := (report{Turns: 1, Longest: 55 * ms, Without: 15 * ms}); first.Turns != want.Turns || first.Longest != want.Longest || first.Without != want.Without {
			t.Errorf("the one process has %d turns, and waited %v and %v", first.Turns, first.Longest, first.Without)
		}
		if second.Turns != 1 || second.Longest != 40*ms || second.Without != 40*ms {
			t.Errorf("the other process has %d turns, and waited %v and %v", second.Turns, second.Longest, second.Without)
		}
	})
}

// A turn ends with a grant to another process, or when it has lasted long enough.
func TestWaitStats_Turns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, shared := &phases{}, &shared{}
		one := newWaitStats(&task{Lib: ours, shared: shared}, scenario{goroutines: 1}, clock)
		other := newWaitStats(&task{Lib: ours, shared: shared, Index: 1}, scenario{goroutines: 1}, clock)
		clock.begin()
		grant := func(w *waitStats, after time.Duration) {
			w.begin(0)
			time.Sleep(after)
			w.enter(0)
			w.leave()
		}
		const ms = time.Millisecond
		grant(one, 0)
		grant(one, 5*ms) // the same turn
		grant(one, 1*ms) // another
		grant(one, 5*ms) // the same
		grant(other, 0)
		grant(one, 0)
		grant(one, 6*ms)
		var first, second report
		one.report(&first)
		other.report(&second)
		if first.Turns != 4 || first.Changes != 2 || second.Turns != 1 || second.Changes != 1 {
			t.Errorf("%d turns after %d changes, and %d after %d", first.Turns, first.Changes, second.Turns, second.Changes)
		}
	})
}

// The odd process uses another mode than the others.
func TestCrowds(t *testing.T) {
	for name, want := range map[string]string{"s15-writer-0ms": "rrrrrrrrw", "s15-reader-0ms": "wwwwwwwwr"} {
		chosen, err := choose(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for i := range chosen[0].processes {
			mode := byte('w')
			if newUser(&task{Index: i}, chosen[0], &phases{}, 0).reading {
				mode = 'r'
			}
			got = append(got, mode)
		}
		if !slices.Equal(got, []byte(want)) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestShares(t *testing.T) {
	chosen, err := choose("s17-fair")
	if err != nil {
		t.Fatal(err)
	}
	reports := []report{{Seconds: 1, Grants: []int{20, 10}, Redis: usage{Bus: 40}}, {Seconds: 1, Grants: []int{15, 15}}, {Seconds: 1, Grants: []int{20, 0}}}
	r, err := sum(task{Lib: ours}, chosen[0], 1, reports)
	if err != nil {
		t.Fatal(err)
	}
	if got := compare("s17", []result{r}).table(); !strings.Contains(got, "| fair | 1.50 |") || !strings.HasSuffix(got, "| 0.5 |\n") {
		t.Errorf("the processes had 30, 30 and 20 grants, and 40 messages were on the bus:\n%s", got)
	}
}
