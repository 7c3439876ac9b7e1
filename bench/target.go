package main

import "strings"

// A target is a figure that Lockkeeper has to reach.
type target struct {
	section, text string
	// of is the median, or the median of the ratios to a library within a round.
	of      figure
	to      func(comparison) string // the library; nil for none
	bound   float64
	atLeast bool
}

var (
	toLimit = comparison.limit
	toPeer  = comparison.bestPeer
)

var targets = []target{
	{"s1", "grants/s ≥ 0.9 × raw", rate, toLimit, 0.9, true},
	{"s2", "grants/s ≥ 0.85 × raw", rate, toLimit, 0.85, true},
	{"s2", "grants/s ahead of every other library", rate, toPeer, 1, true},
	{"s3", "grants/s ≥ 10 × the best other library", rate, toPeer, 10, true},
	{"s3", "p99 wait ≤ 2 ms", p99Wait, nil, 2000, false},
	{"s3", "max/min of the goroutines ≤ 1.1", maxMin, nil, 1.1, false},
	{"s3", "commands sent for each grant ≤ 0.01", sent, nil, 0.01, false},
	{"s4", "grants/s ≥ 5 × the best other library", rate, toPeer, 5, true},
	{"s4", "p99 wait ≤ 25 ms", p99Wait, nil, 25_000, false},
	{"s4", "max/min of the processes ≤ 1.3", maxMin, nil, 1.3, false},
	{"s5", "commands/s ≤ 60", commands, nil, 60, false},
	{"s5", "memory ≤ 30 MB", resident, nil, 30, false},
	{"s5", "goroutines, with 10,000 locks, ≤ 100", running, nil, 100, false},
	{"s6", "p50 below that of raw pub/sub", p50, toLimit, 1, false},
	{"s6", "p99 below that of raw pub/sub", p99, toLimit, 1, false},
}

// targetTable lists which targets were reached; it is empty if no scenario with a target was measured.
func targetTable(results []result) string {
	var b strings.Builder
	for _, t := range targets {
		c := compare(t.section, results)
		if len(c.variants) == 0 {
			continue
		}
		if b.Len() == 0 {
			row(&b, "", "target", "median", "reached")
			b.WriteString("|---|---|---:|---|\n")
		}
		value, text := c.median(ours, t.of), ""
		if t.to == nil {
			text = t.of.text(value) + unit(t.of)
		} else {
			value = c.ratio(ours, t.to(c), t.of)
			text = ratio.text(value) + " × " + t.to(c)
		}
		reached := "no"
		if t.atLeast && value >= t.bound || !t.atLeast && value <= t.bound {
			reached = "yes"
		}
		row(&b, t.section, t.text, text, reached)
	}
	return b.String()
}

// unit is the part of a figure's name after the comma.
func unit(f figure) string {
	_, unit, found := strings.Cut(f.name, ", ")
	if !found {
		return ""
	}
	return " " + unit
}
