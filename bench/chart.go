package main

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// A bar is the median of a figure over the rounds, with its lowest and highest value.
type bar struct {
	label         string
	class         string // ours, limit or peer
	mid, low, top float64
}

// A panel is the bars of one figure.
type panel struct {
	figure figure
	unit   string // the unit that the figure refers to; empty for the whole
	bars   []bar
}

// panels are the panels of a comparison's chart.
func (c comparison) panels() (panels []panel) {
	for _, f := range c.variants[0].columns[:c.variants[0].bars] {
		p := panel{figure: f}
		if c.variants[0].grows() {
			p.unit = "for each"
		}
		for _, lib := range c.libs() {
			p.bars = append(p.bars, c.bars(lib, f)...)
		}
		panels = append(panels, p)
	}
	return panels
}

// bars omits small sizes of growth scenarios, where fixed costs outweigh the cost of each lock.
func (c comparison) bars(lib string, f figure) (bars []bar) {
	for _, s := range c.variants {
		values := c.of(s).each(lib, f)
		if len(values) == 0 || s.grows() && s.size < 100 {
			continue
		}
		label := lib
		if s.variant() != "" {
			label += ", " + s.variant()
		}
		bars = append(bars, newBar(lib, label, values))
	}
	return bars
}

func newBar(lib, label string, values []float64) bar {
	class := "limit"
	switch {
	case isPeer(lib):
		class = "peer"
	case strings.HasPrefix(lib, ours):
		class = "ours"
	}
	return bar{label, class, median(values), slices.Min(values), slices.Max(values)}
}

// The layout of a chart, in pixels.
const (
	chartWidth  = 760
	margin      = 20
	barLeft     = 180 // the labels are left of it
	barRoom     = 440 // the values are right of it
	barHeight   = 16
	rowHeight   = 26
	headHeight  = 92
	panelHeight = 40 // without its rows
)

// The colours follow the reader's light or dark mode.
const chartStyle = `
text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.figure { font-weight: 600 }
.quiet { fill: #59636e }
.back { fill: #ffffff }
.whisker { stroke: #1f2328; stroke-width: 1.5; fill: none }
.ours { fill: #0969da }
.limit { fill: #8c959f }
.peer { fill: #d4a72c }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.quiet { fill: #9198a1 }
.back { fill: #0d1117 }
.whisker { stroke: #f0f6fc }
.ours { fill: #4493f8 }
.limit { fill: #6e7681 }
.peer { fill: #bb8009 }
}
`

// chart draws the comparison as SVG. The output is deterministic.
func (c comparison) chart() string {
	panels := c.panels()
	height := headHeight
	for _, p := range panels {
		height += panelHeight + len(p.bars)*rowHeight
	}
	var b strings.Builder
	title := escape(c.title())
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title">`+"\n", chartWidth, height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<style>%s</style>\n", title, chartStyle)
	fmt.Fprintf(&b, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", chartWidth, height)
	write := func(class string, x, y float64, anchor, text string) {
		fmt.Fprintf(&b, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", class, x, y, anchor, escape(text))
	}
	write("title", margin, 30, "start", c.title())
	write("quiet", margin, 52, "start", c.caption())
	for i, key := range [][2]string{{"ours", "Lockkeeper"}, {"limit", "bare scripts"}, {"peer", "other libraries"}} {
		x := float64(margin + 150*i)
		fmt.Fprintf(&b, "<rect class=\"%s\" x=\"%.1f\" y=\"64\" width=\"12\" height=\"12\"/>\n", key[0], x)
		write("quiet", x+18, 75, "start", key[1])
	}
	y := float64(headHeight)
	for _, p := range panels {
		p.draw(&b, y, write)
		y += panelHeight + float64(len(p.bars)*rowHeight)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// caption explains the bars.
func (c comparison) caption() string {
	rounds := "one measurement"
	if n := c.rounds(); n > 1 {
		rounds = fmt.Sprintf("medians of %d rounds, with the lowest and the highest", n)
	}
	if c.variants[0].grows() {
		return rounds + "; linear if all bars of a library are alike"
	}
	return rounds
}

func (p panel) draw(b *strings.Builder, y float64, write func(class string, x, y float64, anchor, text string)) {
	better := "higher is better"
	if p.figure.lower {
		better = "lower is better"
	}
	name := p.figure.name
	if p.unit != "" {
		name += ", " + p.unit
	}
	write("figure", margin, y+20, "start", name)
	write("quiet", chartWidth-margin, y+20, "end", better)
	most := 0.0
	for _, bar := range p.bars {
		most = max(most, bar.top)
	}
	at := func(value float64) float64 {
		if most == 0 {
			return 0
		}
		return value / most * barRoom
	}
	for i, bar := range p.bars {
		top := y + 32 + float64(i*rowHeight)
		middle := top + barHeight/2
		write("label", barLeft-10, middle+4.5, "end", bar.label)
		fmt.Fprintf(b, "<rect class=\"bar %s\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n", bar.class, barLeft, top, max(at(bar.mid), 1), barHeight)
		if bar.low < bar.top {
			left, right := barLeft+at(bar.low), barLeft+at(bar.top)
			fmt.Fprintf(b, "<path class=\"whisker\" d=\"M%.1f %.1fv8M%.1f %.1fH%.1fm0 -4v8\"/>\n", left, middle-4, left, middle, right)
		}
		write("value", barLeft+at(bar.top)+8, middle+4.5, "start", p.figure.text(bar.mid))
	}
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}
