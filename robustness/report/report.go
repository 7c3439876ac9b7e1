// Package report prints the results of a run, and saves them as text and JSON.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/judge"
)

// Report is the result of a run.
type Report struct {
	Seed    uint64        `json:"seed"`
	Clients int           `json:"clients"`
	Took    time.Duration `json:"took"`
	Rounds  int           `json:"rounds"`

	Operations     int                      `json:"operations"`
	Unknown        int                      `json:"unknown_outcomes"`
	Faults         map[string]int           `json:"faults"`
	Grants         map[string]int           `json:"grants"`
	Refused        map[string]int           `json:"refused"`
	Losses         map[string]int           `json:"losses_notified"`
	LongestIdle    map[string]time.Duration `json:"longest_without_holder"`
	LatestLoss     time.Duration            `json:"latest_loss"`
	Waits          int                      `json:"queue_waits"`
	Overtaken      int                      `json:"max_overtaken"`
	ExcusedOverlap time.Duration            `json:"excused_overlap"`
	Undecided      []string                 `json:"undecided,omitempty"`
	Violations     []judge.Violation        `json:"violations,omitempty"`
	Leases         map[string]judge.Leases  `json:"leases,omitempty"`
	Soak           *Soak                    `json:"soak,omitempty"`
	Controls       []Control                `json:"controls,omitempty"`
}

// New is the report of a run that is about to start.
func New(seed uint64, clients int) *Report {
	return &Report{
		Seed: seed, Clients: clients, Faults: map[string]int{}, Grants: map[string]int{}, Refused: map[string]int{},
		Losses: map[string]int{}, LongestIdle: map[string]time.Duration{}, Leases: map[string]judge.Leases{},
	}
}

const (
	anyIdle    = "in all"
	noExcuse   = "without an excuse"
	durationTo = time.Millisecond
)

// Add adds the verdict of a round.
func (r *Report) Add(v *judge.Verdict, faults []string) {
	r.Rounds++
	r.Operations += v.Operations
	r.Unknown += v.Unknown
	for _, f := range faults {
		r.Faults[f]++
	}
	for to, from := range map[*map[string]int]map[string]int{&r.Grants: v.Grants, &r.Refused: v.Refusals, &r.Losses: v.Losses} {
		for k, n := range from {
			(*to)[k] += n
		}
	}
	for library, l := range v.Leases {
		sum := r.Leases[library]
		r.Leases[library] = judge.Leases{Held: sum.Held + l.Held, Lost: sum.Lost + l.Lost, For: sum.For + l.For}
	}
	r.LongestIdle[anyIdle] = max(r.LongestIdle[anyIdle], v.LongestIdle)
	r.LongestIdle[noExcuse] = max(r.LongestIdle[noExcuse], v.LongestUnhindered)
	r.LatestLoss = max(r.LatestLoss, v.LatestLoss)
	r.Waits += v.Waits
	r.Overtaken = max(r.Overtaken, v.MaxOvertaken)
	r.ExcusedOverlap += v.ExcusedOverlap
	r.Undecided = append(r.Undecided, v.Undecided...)
	r.Violations = append(r.Violations, v.Violations...)
}

// OK reports whether every promise was kept, and every control caught.
func (r *Report) OK() bool {
	for _, c := range r.Controls {
		if len(c.Caught) == 0 {
			return false
		}
	}
	return len(r.Violations) == 0 && len(r.Undecided) == 0 && (r.Soak == nil || len(r.Soak.Grown) == 0)
}

// Soak compares the resources at the end of a run with those at its start.
type Soak struct {
	Lines []string `json:"lines"`
	// Grown are the measurements that exceed what is allowed.
	Grown []string `json:"grown,omitempty"`
}

// Compare adds one measurement; ok says whether end is within allowed.
func (s *Soak) Compare(what string, start, end, allowed any, ok bool) {
	s.Lines = append(s.Lines, fmt.Sprintf("%s\t%v\t%v\t%v", what, start, end, allowed))
	if !ok {
		s.Grown = append(s.Grown, what)
	}
}

