package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A target is a figure that Lockkeeper has to reach.
type target struct {
	scenario, lib string
	of            figure
	// bound is the least median if atLeast, else the greatest. With a base, it is for the median of the ratios within a
	// round: to a library, to the best peer, or to the same library in another scenario.
	bound   float64
	atLeast bool
	base    string
}

// Bases that are not libraries.
const (
	peer = "the best other library"
	of32 = "s19-turns-32"
	ofS6 = "s6"
)

var targets = []target{
	{"s1", ours, rate, 0.95, true, limit},
	{"s2", ours, rate, 0.9, true, limit},
	{"s2", ours, rate, 1, true, peer},
	{"s3", ours, rate, 10, true, peer},
	{"s3", ours, p99Wait, 2000, false, ""},
	{"s3", ours, maxMin, 1.1, false, ""},
	{"s3", ours, sent, 0.01, false, ""},
	{"s3", oursByMessage, rate, 20, true, peer},
	{"s3", oursByMessage, rate, 0.6, true, ours},
	{"s4", ours, rate, 5, true, peer},
	{"s4", ours, p99Wait, 25_000, false, ""},
	{"s4", ours, maxMin, 1.3, false, ""},
	{"s4", oursByMessage, rate, 20, true, peer},
	{"s4", oursByMessage, rate, 0.6, true, ours},
	{"s5", ours, commands, 60, false, ""},
	{"s5", ours, resident, 0.5, false, peer},
	{"s5", ours, running, 100, false, ""},
	{"s6", ours, p50, 1, false, limit},
	{"s6", ours, p99, 1, false, limit},
	{"s10-held-10000", ours, heapEach, 2000, false, ""},
	{"s17-fair", ours, sent, 3, false, ""},
	{"s18", ours, rate, 1, true, peer},
	{"s18", oursByMessage, rate, 0.8, true, peer},
	{"s18", ours, resident, 60, false, ""},
	{"s19-idle-100", ours, redisShare, 1, false, ""},
	{"s19-idle-200", ours, redisShare, 2, false, ""},
	{"s19-idle-500", ours, redisShare, 5, false, ""},
	{"s19-turns-500", ours, rate, 0.5, true, of32},
	{"s19-permits-100", ours, sent, 3, false, ""},
	{"s19-permits-100", ours, maxMin, 1.5, false, ""},
	{"s20-s1", ours, rate, 100, true, peer},
	{"s20-s2", ours, rate, 100, true, peer},
	{"s20-s6", ours, p50, 1.5, false, ofS6},
	{"s21-plain", ours, redisTime, 7, false, ""},
	{"s21-expirable", ours, redisTime, 20, false, ""},
	{"s21-write", ours, redisTime, 14, false, ""},
	{"s21-read", ours, redisTime, 14, false, ""},
	{"s21-fair", ours, redisTime, 14, false, ""},
}

// text is "grants/s ≥ 10 × the best other library".
func (t target) text() string {
	name, unit, _ := strings.Cut(t.of.name, ", ")
	sign, text := " ≤ ", t.of.text(t.bound)
	if t.atLeast {
		sign = " ≥ "
	}
	if t.base != "" {
		text, unit = fmt.Sprintf("%v × %s", t.bound, t.base), ""
	}
	if t.lib == oursByMessage {
		name += " by message"
	}
	return strings.TrimSuffix(name+sign+text+" "+unit, " ")
}

// measured returns the figure in each round that has it, and its base; if base is set, they are ratios.
func (t target) measured(results []result) (values []float64, base string) {
	mine := byRound(results, t.scenario, t.lib, t.of)
	scenario, lib := t.scenario, t.base
	switch {
	case len(mine) == 0, t.base == "":
		return slices.Collect(maps.Values(mine)), ""
	case t.base == peer:
		lib = compare(t.scenario, results).bestPeer()
	case t.base == ofS6, t.base == of32:
		scenario, lib = t.base, t.lib
	}
	theirs := byRound(results, scenario, lib, t.of)
	for round, value := range mine {
		if of, found := theirs[round]; found {
			values = append(values, value/of)
		}
	}
	return values, lib
}

// byRound is a figure of a library in each round of a scenario.
func byRound(results []result, scenario, lib string, f figure) map[int]float64 {
	values := map[int]float64{}
	for _, r := range results {
		if r.Scenario == scenario && r.Lib == lib {
			values[r.Round] = f.of(r)
		}
	}
	return values
}

// targetTable lists which targets were reached; it is empty if no scenario with a target was measured.
func targetTable(results []result) string {
	var b strings.Builder
	for _, t := range targets {
		values, base := t.measured(results)
		if len(values) == 0 {
			continue
		}
		if b.Len() == 0 {
			row(&b, "", "target", "median", "min–max", "reached")
			b.WriteString("|---|---|---:|---:|---|\n")
		}
		f := t.of
		if base != "" {
			f = ratio
		}
		value, suffix := median(values), ""
		if t.base == peer {
			suffix = " × " + base
		}
		reached := "no"
		if t.atLeast && value >= t.bound || !t.atLeast && value <= t.bound {
			reached = "yes"
		}
		row(&b, t.scenario, t.text(), f.text(value)+suffix, f.text(slices.Min(values))+"–"+f.text(slices.Max(values)), reached)
	}
	return b.String()
}
