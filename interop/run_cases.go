package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

const row = "%-11s %-32s %-22s %-4s %s\n"

// runAll runs every case with every kind of lock, both ways, and prints a table.
func (w *world) runAll(kinds []kind) (ok bool) {
	began := time.Now()
	if err := w.startDrivers(slices.ContainsFunc(kinds, isRed)); err != nil {
		fmt.Fprintln(w.out, err)
		return false
	}
	fmt.Fprintf(w.out, row, "KIND", "CASE", "DIRECTION", "", "FIGURES")
	ok = true
	for _, k := range kinds {
		if k.red {
			s := &env{world: w}
			if err := s.run(func(*env) { w.ageRedLock(long) }); err != nil {
				fmt.Fprintln(w.out, err)
				return false
			}
		}
		cases := sequential
		if k.synchronizes() {
			cases = synchronizerCases
		}
		for _, a := range cases {
			ok = w.runBothWays(k, a) && ok
			if w.ctx.Err() != nil {
				return false
			}
		}
	}
	kinds = slices.DeleteFunc(slices.Clone(kinds), kind.synchronizes)
	results := make([]bool, len(kinds))
	var running sync.WaitGroup
	for i, k := range kinds {
		running.Go(func() {
			results[i] = true
			for _, a := range parallel {
				results[i] = w.runBothWays(k, a) && results[i]
			}
		})
	}
	running.Wait()
	for _, result := range results {
		ok = ok && result
	}
	ok = w.runKilled(kinds, java, golang) && ok
	ok = w.runKilled(kinds, golang, java) && ok
	if w.sentinels != nil {
		for _, k := range kinds {
			ok = w.runBothWays(k, failing) && ok
		}
	}
	if !ok {
		w.restart()
	}
	ok = w.runBothWays(plainKind, leaving) && ok
	w.printExceptions()
	fmt.Fprintf(w.out, "in %.0f s: %s\n", time.Since(began).Seconds(), map[bool]string{true: "all cases pass", false: "FAILED"}[ok])
	return ok && w.ctx.Err() == nil
}

// ageRedLock waits until servers that were started recently may vote in Lockkeeper's RedLock: they
// may have lost locks, which expire after a watchdog's TTL. It writes the memory record, since a
// process of Lockkeeper would have to watch the servers for as long.
func (w *world) ageRedLock(watchdog time.Duration) {
	for _, r := range w.reds {
		for r.uptime(w.ctx) <= watchdog+time.Second {
			time.Sleep(100 * time.Millisecond)
		}
		record := keyspace.Memory("")
		try(r.Do(w.ctx, r.B().Eval().Script(scripts.Memory.Source).Numkeys(1).Key(record).Arg("grown").Build()).Error())
		try(r.Do(w.ctx, r.B().Hset().Key(record).FieldValue().FieldValue("age", strconv.FormatInt(watchdog.Milliseconds(), 10)).Build()).Error())
	}
}

// runBothWays runs a case both ways, if it applies to the kind.
func (w *world) runBothWays(k kind, a testcase) (ok bool) {
	if a.applies != nil && !a.applies(k) || !w.selected(a) {
		return true
	}
	ways := [][2]side{{java, golang}, {golang, java}}
	if a.bothSides {
		ways = ways[:1]
	}
	ok = true
	for _, sides := range ways {
		if w.ctx.Err() != nil {
			return false
		}
		s := w.newEnv(k, a, sides[0], sides[1])
		ok = s.printRow(a, s.run(a.run)) && ok
	}
	return ok
}

func (w *world) selected(a testcase) bool { return w.chosen == "" || w.chosen == a.name }

func (w *world) newEnv(k kind, a testcase, holding, waiting side) *env {
	words := strings.NewReplacer(" ", "-", ",", "").Replace(k.name + "-" + a.name + "-" + holding.name)
	return &env{world: w, kind: k, name: w.runID + "-" + words, holding: holding, waiting: waiting}
}

// printRow prints a row of the table.
func (s *env) printRow(a testcase, err error) (ok bool) {
	direction := fmt.Sprintf("%s holds, %s waits", s.holding.name, s.waiting.name)
	if a.bothSides {
		direction = "both sides"
	}
	result := "ok"
	if err != nil {
		result = "FAIL"
		s.addFigure("%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, row, s.kind.name, a.name, direction, result, strings.Join(s.figures, "; "))
	return err == nil
}

// runKilled lets one process of a side hold the locks of all kinds, and another one the RedLock,
// and kills them.
func (w *world) runKilled(kinds []kind, holding, waiting side) (ok bool) {
	if !w.selected(killing) {
		return true
	}
	var all []*killedHolder
	errs := make([]error, len(kinds))
	processes := []*driver{w.launch(holding, false, short)}
	if slices.ContainsFunc(kinds, isRed) {
		processes = append(processes, w.launch(holding, true, short))
	}
	for i, k := range kinds {
		d := &killedHolder{env: w.newEnv(k, killing, holding, waiting), process: processes[0]}
		if k.red {
			d.process = processes[1]
		}
		all = append(all, d)
		errs[i] = d.run(func(*env) { d.prepare() })
	}
	for _, process := range processes {
		for i, d := range all {
			if d.process == process && errs[i] == nil {
				errs[i] = d.run(func(*env) {
					asked := time.Now()
					d.ends = asked.Add(d.ttl())
				})
			}
		}
		killed := time.Now()
		for _, d := range all {
			if d.process == process {
				d.killed = killed
			}
		}
		if holding == java {
			process.send("halt")
			<-process.ended
		} else {
			process.kill()
		}
	}
	ok = true
	for i, d := range all {
		if errs[i] == nil {
			errs[i] = d.run(func(*env) { d.finish() })
		}
		ok = d.printRow(killing, errs[i]) && ok
	}
	return ok
}

// startDrivers starts the shared drivers, with or without a RedLock, and prints the versions.
func (w *world) startDrivers(red bool) error {
	s := &env{world: w, kind: plainKind, name: w.runID}
	return s.run(func(s *env) {
		var greetings []*request
		greet := func(side side, red bool, watchdog time.Duration, n int) {
			t := s.thread("hello", side, w.shared(side, red, watchdog, n))
			greetings = append(greetings, t.begin("hello"))
		}
		for _, side := range []side{java, golang} { // they start at the same time
			greet(side, false, long, 0)
			greet(side, false, short, 0)
			if red {
				greet(side, true, long, 0)
				greet(side, true, short, 0)
			}
		}
		w.version = greetings[0].within(4 * timeout).values["redisson"]
		for _, g := range greetings[1:] {
			g.within(4 * timeout)
		}
		fmt.Fprintf(w.out, "Redisson %s and Lockkeeper on Redis %s\n\n", w.version, w.redis.info(w.ctx, "server")["redis_version"])
	})
}

// printExceptions prints how many exceptions Java has written to stderr.
func (w *world) printExceptions() {
	total := map[string]int{}
	for _, d := range w.all {
		for name, n := range exceptions(d) {
			total[name] += n
		}
	}
	for name, n := range total {
		fmt.Fprintf(w.out, "on the drivers' stderr: %d × %s\n", n, name)
	}
}

// exceptions counts the exceptions that a driver has written to stderr.
func exceptions(d *driver) map[string]int {
	found := map[string]int{}
	for text := range strings.Lines(d.stderr.String()) {
		name, _, _ := strings.Cut(text, ":")
		if name = strings.TrimSpace(name); strings.HasSuffix(name, "Exception") && !strings.Contains(name, " ") {
			found[name]++
		}
	}
	return found
}
