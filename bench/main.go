// Command bench measures Lockkeeper beside other Go locks on Redis: every scenario,
// library and round in fresh processes and on a Redis of its own. See README.md.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
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
	if err := measure(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// measure runs what the flags ask for, the libraries in turn within a round.
func measure() error {
	var (
		names   = flag.String("scenario", "s1,s2,s3,s4,s5,s6", "scenarios, with commas between them")
		libs    = flag.String("lib", "lockkeeper,raw,rueidislock,redsync,redislock", "libraries, with commas between them; there is also redsync-goredis")
		rounds  = flag.Int("rounds", 5, "how often everything is measured")
		seconds = flag.Float64("seconds", 2, "how long one measurement takes; s5 takes ten times, s6 three times as long")
		file    = flag.String("json", "", "append one JSON object for each measurement to this file")
		profile = flag.String("profile", "", "write CPU and heap profiles into this folder")
		quick   = flag.Bool("quick", false, "run everything once and briefly, to see that it works")
	)
	flag.Parse()
	if *quick {
		*rounds, *seconds = 1, 0.2
	}
	var log *json.Encoder
	if *file != "" {
		f, err := os.OpenFile(*file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		log = json.NewEncoder(f)
	}
	var wrong []error
	for name := range strings.SplitSeq(*names, ",") {
		s, known := scenarios[name]
		if !known {
			return fmt.Errorf("there is no scenario %q", name)
		}
		var results []result
		for round := range *rounds {
			for lib := range strings.SplitSeq(*libs, ",") {
				if _, err := find(lib); err != nil {
					return err
				}
				r, err := launch(task{Scenario: name, Lib: lib, Seconds: *seconds, Profile: *profile}, s, round+1)
				if err != nil {
					err = fmt.Errorf("%s, %s, round %d: %w", name, lib, round+1, err)
					if lib == "lockkeeper" || lib == "raw" {
						wrong = append(wrong, err)
					} else {
						fmt.Fprintln(os.Stderr, "bench: a peer failed, and is left out:", err)
					}
					continue
				}
				results = append(results, r)
				if log != nil {
					if err := log.Encode(r); err != nil {
						return err
					}
				}
			}
		}
		s.print(name, results)
	}
	return errors.Join(wrong...)
}
