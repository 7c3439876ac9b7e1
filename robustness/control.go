package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/controls"
	"github.com/lockkeeper-go/lockkeeper/robustness/faults"
	"github.com/lockkeeper-go/lockkeeper/robustness/judge"
	"github.com/lockkeeper-go/lockkeeper/robustness/report"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// controlRound is the length of a round with a broken rule, and controlLimit the time within
// which a check must fail.
const (
	controlRound = 10 * time.Second
	controlLimit = 90 * time.Second
)

// control breaks a rule and reports which checks failed. With GreenWithoutEdits, the same run
// without the edits must pass.
func control(c controls.Control, dir string, clients int, seed uint64) (report.Control, error) {
	result := report.Control{Rule: c.Rule, Broken: c.Broken}
	dir = filepath.Join(dir, strings.ReplaceAll(c.Name, " ", "-"))
	if c.GreenWithoutEdits {
		v, _, err := runControl(c, nil, filepath.Join(dir, "whole"), clients, seed, 2*controlRound)
		if err != nil {
			return result, err
		}
		if v != nil {
			return result, fmt.Errorf("control %q: a check fails before the rule is broken: %v", c.Name, v[0])
		}
	}
	began := time.Now()
	v, operations, err := runControl(c, c.Edits, dir, clients, seed, controlLimit)
	for _, violation := range v {
		if !slices.Contains(result.Caught, violation.Check) {
			result.Caught = append(result.Caught, violation.Check)
		}
	}
	result.After, result.Within = operations, time.Since(began)
	return result, err
}

// runControl runs edited clients until a check fails, and returns the violations and the number
// of operations before them.
func runControl(c controls.Control, edits []controls.Edit, dir string, clients int, seed uint64, limit time.Duration) (
	[]judge.Violation, int, error) {
	binary, err := controls.Build(dir, edits)
	if err != nil {
		return nil, 0, fmt.Errorf("control %q: %w", c.Name, err)
	}
	defer os.Remove(binary)
	if c.Plan.Busy.To > 0 {
		clients = 1 // see main.go
	}
	chosen, err := faults.Named(c.Faults)
	if err != nil {
		return nil, 0, err
	}
	r := &run{
		binary: binary, plan: c.Plan, faults: chosen, pause: traffic.Range{From: 100 * time.Millisecond, To: 400 * time.Millisecond},
		clients: clients, seed: seed, length: controlRound, limits: limitsFor(c.Plan, c.Turns), dir: dir,
	}
	w, err := faults.New(r.binary, r.plan, r.clients, r.seed)
	if err != nil {
		return nil, 0, err
	}
	defer w.Kill() // a broken client may not be able to close
	var violations []judge.Violation
	operations := 0
	err = r.rounds(w, time.Now().Add(limit), report.New(seed, clients), func(v *judge.Verdict) bool {
		if violations = v.Violations; len(violations) > 0 {
			operations += v.Until(violations[0].At)
			return true
		}
		operations += v.Operations
		return false
	})
	return violations, operations, err
}
