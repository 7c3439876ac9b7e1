package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// suites are the commands of go test, by the package that is mutated, which should notice:
// what is quick first. Any other package has its own tests.
var suites = map[string][]string{
	"internal/lock": {
		"./internal/lock -explore.states=3000 -world.time=200ms",
		"./internal/lock",
	},
	"scripts": {
		"./internal/protocol -run=TestModel -model.sequences=30",
		"./scripts",
		"./internal/protocol",
	},
}

// repeated is a flag that may be given several times.
type repeated []string

func (r *repeated) String() string     { return strings.Join(*r, "; ") }
func (r *repeated) Set(s string) error { *r = append(*r, s); return nil }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var tests repeated
	module := flag.String("C", ".", "the `directory` of the module to mutate")
	pkg := flag.String("pkg", "./internal/lock", "the `package` to mutate, as a path in the module")
	n := flag.Int("n", 120, "how many mutants that compile to try; 0: all there are")
	seed := flag.Uint64("seed", 1, "which mutants are chosen")
	only := flag.String("only", "", "mutate only the places whose line of -list contains this `text`, such as lock.go:97")
	list := flag.Bool("list", false, "only list the places in the order of the seed")
	file := flag.String("json", "", "write the report to this `file` as well")
	flag.Var(&tests, "test", "the `arguments` of a go test that should notice; may be given several times, the quick one first")
	flag.Parse()

	dir, err := filepath.Abs(*module)
	if err != nil {
		return err
	}
	all, err := sites(dir, *pkg)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(shuffle(all, *seed), func(s site) bool { return !strings.Contains(s.String(), *only) })
	if *list {
		for _, s := range all {
			fmt.Println(&s)
		}
		return nil
	}
	if tests == nil {
		if tests = suites[filepath.Clean(*pkg)]; tests == nil {
			tests = repeated{*pkg}
		}
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r := &runner{module: dir, work: work}
	for _, t := range tests {
		r.commands = append(r.commands, command{arguments: strings.Fields(t)})
	}
	if err := r.clean(ctx); err != nil {
		return err
	}
	is := &report{Package: *pkg, Seed: *seed, Tests: tests, Sites: len(all), Total: map[outcome]int{}}
	for _, s := range all {
		if *n > 0 && is.built() == *n {
			break
		}
		m, err := r.mutate(ctx, s)
		if errors.Is(err, context.Canceled) {
			break // the report is about what has been tried so far
		} else if err != nil {
			return err
		}
		is.add(m)
	}
	is.print(os.Stdout)
	if *file != "" {
		return is.save(*file)
	}
	return nil
}
