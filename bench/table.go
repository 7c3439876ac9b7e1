package main

import (
	"fmt"
	"math"
	"slices"
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

// A column of a table; cell is its text for a library and the ith variant.
type column struct {
	name string
	cell func(lib string, i int) string
}

// table writes the medians as a Markdown table, with a row for each library and variant, and notes below it.
func (c comparison) table() string {
	var b strings.Builder
	columns := c.columns()
	head, rule := []string{"library"}, []string{"---"}
	for _, column := range columns {
		head, rule = append(head, column.name), append(rule, "---:")
	}
	row(&b, head...)
	b.WriteString("|" + strings.Join(rule, "|") + "|\n")
	for _, lib := range c.libs() {
		for i, s := range c.variants {
			if len(c.of(s).each(lib, rate)) == 0 {
				continue
			}
			cells := []string{lib}
			for _, column := range columns {
				cells = append(cells, column.cell(lib, i))
			}
			row(&b, cells...)
		}
	}
	for _, r := range c.results {
		if r.Stuck > 0 {
			fmt.Fprintf(&b, "\n%s, round %d: %d of the goroutines still waited, for a free lock, %v after the end.\n",
				r.Lib, r.Round, r.Stuck, timeout)
		}
	}
	return b.String()
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// columns are the columns of the table after the library.
func (c comparison) columns() []column {
	s := c.variants[0]
	if s.grows() {
		return c.ofGrowth()
	}
	first := s.columns[0]
	spread := func(lib string, i int) string { return c.of(c.variants[i]).spread(lib, first) }
	columns := slices.Concat(c.figures(first), []column{{"min–max", spread}})
	if s.of != "" {
		columns = slices.Insert(columns, 0, c.variant())
	} else {
		columns = slices.Concat(columns, c.ratios(first))
	}
	return slices.Concat(columns, c.figures(s.columns[1:]...))
}

// variant is a column with the name of the variant.
func (c comparison) variant() column {
	return column{c.variants[0].of, func(_ string, i int) string { return c.variants[i].variant() }}
}

// figures are columns with medians.
func (c comparison) figures(all ...figure) (columns []column) {
	for _, f := range all {
		columns = append(columns, column{f.name, func(lib string, i int) string { return f.text(c.of(c.variants[i]).median(lib, f)) }})
	}
	return columns
}

// ratio formats a ratio.
var ratio = figure{decimals: 2}

// ratios compare a figure with the figures of the limit and of the best peer.
func (c comparison) ratios(f figure) []column {
	to := func(name, base string) column {
		return column{"× " + name, func(lib string, _ int) string { return ratio.text(c.ratio(lib, base, f)) }}
	}
	columns := []column{to(c.limit(), c.limit())}
	if peer := c.bestPeer(); peer != "" {
		columns = append(columns, to("best peer", peer))
	}
	return columns
}

// spread is the lowest and the highest round.
func (c comparison) spread(lib string, f figure) string {
	values := c.each(lib, f)
	return f.text(slices.Min(values)) + "–" + f.text(slices.Max(values))
}

// ofGrowth are the cost of one lock, and its ratio to the cost at the previous size.
func (c comparison) ofGrowth() []column {
	columns := slices.Concat([]column{c.variant()}, c.figures(resident, running))
	for _, f := range c.variants[0].columns {
		of := func(lib string, i int) float64 { return c.of(c.variants[i]).median(lib, f) }
		columns = slices.Concat(columns, c.figures(f), []column{{"×", func(lib string, i int) string {
			if i == 0 {
				return "–"
			}
			return ratio.text(of(lib, i) / of(lib, i-1))
		}}})
	}
	return columns
}
