package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// shares: three processes of Go and one of Java request the lock all the time, in four threads each. The Go processes
// transfer the lock to each other, so Java would starve if it were not sometimes left to foreign clients. On a busy
// machine Java may come too late, and then has fewer turns than a process of Go. The holds of one process after another
// are one turn.
func shares(s *env) { contend(s, 4, "Go1", "Go2", "Go3", "Java") }

// pair: one goroutine and one thread of Java request the lock all the time. No request of Go waits when the goroutine
// releases the lock, and its next one would come before Java has woken.
func pair(s *env) { contend(s, 1, "Go1", "Java") }

// contend lets so many threads of each process request the lock all the time, and checks that Java has its share, and
// leaves Go its own. Of a process with one thread, each hold is a turn.
func contend(s *env, each int, processes ...string) {
	threads := map[string][]*thread{}
	for i, name := range processes {
		side, n := golang, i
		if name == "Java" {
			side, n = java, 0
		}
		d := s.driver(side, s.kind.watchdog(), n)
		s.thread("hello", side, d).begin("hello").within(4 * timeout) // it must have started
		for i := range each {
			threads[name] = append(threads[name], s.thread(fmt.Sprint("contender", i), side, d))
		}
	}
	for _, hold := range []time.Duration{20 * time.Millisecond, 2 * time.Millisecond, 0} {
		key := fmt.Sprint(s.name, ":holds of ", hold)
		defer s.remove(key)
		until := time.Now().Add(time.Duration(s.times(1500, 1000)) * time.Millisecond).UnixMicro()
		var taking []*request
		for name, all := range threads {
			for _, t := range all {
				taking = append(taking, t.begin("take", "key="+key, "as="+name, fmt.Sprint("hold=", hold.Milliseconds()), fmt.Sprint("until=", until)))
			}
		}
		for _, r := range taking {
			r.await()
		}
		list, err := s.redis.Do(s.ctx, s.redis.B().Lrange().Key(key).Start(0).Stop(-1).Build()).AsStrSlice()
		try(err)
		turns, last := map[string]int{}, ""
		for _, text := range list {
			name, _, _ := strings.Cut(text, " ")
			if name != last || each == 1 {
				turns[name]++
			}
			last = name
		}
		s.addFigure("turns with holds of %s: %v", inMS(hold), turns)
		check(4*turns["Java"] >= max(turns["Go1"], turns["Go2"], turns["Go3"]), "with holds of %v: Java has too few of the turns %v", hold, turns)
		check(4*turns["Go1"] >= turns["Java"], "with holds of %v: Go has too few of the turns %v", hold, turns)
	}
}

// rates: three processes of one side with four threads each request the lock all the time, then three of the other
// side, in turn. Each hold appends a line to a list. It is a measurement, and fails only when a side stands still.
func rates(s *env) {
	const rounds = 5
	contenders := map[side][]*thread{}
	for _, side := range []side{golang, java} {
		for n := range 3 {
			d := s.driver(side, s.kind.watchdog(), n)
			s.thread("hello", side, d).begin("hello").within(4 * timeout) // it must have started
			for i := range 4 {
				contenders[side] = append(contenders[side], s.thread(fmt.Sprint("contender", i), side, d))
			}
		}
	}
	grants := func(side side) float64 {
		key := fmt.Sprint(s.name, ":rates")
		defer s.remove(key)
		took := time.Duration(s.times(3000, 500)) * time.Millisecond
		var taking []*request
		for _, t := range contenders[side] {
			taking = append(taking, t.begin("take", "key="+key, "as=one", "hold=0", fmt.Sprint("until=", time.Now().Add(took).UnixMicro())))
		}
		for _, r := range taking {
			r.await()
		}
		n, err := s.redis.Do(s.ctx, s.redis.B().Llen().Key(key).Build()).AsInt64()
		try(err)
		check(n > 0, "the lock was granted to no thread")
		return float64(n) / took.Seconds()
	}
	grants(java) // a JVM is slow at first
	var ofGo, ofJava, ratios []float64
	for range rounds {
		g, j := grants(golang), grants(java)
		ofGo, ofJava, ratios = append(ofGo, g), append(ofJava, j), append(ratios, g/j)
	}
	for _, figure := range []struct {
		of     string
		values []float64
	}{{"grants/s of Go", ofGo}, {"of Java", ofJava}, {"ratio", ratios}} {
		slices.Sort(figure.values)
		s.addFigure("%s %.2f (%.2f–%.2f)", figure.of, figure.values[rounds/2], figure.values[0], figure.values[rounds-1])
	}
}
