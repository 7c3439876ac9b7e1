package main

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// The benchmark of Redisson and Lockkeeper: the same work, each in a process of its own, one
// after the other on one Redis.

// matches are the scenarios that are compared.
var matches = []struct {
	scenario, what string
	values         []string
	// watchdog is that of the process; counted says that the commands it sends are counted.
	watchdog time.Duration
	counted  bool
}{
	{"s1", "one thread, one lock", nil, long, false},
	{"s3", "64 threads, one lock", []string{"threads=64"}, long, false},
	{"s16", "64 threads, a semaphore of 10 permits", []string{"threads=64", "permits=10"}, long, false},
	{"s2", "1000 threads, 1000 locks", []string{"threads=1000", "keys=1000"}, long, false},
	{"s5", "10,000 locks held under the watchdog", []string{"keys=10000"}, 2 * short, true},
}

const matchRow = "%-38s %-11s %10s %10s %10s %10s  %s\n"

// compare runs the benchmark and prints a table.
func (w *world) compare() (ok bool) {
	fmt.Fprintf(w.out, "\n"+matchRow, "BENCHMARK", "", "GRANTS/S", "P50, µs", "P99, µs", "MAX, µs", "")
	w.restart() // so that the drivers of the cases use no processor time
	ok = true
	for i, m := range matches {
		for _, side := range []side{java, golang} {
			s := &env{world: w, kind: kinds[0], name: fmt.Sprintf("%s-bench-%d-%s", w.runID, i, side.name)}
			var row func(io.Writer)
			err := s.run(func(s *env) {
				process := s.launch(side, false, m.watchdog)
				defer process.stop()
				t := s.thread("bench", side, process)
				t.begin("hello").within(4 * timeout)
				row = s.benchmarkRow(t, i)
			})
			if err != nil {
				fmt.Fprintf(w.out, "%-38s %-11s FAIL %v\n", m.what, side.name, err)
				ok = false
				continue
			}
			row(w.out)
			if w.ctx.Err() != nil {
				return false
			}
		}
	}
	return ok
}

// benchmarkRow runs a scenario on one side, and returns the row to print, without the warm-up.
func (s *env) benchmarkRow(t *thread, i int) (row func(io.Writer)) {
	m := matches[i]
	seconds, warmup := s.times(4, 1), s.times(4, 2)
	if m.counted {
		seconds, warmup = s.times(12, 6), s.times(6, 1)
	}
	name := map[side]string{java: "Redisson", golang: "Lockkeeper"}[t.side]
	values := append([]string{"scenario=" + m.scenario, fmt.Sprint("seconds=", seconds), fmt.Sprint("warmup=", warmup)}, m.values...)
	running := t.begin("bench", values...)
	note := ""
	if m.counted {
		note = s.sentWhileHeld(warmup, seconds)
	}
	a := running.within(10 * timeout)
	ops := a.number("ops")
	perSecond := strconv.FormatInt(ops/int64(seconds), 10)
	if m.counted {
		perSecond = "" // the acquires are not measured
		check(a.number("lost") == 0, "%d of %s locks were lost", a.number("lost"), m.values)
	} else {
		note = fmt.Sprintf("%s to %s a thread", a.values["mingrants"], a.values["maxgrants"])
	}
	return func(out io.Writer) {
		fmt.Fprintf(out, matchRow, m.what, name, perSecond, a.values["p50us"], a.values["p99us"], a.values["maxus"], note)
	}
}

// sentWhileHeld waits until the locks are held, and counts the commands that Redis receives then.
func (s *env) sentWhileHeld(warmup, seconds int) string {
	last := s.name + ":9999"
	for began := time.Now(); s.redis.ttl(s.ctx, last) < 0; time.Sleep(20 * time.Millisecond) {
		check(time.Since(began) < 4*timeout, "the locks are not taken")
	}
	time.Sleep(time.Duration(warmup) * time.Second)
	scripts, all, cpu := s.redis.load(s.ctx)
	began := time.Now()
	time.Sleep(time.Duration(seconds-1) * time.Second)
	scripts2, all2, cpu2 := s.redis.load(s.ctx)
	took := time.Since(began).Seconds()
	return fmt.Sprintf("%.0f scripts/s, %.0f commands/s with those inside, %.1f %% of a core in Redis",
		float64(scripts2-scripts)/took, float64(all2-all)/took, 100*(cpu2-cpu).Seconds()/took)
}
