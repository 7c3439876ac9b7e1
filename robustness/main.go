// Command robustness takes locks in several processes while everything goes wrong that
// can, and judges whether Lockkeeper has kept its promises.
//
//	go run .                     a short run over all kinds of locks and all faults
//	go run . -world cluster      the same on a cluster, with Sentinels, or on several servers
//	go run . -world zones        the same with a client that is further away than the others
//	go run . -world computing    leases beside goroutines that compute, compared with those of rueidislock; and cancels,
//	                             giving-up, edges, foreign and forced, each with what may happen on a hostile day
//	go run . -time 30m           a long one, which ends by looking for leaks
//	go run . -controls all       breaks one safety rule after another, and must notice; does -fencing as well
//	go run . -fencing            loses an update under a paused holder, and with a fencing token does not
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

var errNotKept = errors.New("not as promised")

func command(args []string) error {
	flags := flag.NewFlagSet("robustness", flag.ExitOnError)
	length := flags.Duration("time", 2*time.Minute, "how long to run")
	round := flags.Duration("round", 40*time.Second, "how long a round is, after which everything comes to rest and is judged")
	clients := flags.Int("clients", 3, "how many client processes")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()), "which faults come when; the rest is up to the machine")
	which := flags.String("faults", "all", "which faults, by name, separated by commas, or all of the world")
	dir := flags.String("dir", "", "where the report goes; default: a new directory")
	keep := flags.Bool("keep", false, "keep the histories of rounds in which nothing was wrong")
	soak := flags.Bool("soak", true, "look for leaks at the end")
	fencing := flags.Bool("fencing", false, "show that a paused holder loses an update without fencing, and not with it")
	world := flags.String("world", "one", "what Redis is: one server, zones (one server, from which a client is further away than the others), a cluster, a master with replicas and Sentinels (sentinel), several that know nothing of each other (RedLock, MultiLock), or one server with a single kind of trouble: cancels, giving-up, computing, edges, foreign or forced")
	replicas := flags.Int("replicas", 1, "how many replicas must have what is trusted (Config.Replicas), in a cluster and with Sentinels; with 0 nothing is promised about masters that fail")
	turns := flags.Bool("turns", turnsPromised, "judge whether processes get their turns one after another")
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
	plan, all := one(), faults.All
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
		plan, all, *clients = traffic.ComputingPlan(), nil, 1 // all processes share the processors
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
		return fmt.Errorf("there is no world %q: one, zones, cluster, sentinel, several, computing, cancels, giving-up, forced, foreign or edges", *world)
	}
	if *which == "all" {
		chosen = all
	}
	pause := traffic.Range{From: 100 * time.Millisecond, To: 2 * time.Second}
	if plan.Replicas > 0 { // so that there is time without an excuse between them
		plan.Confirm = *replicas
		pause.To = plan.Lease() + plan.Silence() + 3*time.Second
	}
	r := &run{
		binary: self, plan: plan, faults: chosen, pause: pause,
		clients: *clients, seed: *seed, length: *round, limits: limitsFor(plan, *turns), dir: *dir, keep: *keep,
	}
	into := report.New(*seed, *clients)
	switch {
	case *broken != "":
		err = breakRules(*broken, r, into)
	case *fencing:
		into.Demonstrated, err = demonstrate(self)
	default:
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

// whole is a run from the start of its processes to their end.
func (r *run) whole(length time.Duration, soak bool, into *report.Report) error {
	began := time.Now()
	w, err := faults.New(r.binary, r.plan, r.clients, r.seed)
	if err != nil {
		return err
	}
	defer w.Kill()
	var start rest
	if soak {
		// What the first traffic leaves behind for good belongs to the start.
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
		into.Violations = append(into.Violations, judge.Violation{Check: "clients close, and leave nothing behind", At: history.Now(), Detail: err.Error()})
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
	if len(chosen) == len(controls.All) {
		into.Demonstrated, err = demonstrate(r.binary)
	}
	return err
}
