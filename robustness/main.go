// Command robustness acquires locks in several processes, injects faults, and checks whether
// Lockkeeper keeps its promises.
//
//	go run .                     a short run over all kinds of locks and all faults
//	go run . -world cluster      the same on a cluster, with Sentinels, or on several servers
//	go run . -world zones        the same with one client further from Redis than the others
//	go run . -world computing    leases in processes with busy goroutines, compared with rueidislock; likewise cancels,
//	                             giving-up, edges, foreign and forced, each with one kind of trouble
//	go run . -time 30m           a long run, with a check for leaks at the end
//	go run . -controls all       breaks one safety rule after another, which a check must detect
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/controls"
	"github.com/lockkeeper-go/lockkeeper/robustness/faults"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/judge"
	"github.com/lockkeeper-go/lockkeeper/robustness/report"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

func main() {
	if text := os.Getenv(faults.SpecVariable); text != "" {
		exit(client(text))
	}
	exit(command(os.Args[1:]))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "robustness:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func client(text string) error {
	var spec traffic.Spec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	return traffic.Run(spec, os.Stdin, os.Stdout)
}

var errNotKept = errors.New("a promise was not kept")

func command(args []string) error {
	flags := flag.NewFlagSet("robustness", flag.ExitOnError)
	length := flags.Duration("time", 2*time.Minute, "how long to run")
	round := flags.Duration("round", 40*time.Second,
		"the length of a round, after which all clients come to rest and the judge checks the history")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()), "the order and times of the faults; the machine decides the rest")
	which := flags.String("faults", "all", "which faults, by name, separated by commas, or all of the world")
	dir := flags.String("dir", "", "the directory of the report; default: a new one")
	soak := flags.Bool("soak", true, "check for leaks at the end")
	world := flags.String("world", "one", "the servers: "+
		"one, zones (one server, with one client further away than the others), cluster, "+
		"sentinel (a master with replicas and Sentinels), several (independent servers, for RedLock and MultiLock), "+
		"or one server with a single kind of trouble: cancels, giving-up, computing, edges, foreign or forced")
	replicas := flags.Int("replicas", 1,
		"how many replicas must confirm a grant (Config.Replicas), in a cluster and with Sentinels; "+
			"with 0 nothing is promised about masters that fail")
	broken := flags.String("controls", "", "which safety rules to break, by name, separated by commas, or all of them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := faults.Named(*which)
	if err != nil {
		return err
	}
	if *dir == "" {
		*dir, err = os.MkdirTemp("", "robustness-report")
	} else {
		err = os.MkdirAll(*dir, 0o755)
	}
	if err != nil {
		return err
	}
	if *dir, err = filepath.Abs(*dir); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	plan, all, clients := one(), faults.All, 3
	switch *world {
	case "one":
	case "zones":
		plan = zones()
	case "cluster":
		plan, all = cluster(), faults.InACluster
	case "sentinel":
		plan, all = sentinel(), faults.OfSentinels
	case "several":
		plan, all = several(), faults.OfSeveral
	case "computing":
		plan, all, clients = traffic.ComputingPlan(), nil, 1 // all processes share the processors
	case "cancels":
		plan, all = traffic.CancelsPlan(), nil
	case "giving-up":
		plan, all = traffic.GivingUpPlan(), nil
	case "forced":
		plan, all = traffic.ForcedPlan(), faults.Forcing
	case "foreign":
		plan, all = traffic.ForeignPlan(), faults.Foreign
	case "edges":
		plan, all = traffic.EdgesPlan(), faults.Numbers
	default:
		return fmt.Errorf(
			"unknown world %q: want one, zones, cluster, sentinel, several, computing, cancels, giving-up, forced, foreign or edges",
			*world)
	}
	if *which == "all" {
		chosen = all
	}
	pause := traffic.Range{From: 100 * time.Millisecond, To: 2 * time.Second}
	if plan.Replicas > 0 { // so that there is unexcused time between the faults
		plan.Confirm = *replicas
		pause.To = plan.Lease() + plan.Silence() + 3*time.Second
	}
	r := &run{
		binary: self, plan: plan, faults: chosen, pause: pause,
		clients: clients, seed: *seed, length: *round, limits: limitsFor(plan, true), dir: *dir,
	}
	into := report.New(*seed, clients)
	if *broken != "" {
		err = breakRules(*broken, r, into)
	} else {
		err = r.whole(*length, *soak, into)
	}
	if err != nil {
		return err
	}
	into.Print(os.Stdout)
	if err := into.Save(*dir); err != nil {
		return err
	}
	fmt.Println("\nreport in", *dir)
	if !into.OK() {
		return errNotKept
	}
	return nil
}

// whole runs from the start of the processes to their end.
func (r *run) whole(length time.Duration, soak bool, into *report.Report) error {
	began := time.Now()
	w, err := faults.New(r.binary, r.plan, r.clients, r.seed)
	if err != nil {
		return err
	}
	defer w.Kill()
	var start rest
	if soak {
		// What the first traffic allocates for good belongs to the start.
		warm := *r
		warm.faults, warm.length = nil, min(r.length, 5*time.Second)
		v, names, err := warm.round(w, 0)
		if err != nil {
			return err
		}
		into.Add(v, names)
		if start, err = atRest(w, r.plan); err != nil {
			return err
		}
	}
	if err := r.rounds(w, began.Add(length), into, func(*judge.Verdict) bool { return false }); err != nil {
		return err
	}
	if soak {
		end, err := settled(w, r.plan, start)
		if err != nil {
			return err
		}
		into.Soak = compare(start, end)
		if err := w.Profile(r.dir); err != nil {
			return err
		}
	}
	into.Took = time.Since(began)
	if err := w.Close(); err != nil {
		into.Violations = append(into.Violations, judge.Violation{
			Check: "clients close and leave nothing behind", At: history.Now(), Detail: err.Error(),
		})
	}
	return nil
}

// breakRules runs controls.
func breakRules(names string, r *run, into *report.Report) error {
	chosen, err := controls.Named(names)
	if err != nil {
		return err
	}
	for _, c := range chosen {
		result, err := control(c, r.dir, r.clients, r.seed)
		if err != nil {
			return err
		}
		fmt.Printf("%s: caught by %q after %d operations\n", c.Name, result.Caught, result.After)
		into.Controls = append(into.Controls, result)
	}
	return nil
}
