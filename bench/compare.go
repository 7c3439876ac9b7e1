package main

import (
	"fmt"
	"slices"
	"strconv"
)

// A comparison is the results of one section: one scenario, or all its variants.
type comparison struct {
	section  string
	variants []scenario // the measured ones
	results  []result
}

func compare(section string, results []result) comparison {
	c := comparison{section: section}
	for _, s := range scenarios {
		if s.in() != section {
			continue
		}
		found := false
		for _, r := range results {
			if r.Scenario == s.name {
				c.results, found = append(c.results, r), true
			}
		}
		if found {
			c.variants = append(c.variants, s)
		}
	}
	return c
}

// of is the part of a comparison for one of its variants.
func (c comparison) of(s scenario) comparison {
	part := comparison{section: c.section, variants: []scenario{s}}
	for _, r := range c.results {
		if r.Scenario == s.name {
			part.results = append(part.results, r)
		}
	}
	return part
}

// libs are the measured libraries, in the order of the candidates.
func (c comparison) libs() (libs []string) {
	for _, candidate := range candidates {
		if slices.ContainsFunc(c.results, func(r result) bool { return r.Lib == candidate.name }) {
			libs = append(libs, candidate.name)
		}
	}
	return libs
}

// each is a figure of a library in every round.
func (c comparison) each(lib string, f figure) (values []float64) {
	for _, r := range c.results {
		if r.Lib == lib {
			values = append(values, f.of(r))
		}
	}
	return values
}

func (c comparison) median(lib string, f figure) float64 { return median(c.each(lib, f)) }

// ratio is the median of the ratios within a round; NaN if there is no round with both.
func (c comparison) ratio(lib, base string, f figure) float64 {
	var ratios []float64
	for _, r := range c.results {
		for _, b := range c.results {
			if r.Lib == lib && b.Lib == base && r.Round == b.Round {
				ratios = append(ratios, f.of(r)/f.of(b))
			}
		}
	}
	return median(ratios)
}

// limit is the library that sends the fewest commands to Redis.
func (c comparison) limit() string {
	if slices.Contains(c.variants[0].libs, limit) {
		return limit
	}
	return limitQueue
}

// bestPeer is the best peer by the median of the first column; empty if none was measured.
func (c comparison) bestPeer() (best string) {
	f := c.variants[0].columns[0]
	for _, lib := range c.libs() {
		if isPeer(lib) && (best == "" || c.median(lib, f) < c.median(best, f) == f.lower) {
			best = lib
		}
	}
	return best
}

// rounds is how many rounds there were.
func (c comparison) rounds() (n int) {
	for _, r := range c.results {
		n = max(n, r.Round)
	}
	return n
}

// text is the title, the table, and the command line that repeats the measurement.
func (c comparison) text() string {
	seconds := strconv.FormatFloat(c.results[0].Seconds, 'f', -1, 64)
	return fmt.Sprintf("\n**%s: %s**\n\n%s\n    go run -C bench . -scenario %s -rounds %d -seconds %s\n",
		c.section, c.variants[0].title, c.table(), c.section, c.rounds(), seconds)
}
