// Command bench compares Lockkeeper with other Go locks on Redis: every scenario, library
// and round in new processes, on a Redis of its own. See README.md.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// childVariable is the environment variable with the task of a child process.
const childVariable = "LOCKKEEPER_BENCH_CHILD"

func main() {
	if s := os.Getenv(childVariable); s != "" {
		var t task
		if err := json.Unmarshal([]byte(s), &t); err != nil {
			fail(err)
		}
		if err := t.run(); err != nil {
			fail(err)
		}
		return
	}
	var o options
	flag.StringVar(&o.names, "scenario", "", "scenarios, separated by commas, or the prefixes of their names before a hyphen; all if empty")
	flag.StringVar(&o.libs, "lib", "",
		"libraries, separated by commas; all but lockkeeper-metered if empty, "+
			"and go-zero only with -tags gozero. Each is measured in the scenarios that it supports")
	flag.IntVar(&o.rounds, "rounds", 5, "how often everything is measured")
	flag.Float64Var(&o.seconds, "seconds", 2, "how long one measurement takes; some scenarios take a multiple, see README.md")
	flag.StringVar(&o.file, "json", "", "append one JSON object for each measurement to this file")
	flag.StringVar(&o.profile, "profile", "", "write CPU and heap profiles into this folder")
	flag.BoolVar(&o.cluster, "cluster", false, "Redis is a cluster of three masters, for scenarios with one key, or with locks that are held")
	flag.BoolVar(&o.quick, "quick", false, "run everything once and briefly, with every library, as a test")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "bench [flags] measures; bench FILE prints the tables of what -json has written.")
		flag.PrintDefaults()
	}
	flag.Parse()
	run := o.measure
	if flag.NArg() > 0 {
		run = func() error { return show(flag.Arg(0), os.Stdout) }
	}
	if err := run(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// options are the command line.
type options struct {
	names, libs, file, profile string
	rounds                     int
	seconds                    float64
	quick, cluster             bool
}

// measure runs the chosen measurements, the libraries in turn within a round. A failure of a
// peer is not an error.
func (o options) measure() error {
	if o.quick {
		o.rounds, o.seconds = 1, 0.2
	}
	chosen, err := choose(o.names)
	if err != nil {
		return err
	}
	if o.quick {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(s scenario) bool {
			return s.grows() && s.size > 1000 || s.systems > 32
		})
	}
	if o.cluster {
		if o.file != "" {
			return errors.New("-cluster excludes -json, whose tables have the figures of one server")
		}
		o.libs = cmp.Or(o.libs, ours)
		if i := slices.IndexFunc(chosen, func(s scenario) bool {
			return !s.oneKey && s.size == 0 || s.away > 0
		}); i >= 0 {
			return fmt.Errorf("%s is not for a cluster", chosen[i].name)
		}
	}
	if o.libs != "" {
		for lib := range strings.SplitSeq(o.libs, ",") {
			if _, err := find(lib); err != nil {
				return err
			}
		}
	}
	var log *json.Encoder
	if o.file != "" {
		f, err := os.OpenFile(o.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		log = json.NewEncoder(f)
	}
	var (
		results []result
		wrong   []error
	)
	begun := o.begin(chosen)
	for i, s := range chosen {
		for range o.rounds * len(o.takePart(s)) {
			m := <-begun
			<-m.done
			if m.err != nil {
				err := fmt.Errorf("%s, %s, round %d: %w", s.name, m.lib, m.round, m.err)
				if isPeer(m.lib) {
					fmt.Fprintln(os.Stderr, "bench: a peer failed, and is left out:", err)
				} else {
					fmt.Fprintln(os.Stderr, "bench:", err)
					wrong = append(wrong, err)
				}
				continue
			}
			m.result.Seconds = o.seconds
			results = append(results, m.result)
			if log != nil {
				wrong = append(wrong, log.Encode(m.result)) // if it fails, the tables are still printed
			}
		}
		if i+1 < len(chosen) && chosen[i+1].in() == s.in() {
			continue // with the next size
		}
		if c := compare(s.in(), results); len(c.results) > 0 {
			fmt.Print(c.text())
		}
	}
	return errors.Join(wrong...)
}

// measurement is a measurement that has begun; its result is valid when done is closed.
type measurement struct {
	lib    string
	round  int
	done   chan struct{}
	result result
	err    error
}

// begin starts the measurements in order, each after the end of the one before it. With -quick, whose
// figures do not matter, two run at the same time.
func (o options) begin(chosen []scenario) <-chan *measurement {
	running := make(chan struct{}, 1)
	if o.quick {
		running = make(chan struct{}, 2)
	}
	begun := make(chan *measurement, cap(running))
	go func() {
		for _, s := range chosen {
			for round := range o.rounds {
				for _, lib := range o.takePart(s) {
					running <- struct{}{}
					m := &measurement{lib: lib, round: round + 1, done: make(chan struct{})}
					go func() {
						t := task{Scenario: s.name, Lib: lib, Seconds: o.seconds * max(s.stretch, 1), Profile: o.profile}
						m.result, m.err = launch(t, s, o.cluster, m.round)
						close(m.done)
						<-running
					}()
					begun <- m
				}
			}
		}
	}()
	return begun
}

// takePart returns the libraries to measure in a scenario.
func (o options) takePart(s scenario) (libs []string) {
	for _, lib := range s.libs {
		if o.libs != "" && !slices.Contains(strings.Split(o.libs, ","), lib) ||
			o.libs == "" && (lib == oursMetered && !o.quick || lib == "go-zero" && !withGoZero) {
			continue
		}
		libs = append(libs, lib)
	}
	return libs
}
