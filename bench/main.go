// Command bench measures Lockkeeper beside other Go locks on Redis: every scenario,
// library and round in fresh processes and on a Redis of its own. See README.md.
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
	"time"
)

// childVariable tells a child process what to do; the parent does not have it.
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
	flag.StringVar(&o.names, "scenario", "", "scenarios, with commas between them, or what comes before a hyphen in their names; all if empty")
	flag.StringVar(&o.libs, "lib", "", "libraries, with commas between them; all but lockkeeper-metered and redsync-goredis if empty, and go-zero only with -tags gozero. Each takes part where it can")
	flag.IntVar(&o.rounds, "rounds", 5, "how often everything is measured")
	flag.Float64Var(&o.seconds, "seconds", 2, "how long one measurement takes; some scenarios take a multiple, see README.md")
	flag.StringVar(&o.file, "json", "", "append one JSON object for each measurement to this file")
	flag.StringVar(&o.profile, "profile", "", "write CPU and heap profiles into this folder")
	flag.BoolVar(&o.cluster, "cluster", false, "Redis is a cluster of three masters, in scenarios of Lockkeeper with one key and without a distance; not for the page")
	flag.BoolVar(&o.quick, "quick", false, "run everything once and briefly, with every library, to see that it works")
	charts := flag.String("charts", "", "measure nothing: draw the JSON file that is the argument as SVG into this folder")
	page := flag.String("page", "", "with -charts: put the tables into this Markdown file, between its markers")
	flag.Parse()
	run := o.measure
	if *charts != "" {
		run = func() error { return publish(flag.Arg(0), *charts, *page) }
	}
	if err := run(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// options are what is to be measured.
type options struct {
	names, libs, file, profile string
	rounds                     int
	seconds                    float64
	quick, cluster             bool
}

// measure runs what the options ask for, the libraries in turn within a round. A peer
// that fails is no error.
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
			return s.grows() && s.size > 1000 || s.distance > time.Millisecond
		})
	}
	if o.cluster {
		if o.file != "" {
			return errors.New("-cluster goes without -json: the page has the figures of one server")
		}
		o.libs = cmp.Or(o.libs, ours)
		if i := slices.IndexFunc(chosen, func(s scenario) bool {
			return !s.oneKey || s.kind == multi || s.pinned || s.away || s.distance > 0
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
			fmt.Printf("\n**%s**\n\n%s", c.title(), c.table())
		}
	}
	return errors.Join(wrong...)
}

// measurement is one that has begun; the result is there when done is closed.
type measurement struct {
	lib    string
	round  int
	done   chan struct{}
	result result
	err    error
}

// begin begins the measurements in their order, each when the one before it has ended. In the quick
// form, whose figures do not matter, two run beside each other.
func (o options) begin(chosen []scenario) <-chan *measurement {
	places := make(chan struct{}, 1)
	if o.quick {
		places = make(chan struct{}, 2)
	}
	begun := make(chan *measurement, cap(places))
	go func() {
		for _, s := range chosen {
			for round := range o.rounds {
				for _, lib := range o.takePart(s) {
					places <- struct{}{}
					m := &measurement{lib: lib, round: round + 1, done: make(chan struct{})}
					go func() {
						t := task{Scenario: s.name, Lib: lib, Seconds: o.seconds * max(s.stretch, 1), Profile: o.profile}
						m.result, m.err = launch(t, s, o.cluster, m.round)
						close(m.done)
						<-places
					}()
					begun <- m
				}
			}
		}
	}()
	return begun
}

// takePart are the libraries for a scenario.
func (o options) takePart(s scenario) (libs []string) {
	for _, lib := range s.libs {
		if o.libs != "" && !slices.Contains(strings.Split(o.libs, ","), lib) ||
			o.libs == "" && ((lib == oursMetered || lib == "redsync-goredis") && !o.quick || lib == "go-zero" && !withGoZero) {
			continue
		}
		libs = append(libs, lib)
	}
	return libs
}
