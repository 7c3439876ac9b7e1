package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// median is NaN without values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	values = slices.Sorted(slices.Values(values))
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// flags are the command line flags of the measurement.
func (c comparison) flags() string {
	return fmt.Sprintf(" -rounds %d -seconds %s", c.rounds(), strconv.FormatFloat(c.results[0].Seconds, 'f', -1, 64))
}

// table writes the medians as a Markdown table, with notes below it.
func (c comparison) table() string {
	var b strings.Builder
	switch {
	case c.variants[0].grows():
		c.growthTable(&b)
	case c.variants[0].hasOddProcess():
		c.crowdTable(&b)
	case c.variants[0].distance > 0:
		c.distanceTable(&b)
	case c.variants[0].variant() != "":
		c.variantTable(&b)
	default:
		c.libraryTable(&b)
	}
	for _, r := range c.results {
		if r.Stuck > 0 {
			fmt.Fprintf(&b, "\n%s, round %d: %d of the goroutines still waited, for a free lock, %v after the end.\n", r.Lib, r.Round, r.Stuck, timeout)
		}
	}
	return b.String()
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func rule(b *strings.Builder, texts, numbers int) {
	b.WriteString(strings.Repeat("|---", texts) + strings.Repeat("|---:", numbers) + "|\n")
}

// ratio formats a ratio.
var ratio = figure{decimals: 2}

// libraryTable has a row for each library. A ratio is about the first column.
func (c comparison) libraryTable(b *strings.Builder) {
	columns, peer := c.variants[0].columns, c.bestPeer()
	first := columns[0]
	head := []string{"library", first.name, "min–max", "× " + c.limit()}
	if peer != "" {
		head = append(head, "× best peer")
	}
	for _, f := range columns[1:] {
		head = append(head, f.name)
	}
	row(b, head...)
	rule(b, 1, len(head)-1)
	for _, lib := range c.libs() {
		cells := []string{lib, first.text(c.median(lib, first)), c.spread(lib, first), ratio.text(c.ratio(lib, c.limit(), first))}
		if peer != "" {
			cells = append(cells, ratio.text(c.ratio(lib, peer, first)))
		}
		for _, f := range columns[1:] {
			cells = append(cells, f.text(c.median(lib, f)))
		}
		row(b, cells...)
	}
}

// variantTable has a row for each hand-off limit, or each kind.
func (c comparison) variantTable(b *strings.Builder) {
	columns, differ := c.variants[0].columns, "hand-off limit"
	if c.variants[0].shares != "" {
		differ = "kind"
	}
	head := []string{"library", differ, columns[0].name, "min–max"}
	for _, f := range columns[1:] {
		head = append(head, f.name)
	}
	row(b, head...)
	rule(b, 1, len(head)-1)
	for _, lib := range c.libs() {
		for _, s := range c.variants {
			part := c.of(s)
			cells := []string{lib, s.variant(), columns[0].text(part.median(lib, columns[0])), part.spread(lib, columns[0])}
			for _, f := range columns[1:] {
				cells = append(cells, f.text(part.median(lib, f)))
			}
			row(b, cells...)
		}
	}
}

// spread is the lowest and the highest round.
func (c comparison) spread(lib string, f figure) string {
	values := c.each(lib, f)
	return f.text(slices.Min(values)) + "–" + f.text(slices.Max(values))
}

// growthTable has a row for each library and size: the cost of one lock, and its ratio to that of
// the previous size.
func (c comparison) growthTable(b *strings.Builder) {
	columns := c.variants[0].columns
	head := []string{"library", "size", "RSS, MB", "goroutines"}
	for _, f := range columns {
		head = append(head, f.name, "×")
	}
	row(b, head...)
	rule(b, 1, len(head)-1)
	for _, lib := range c.libs() {
		for i, s := range c.variants {
			part := c.of(s)
			cells := []string{lib, s.variant(), resident.text(part.median(lib, resident)), running.text(part.median(lib, running))}
			for _, f := range columns {
				before := math.NaN()
				if i > 0 {
					before = c.of(c.variants[i-1]).median(lib, f)
				}
				cells = append(cells, f.text(part.median(lib, f)), ratio.text(part.median(lib, f)/before))
			}
			row(b, cells...)
		}
	}
}
