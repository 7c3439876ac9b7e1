// Mutants measures the tests: it breaks the code of a package at one site at a time and runs the tests that should
// notice.
//
//	go run ./tests/mutants -pkg ./internal/lock -n 120 -seed 1
//	go run ./tests/mutants -pkg ./scripts -only release.lua
//
// It mutates the Lua files of a package that has any, and otherwise its Go files without the tests. It never writes
// to the tree: go test reads the mutated file through -overlay, which covers embedded files as well. The seed chooses
// the mutants; one that does not compile is replaced by the next.
//
// A survivor is either equivalent to the original, or a rule without a test: read it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// suites are the arguments of go test by package: the tests that should notice a mutation, the quick ones first. Any
// other package has its own tests.
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	pkg := flag.String("pkg", "./internal/lock", "the `package` to mutate")
	n := flag.Int("n", 120, "how many mutants that compile to try; 0: all")
	seed := flag.Uint64("seed", 1, "which mutants are chosen")
	only := flag.String("only", "", "mutate only the sites whose description contains this `text`, such as lock.go:97")
	flag.Parse()

	tests := suites[filepath.Clean(*pkg)]
	if tests == nil {
		tests = []string{*pkg}
	}
	all, err := sites(*pkg)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(s site) bool { return !strings.Contains(s.String(), *only) })
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	limits, err := clean(ctx, tests)
	if err != nil {
		return err
	}
	total := map[outcome]int{}
	var survivors []site
	for _, s := range all {
		if *n > 0 && total[killed]+total[survived] == *n {
			break
		}
		made, output, err := mutate(ctx, s, tests, limits)
		if errors.Is(err, context.Canceled) {
			break // report what has been tried so far
		} else if err != nil {
			return err
		}
		total[made]++
		if made == survived {
			survivors = append(survivors, s)
		}
		_, failed, _ := strings.Cut(output, "--- FAIL: ")
		test, _, _ := strings.Cut(failed, "\n")
		fmt.Fprintf(os.Stderr, "%-9s  %s  %s\n", made, s, test)
	}
	fmt.Printf("%s, seed %d, %d sites: %v\n", *pkg, *seed, len(all), total)
	for _, s := range survivors {
		fmt.Println("survived:", s)
	}
	return nil
}

// An outcome is the result of the tests on a mutant. One on which they do not end is killed.
type outcome string

const (
	killed   outcome = "killed"
	survived outcome = "survived"
	notBuilt outcome = "not built"
)

// clean runs the tests on the unchanged code, and returns how long each may take on a mutant.
func clean(ctx context.Context, tests []string) (limits []time.Duration, err error) {
	for _, test := range tests {
		start := time.Now()
		if output, err := goTest(ctx, time.Hour, test); err != nil {
			return nil, fmt.Errorf("go test %s fails without a mutation: %w\n%s", test, err, output)
		}
		limits = append(limits, 4*time.Since(start)+10*time.Second)
	}
	return limits, nil
}

// mutate runs the tests on one mutant, up to the first failure, and returns its output.
func mutate(ctx context.Context, s site, tests []string, limits []time.Duration) (outcome, string, error) {
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(work)
	original, err := filepath.Abs(s.file)
	if err != nil {
		return "", "", err
	}
	src, err := os.ReadFile(original)
	if err != nil {
		return "", "", err
	}
	mutant, overlay := filepath.Join(work, "mutant"+filepath.Ext(s.file)), filepath.Join(work, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutant}})
	if err = errors.Join(err, os.WriteFile(mutant, s.apply(src), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return "", "", err
	}
	for i, test := range tests {
		output, err := goTest(ctx, limits[i], "-overlay="+overlay+" "+test)
		switch {
		case ctx.Err() != nil:
			return "", "", ctx.Err()
		case strings.Contains(output, "[build failed]"), strings.Contains(output, "Error compiling script"):
			return notBuilt, output, nil
		case err != nil:
			return killed, output, nil
		}
	}
	return survived, "", nil
}

// goTest runs go test with a bound on its memory, in KiB: a mutant may append for ever.
func goTest(ctx context.Context, limit time.Duration, arguments string) (output string, err error) {
	all := []string{"-c", `ulimit -v 6291456 && exec go test "$@"`, "sh", "-count=1", "-vet=off", "-failfast", "-timeout=" + limit.String()}
	cmd := exec.CommandContext(ctx, "sh", append(all, strings.Fields(arguments)...)...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	text, err := cmd.CombinedOutput()
	return string(text), err
}
