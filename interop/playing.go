package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

const row = "%-11s %-32s %-22s %-4s %s\n"

// playAll plays every case with every kind of lock, both ways, and prints a table.
func (w *world) playAll(kinds []kind) (ok bool) {
	began := time.Now()
	if err := w.introduce(slices.ContainsFunc(kinds, isRed)); err != nil {
		fmt.Fprintln(w.out, err)
		return false
	}
	fmt.Fprintf(w.out, row, "KIND", "CASE", "DIRECTION", "", "FIGURES")
	ok = true
	for _, k := range kinds {
		if k.red {
			s := &scene{world: w}
			if err := s.play(func(*scene) { w.grow(long) }); err != nil {
				fmt.Fprintln(w.out, err)
				return false
			}
		}
		acts := loud
		if k.synchronizes() {
			acts = synchronizing
		}
		for _, a := range acts {
			ok = w.playBoth(k, a) && ok
			if w.ctx.Err() != nil {
				return false
			}
		}
	}
	kinds = slices.DeleteFunc(slices.Clone(kinds), kind.synchronizes)
	results := make([]bool, len(kinds))
	var playing sync.WaitGroup
	for i, k := range kinds {
		playing.Go(func() {
			results[i] = true
			for _, a := range quietly {
				results[i] = w.playBoth(k, a) && results[i]
			}
		})
	}
	playing.Wait()
	for _, result := range results {
		ok = ok && result
	}
	ok = w.playKilled(kinds, java, golang) && ok
	ok = w.playKilled(kinds, golang, java) && ok
	if w.guarded != nil {
		for _, k := range kinds {
			ok = w.playBoth(k, failing) && ok
		}
	}
	if !ok {
		w.restart()
	}
	ok = w.playBoth(plainKind, leaving) && ok
	w.complaints()
	fmt.Fprintf(w.out, "in %.0f s: %s\n", time.Since(began).Seconds(), map[bool]string{true: "all is well", false: "FAILED"}[ok])
	return ok && w.ctx.Err() == nil
}

// grow waits until Lockkeeper's RedLock lets servers vote that were recently started: they
// may have forgotten locks, which have run out after a watchdog's time. A process of
// Lockkeeper's would have to watch them for as long; it is told that somebody has.
func (w *world) grow(watchdog time.Duration) {
	for _, r := range w.reds {
		for r.uptime(w.ctx) <= watchdog+time.Second {
			time.Sleep(100 * time.Millisecond)
		}
		record := redisio.Memory("")
		try(r.Do(w.ctx, r.B().Eval().Script(scripts.Memory.Source).Numkeys(1).Key(record).Arg("grown").Build()).Error())
		try(r.Do(w.ctx, r.B().Hset().Key(record).FieldValue().FieldValue("age", strconv.FormatInt(watchdog.Milliseconds(), 10)).Build()).Error())
	}
}

// playBoth plays a case both ways, if it is one for that kind.
func (w *world) playBoth(k kind, a act) (ok bool) {
	if a.of != nil && !a.of(k) || !w.plays(a) {
		return true
	}
	ways := [][2]side{{java, golang}, {golang, java}}
	if a.together {
		ways = ways[:1]
	}
	ok = true
	for _, sides := range ways {
		if w.ctx.Err() != nil {
			return false
		}
		s := w.scene(k, a, sides[0], sides[1])
		ok = s.report(a, s.play(a.play)) && ok
	}
	return ok
}

func (w *world) plays(a act) bool { return w.chosen == "" || w.chosen == a.name }

func (w *world) scene(k kind, a act, holding, waiting side) *scene {
	words := strings.NewReplacer(" ", "-", ",", "").Replace(k.name + "-" + a.name + "-" + holding.name)
	return &scene{world: w, kind: k, name: w.mark + "-" + words, holding: holding, waiting: waiting}
}

// report prints a row of the table.
func (s *scene) report(a act, err error) (ok bool) {
	direction := fmt.Sprintf("%s holds, %s waits", s.holding.name, s.waiting.name)
	if a.together {
		direction = "both together"
	}
	result := "ok"
	if err != nil {
		result = "FAIL"
		s.tell("%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, row, s.kind.name, a.name, direction, result, strings.Join(s.figures, "; "))
	return err == nil
}

// playKilled has one process of a side hold the locks of all kinds, and one more those that
// need servers of their own, and kills them.
func (w *world) playKilled(kinds []kind, holding, waiting side) (ok bool) {
	if !w.plays(killing) {
		return true
	}
	var all []*doomed
	errs := make([]error, len(kinds))
	processes := []*driver{w.launch(holding, false, short)}
	if slices.ContainsFunc(kinds, isRed) {
		processes = append(processes, w.launch(holding, true, short))
	}
	for i, k := range kinds {
		d := &doomed{scene: w.scene(k, killing, holding, waiting), process: processes[0]}
		if k.red {
			d.process = processes[1]
		}
		all = append(all, d)
		errs[i] = d.play(func(*scene) { d.prepare() })
	}
	for _, process := range processes {
		for i, d := range all {
			if d.process == process && errs[i] == nil {
				errs[i] = d.play(func(*scene) {
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
			errs[i] = d.play(func(*scene) { d.finish() })
		}
		ok = d.report(killing, errs[i]) && ok
	}
	return ok
}

// introduce starts what the cases share, with or without a RedLock, and says which versions meet.
func (w *world) introduce(red bool) error {
	s := &scene{world: w, kind: plainKind, name: w.mark}
	return s.play(func(s *scene) {
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
		w.version = greetings[0].within(4 * patience).values["redisson"]
		for _, g := range greetings[1:] {
			g.within(4 * patience)
		}
		fmt.Fprintf(w.out, "Redisson %s and Lockkeeper on Redis %s\n\n", w.version, w.redis.info(w.ctx, "server")["redis_version"])
	})
}

// complaints sums up the exceptions that Java has written to stderr.
func (w *world) complaints() {
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
