package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// show writes the tables of the results in a file, the targets, and the conditions, as Markdown.
func show(file string, to io.Writer) error {
	results, err := readResults(file)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return fmt.Errorf("%s is empty", file)
	}
	fmt.Fprint(to, conditions(results), "\n", targetTable(results))
	shown := map[string]bool{}
	for _, s := range scenarios {
		if c := compare(s.in(), results); len(c.variants) > 0 && !shown[s.in()] {
			shown[s.in()] = true
			fmt.Fprint(to, c.text())
		}
	}
	return nil
}

// conditions describes the machine of the results, and its load.
func conditions(results []result) string {
	var (
		machines []string
		loads    []float64
	)
	for _, r := range results {
		if !slices.Contains(machines, r.Machine) {
			machines = append(machines, r.Machine)
		}
		loads = append(loads, r.Load)
	}
	decimal := figure{decimals: 1}
	return fmt.Sprintf("%s. Load average before the measurements, the measurements' own load included: median %s, from %s to %s.\n",
		strings.Join(machines, "; "), decimal.text(median(loads)), decimal.text(slices.Min(loads)), decimal.text(slices.Max(loads)))
}
