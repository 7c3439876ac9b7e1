package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// An outcome is what the tests made of a mutant.
type outcome string

const (
	killed   outcome = "killed"
	timedOut outcome = "timed out"
	survived outcome = "survived"
	notBuilt outcome = "not built"
)

// A result is a mutant with its outcome and the test that failed, if one is named.
type result struct {
	site
	Outcome outcome `json:"outcome"`
	By      string  `json:"by,omitempty"`
	Seconds float64 `json:"seconds"`
}

// A command is what go test is called with, and how long that takes on the code as it is.
type command struct {
	arguments []string
	clean     time.Duration
}

// limit is how long a test may take on a mutant.
func (c *command) limit() time.Duration { return 4*c.clean + 10*time.Second }

// runner runs the tests of a module on mutants of it.
type runner struct {
	module   string // absolute
	work     string // a directory for the mutated file and the overlay
	commands []command
}

// memory bounds the address space of the tests, in KiB: a mutant may never stop to append.
const memory = 6 << 20

func (r *runner) goTest(ctx context.Context, overlay string, limit time.Duration, arguments []string) (string, error) {
	all := []string{"-c", fmt.Sprintf(`ulimit -v %d && exec "$@"`, memory), "sh", "go", "test",
		"-count=1", "-vet=off", "-failfast", "-timeout=" + limit.String()}
	if overlay != "" {
		all = append(all, "-overlay="+overlay)
	}
	cmd := exec.CommandContext(ctx, "sh", append(all, arguments...)...)
	cmd.Dir = r.module
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.CombinedOutput()
	return string(output), errors.Join(err, ctx.Err())
}

// clean runs the tests on the code as it is, and takes the time.
func (r *runner) clean(ctx context.Context) error {
	for i := range r.commands {
		c := &r.commands[i]
		start := time.Now()
		if output, err := r.goTest(ctx, "", time.Hour, c.arguments); err != nil {
			return fmt.Errorf("go test %s fails without a mutation: %w\n%s", strings.Join(c.arguments, " "), err, output)
		}
		c.clean = time.Since(start)
	}
	return nil
}

// mutate runs the tests on one mutant, up to the first command that fails.
func (r *runner) mutate(ctx context.Context, s site) (result, error) {
	start := time.Now()
	original := filepath.Join(r.module, s.File)
	src, err := os.ReadFile(original)
	if err != nil {
		return result{}, err
	}
	mutant := filepath.Join(r.work, "mutant"+filepath.Ext(s.File))
	overlay := filepath.Join(r.work, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutant}})
	if err != nil {
		return result{}, err
	}
	if err := errors.Join(os.WriteFile(mutant, s.apply(src), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return result{}, err
	}
	is := result{site: s, Outcome: survived}
	for _, c := range r.commands {
		output, err := r.goTest(ctx, overlay, c.limit(), c.arguments)
		if ctx.Err() != nil {
			return result{}, ctx.Err()
		}
		if err != nil {
			is.Outcome, is.By = judge(output)
			break
		}
	}
	is.Seconds = time.Since(start).Seconds()
	return is, nil
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// judge reads the output of tests that failed.
func judge(output string) (outcome, string) {
	switch {
	case strings.Contains(output, "[build failed]"), strings.Contains(output, "[setup failed]"), strings.Contains(output, "Error compiling script"):
		return notBuilt, ""
	case strings.Contains(output, "panic: test timed out after"):
		return timedOut, ""
	}
	if name := failedTest.FindStringSubmatch(output); name != nil {
		return killed, name[1]
	}
	return killed, ""
}
