package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is what a run has found.
type report struct {
	Package string          `json:"package"`
	Seed    uint64          `json:"seed"`
	Tests   []string        `json:"tests"`
	Sites   int             `json:"sites"` // how many places there were to choose from
	Mutants []result        `json:"mutants"`
	Total   map[outcome]int `json:"total"`
}

// add adds a mutant, and says so.
func (r *report) add(m result) {
	r.Mutants = append(r.Mutants, m)
	r.Total[m.Outcome]++
	fmt.Fprintf(os.Stderr, "%4d  %-9s  %5.1fs  %s", len(r.Mutants), m.Outcome, m.Seconds, &m.site)
	if m.By != "" {
		fmt.Fprintf(os.Stderr, "  by %s", m.By)
	}
	fmt.Fprintln(os.Stderr)
}

// built is the number of mutants that compiled.
func (r *report) built() int { return len(r.Mutants) - r.Total[notBuilt] }

var outcomes = []outcome{killed, timedOut, survived, notBuilt}

func (r *report) print(w io.Writer) {
	byFile := map[string]map[outcome]int{}
	var files []string
	for _, m := range r.Mutants {
		if byFile[m.File] == nil {
			byFile[m.File] = map[outcome]int{}
			files = append(files, m.File)
		}
		byFile[m.File][m.Outcome]++
	}
	slices.Sort(files)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, of map[outcome]int) {
		fmt.Fprintf(table, "\t%s", name)
		for _, o := range outcomes {
			fmt.Fprintf(table, "\t%d", of[o])
		}
		fmt.Fprintln(table, "\t")
	}
	fmt.Fprintf(table, "\t%s\tkilled\ttimed out\tsurvived\tnot built\t\n", r.Package)
	for _, file := range files {
		row(file, byFile[file])
	}
	row("all", r.Total)
	table.Flush()

	if built := r.built(); built > 0 {
		caught := built - r.Total[survived]
		fmt.Fprintf(w, "\n%d of %d mutants caught: %.1f %% (seed %d, %d places, tests: %s)\n",
			caught, built, 100*float64(caught)/float64(built), r.Seed, r.Sites, strings.Join(r.Tests, "; "))
	}
	for _, m := range r.Mutants {
		if m.Outcome == survived {
			fmt.Fprintf(w, "survived: %s\n", &m.site)
		}
	}
}

func (r *report) save(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
