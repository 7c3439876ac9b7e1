package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

var (
	farTurns = figure{name: "turns of the far process, % of what it may have", of: func(r result) float64 {
		turns, _ := r.allowed()
		return 100 * float64(r.TurnsEach[len(r.TurnsEach)-1]) / max(turns, 1)
	}}
	turnsMaxMin = figure{name: "most/least turns", of: func(r result) float64 {
		return float64(slices.Max(r.TurnsEach)) / float64(max(slices.Min(r.TurnsEach), 1))
	}, lower: true, decimals: 2}
	without  = figure{name: "longest wait of a process, ms", of: func(r result) float64 { return r.Without / 1e3 }, lower: true, decimals: 1}
	longest  = figure{name: "longest wait of a goroutine, ms", of: func(r result) float64 { return r.Longest / 1e3 }, lower: true, decimals: 1}
	bound    = figure{name: "bound, ms", of: func(r result) float64 { return r.Bound / 1e3 }, decimals: 1}
	tripTime = figure{name: "round trip, ms", of: func(r result) float64 { return r.RoundTrip / 1e3 }, decimals: 1}
	sentTurn = figure{name: "sent/hand-over", of: func(r result) float64 { return r.SentPerTurn }, lower: true, decimals: 1}
	allTurn  = figure{name: "all commands/hand-over", of: func(r result) float64 { return r.AllPerTurn }, lower: true, decimals: 1}

	busEach = figure{name: "bus messages/grant", of: func(r result) float64 { return r.BusPerOp }, lower: true, decimals: -2}

	shareColumns    = []figure{maxMin, turnsMaxMin, without, longest, rate, sent, busEach}
	distanceColumns = []figure{farTurns, without, bound, longest, tripTime, rate, sentTurn, allTurn}
	p50Odd          = figure{name: "p50 wait, ms", of: func(r result) float64 { return r.ofGranted(r.P50) / 1e3 }, lower: true, decimals: 1}
	p99Odd          = figure{name: "p99 wait, ms", of: func(r result) float64 { return r.ofGranted(r.P99) / 1e3 }, lower: true, decimals: 1}
	crowdColumns    = []figure{longest, p99Odd, p50Odd, bound, tripTime, rate}
)

// ofGranted is NaN if the last process was never granted the lock.
func (r result) ofGranted(value float64) float64 {
	if r.GrantsEach[len(r.GrantsEach)-1] == 0 {
		return math.NaN()
	}
	return value
}

// list writes a list of numbers of a library, each the median over the rounds.
func (c comparison) list(lib string, of func(result) []int) string {
	var rounds [][]int
	for _, r := range c.results {
		if r.Lib == lib {
			rounds = append(rounds, of(r))
		}
	}
	var texts []string
	for i := range rounds[0] {
		var values []float64
		for _, list := range rounds {
			values = append(values, float64(list[i]))
		}
		texts = append(texts, figure{}.text(median(values)))
	}
	return strings.Join(texts, " : ")
}

// ofDistances are the columns of s14 before its figures.
func (c comparison) ofDistances() []column {
	grants := func(r result) []int { return r.GrantsEach }
	turns := func(r result) []int { return r.TurnsEach }
	return slices.Concat([]column{
		{"hold", func(_ string, i int) string { return c.variants[i].work.String() }},
		{"away", func(_ string, i int) string { return c.variants[i].distance.String() }},
		{"grants of each", func(lib string, i int) string { return c.of(c.variants[i]).list(lib, grants) }},
		{"turns of each", func(lib string, i int) string { return c.of(c.variants[i]).list(lib, turns) }},
	}, c.figures(turnsMaxMin), []column{
		{"the round trip allows", func(lib string, i int) string { return c.of(c.variants[i]).allows(lib) }},
	})
}

// allows says how many turns the round trip allows the far process, in the median round.
func (c comparison) allows(lib string) string {
	var all []result
	for _, r := range c.results {
		if r.Lib == lib {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b result) int { return int(a.Possible - b.Possible) })
	turns, equal := all[len(all)/2].allowed()
	if equal {
		return "equal turns"
	}
	return fmt.Sprintf("%.0f turns", turns)
}

// ofCrowds are the columns of s15 before its figures.
func (c comparison) ofCrowds() []column {
	others := c.variants[0].processes - 1
	return []column{
		{"away", func(_ string, i int) string { return c.variants[i].distance.String() }},
		{"its grants", func(lib string, i int) string {
			return c.of(c.variants[i]).list(lib, func(r result) []int { return r.GrantsEach[others:] })
		}},
		{"those of the others", func(lib string, i int) string {
			return c.of(c.variants[i]).list(lib, func(r result) []int { return r.GrantsEach[:others] })
		}},
	}
}
