package main

import (
	"fmt"
	"strings"
	"time"
)

// shares: three processes of Go and one of Java request the lock all the time, in four threads each. The Go processes
// transfer the lock to each other, so Java would starve if it were not sometimes left to foreign clients. On a busy
// machine Java may come too late, and then has fewer turns than a process of Go. The holds of one process after another
// are one turn.
func shares(s *env) {
	threads := map[string][]*thread{}
	for i, name := range []string{"Go1", "Go2", "Go3", "Java"} {
		side, n := golang, i
		if name == "Java" {
			side, n = java, 0
		}
		d := s.driver(side, s.kind.watchdog(), n)
		s.thread("hello", side, d).begin("hello").within(4 * timeout) // it must have started
		for i := range 4 {
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
			if name != last {
				turns[name]++
			}
			last = name
		}
		s.addFigure("turns with holds of %s: %v", inMS(hold), turns)
		check(4*turns["Java"] >= max(turns["Go1"], turns["Go2"], turns["Go3"]), "with holds of %v: Java has too few of the turns %v", hold, turns)
	}
}
