package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// publish draws the results of a file as one SVG for each section, and writes the tables
// into the page, if one is named.
func publish(file, folder, page string) error {
	if file == "" {
		return errors.New("-charts needs the JSON file as its argument")
	}
	results, err := readResults(file)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return fmt.Errorf("%s is empty", file)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	parts := map[string]string{}
	if table := targetTable(results); table != "" { // the machine of the run with the targets
		parts["targets"], parts["machine"] = table, conditions(results)
	}
	for _, s := range scenarios {
		c := compare(s.in(), results)
		if len(c.variants) == 0 || parts[s.in()] != "" {
			continue
		}
		name := filepath.Join(folder, s.in()+".svg")
		if err := os.WriteFile(name, []byte(c.chart()), 0o644); err != nil {
			return err
		}
		if page == "" {
			continue
		}
		image, err := filepath.Rel(filepath.Dir(page), name)
		if err != nil {
			return err
		}
		parts[s.in()] = fmt.Sprintf("![%s](%s)\n\n%s\n    %s\n", c.title(), filepath.ToSlash(image), c.table(), c.command())
	}
	if page == "" {
		return nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	filled, err := fill(string(text), parts)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(filled), 0o644)
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

// fill replaces the text between the markers of every part. A part without markers in the page
// is an error; parts that were not measured stay unchanged.
func fill(page string, parts map[string]string) (string, error) {
	var missing []error
	for name, text := range parts {
		begin, end := "<!-- "+name+": made by bench -charts -->\n", "<!-- end of "+name+" -->\n"
		before, rest, found := strings.Cut(page, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			missing = append(missing, fmt.Errorf("the page has no markers for %s", name))
			continue
		}
		page = before + begin + "\n" + text + "\n" + end + after
	}
	return page, errors.Join(missing...)
}
