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

// distanceTable has a row for each library, hold and distance.
func (c comparison) distanceTable(b *strings.Builder) {
	columns := c.variants[0].columns
	head := []string{"library", "hold", "away", "grants of each", "turns of each", turnsMaxMin.name, "the round trip allows"}
	for _, f := range columns {
		head = append(head, f.name)
	}
	row(b, head...)
	rule(b, 1, len(head)-1)
	for _, lib := range c.libs() {
		for _, s := range c.variants {
			part := c.of(s)
			if len(part.each(lib, rate)) == 0 {
				continue
			}
			cells := []string{
				lib, s.work.String(), s.distance.String(),
				part.list(lib, func(r result) []int { return r.GrantsEach }), part.list(lib, func(r result) []int { return r.TurnsEach }),
				turnsMaxMin.text(part.median(lib, turnsMaxMin)), part.allows(lib),
			}
			for _, f := range columns {
				cells = append(cells, f.text(part.median(lib, f)))
			}
			row(b, cells...)
		}
	}
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

// crowdTable has a row for each library and distance of the odd process.
func (c comparison) crowdTable(b *strings.Builder) {
	columns := c.variants[0].columns
	head := []string{"library", "away", "its grants", "those of the others"}
	for _, f := range columns {
		head = append(head, f.name)
	}
	row(b, head...)
	rule(b, 1, len(head)-1)
	for _, lib := range c.libs() {
		for _, s := range c.variants {
			part := c.of(s)
			if len(part.each(lib, rate)) == 0 {
				continue
			}
			others := s.processes - 1
			cells := []string{
				lib, s.distance.String(), part.list(lib, func(r result) []int { return r.GrantsEach[others:] }),
				part.list(lib, func(r result) []int { return r.GrantsEach[:others] }),
			}
			for _, f := range columns {
				cells = append(cells, f.text(part.median(lib, f)))
			}
			row(b, cells...)
		}
	}
}