// Control is a safety rule that was broken on purpose.
type Control struct {
	Rule   string `json:"rule"`
	Broken string `json:"broken"`
	// Caught are the checks that failed, the first of them After that many operations.
	Caught []string      `json:"caught_by"`
	After  int           `json:"after_operations"`
	Within time.Duration `json:"within"`
}

// Save writes the report to a directory, as report.txt and report.json.
func (r *Report) Save(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	var b strings.Builder
	r.Print(&b)
	return os.WriteFile(filepath.Join(dir, "report.txt"), []byte(b.String()), 0o644)
}

// Print writes the report as text.
func (r *Report) Print(to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	line("seed\t%d", r.Seed)
	if r.Rounds > 0 {
		line("clients\t%d processes, %d rounds, %v", r.Clients, r.Rounds, r.Took.Round(time.Second))
		line("operations\t%d, of which %d with an unknown outcome", r.Operations, r.Unknown)
		line("granted\t%s", list(r.Grants))
		line("refused\t%s", list(r.Refused))
		line("faults\t%s", list(r.Faults))
		line("losses notified\t%s", list(r.Losses))
		line("latest notification of a loss\t%v", r.LatestLoss.Round(durationTo))
		line("longest without a holder, with waiters\t%v; %v without an excuse",
			r.LongestIdle[anyIdle].Round(durationTo), r.LongestIdle[noExcuse].Round(durationTo))
		if r.Waits > 0 {
			line("most turns of another while a process waited\t%d, in %d waits without a fault", r.Overtaken, r.Waits)
		}
		for _, library := range slices.Sorted(maps.Keys(r.Leases)) {
			l := r.Leases[library]
			line("leases next to busy goroutines\t%s: %d of %d lost, held for %v in all", library, l.Lost, l.Held, l.For.Round(time.Second))
		}
		line("two valid holds after a broken lease (excused)\t%v", r.ExcusedOverlap.Round(durationTo))
	}
	if r.Soak != nil {
		line("\nsoak\tstart\tend\tallowed")
		for _, l := range r.Soak.Lines {
			line("%s", l)
		}
		if len(r.Soak.Grown) > 0 {
			line("GROWN\t%s", strings.Join(r.Soak.Grown, ", "))
		}
	}
	if len(r.Controls) > 0 {
		line("\nrule\thow it was broken\tcaught by\tafter operations\twithin")
		for _, c := range r.Controls {
			caught := strings.Join(c.Caught, "; ")
			if caught == "" {
				caught = "NOT CAUGHT"
			}
			line("%s\t%s\t%s\t%d\t%v", c.Rule, c.Broken, caught, c.After, c.Within.Round(100*time.Millisecond))
		}
	}
	r.printViolations(line)
	for _, u := range r.Undecided {
		line("UNDECIDED\t%s: the checker of linearizability ran out of time", u)
	}
	verdict := "every promise was kept"
	if !r.OK() {
		verdict = "NOT as promised"
	}
	line("\nverdict\t%s", verdict)
	_ = w.Flush() // to a buffer or to the terminal
}

// printViolations prints the first of each check and lock; all are in report.json.
func (r *Report) printViolations(line func(format string, args ...any)) {
	type same struct{ check, lock string }
	number := map[same]int{}
	for _, v := range r.Violations {
		number[same{v.Check, v.Lock}]++
	}
	for _, v := range r.Violations {
		of := same{v.Check, v.Lock}
		n := number[of]
		if n == 0 {
			continue
		}
		delete(number, of)
		line("\nVIOLATION\t%v", v)
		if n > 1 {
			line("\tthe first of %d", n)
		}
		if v.Picture != "" {
			line("picture\t%s", v.Picture)
		}
	}
}

func list(counts map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, counts[k]))
	}
	return strings.Join(parts, ", ")
}
