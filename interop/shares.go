package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// turn is how long a process may hand a lock off to its own waiters: Lockkeeper's hand-off limit,
	// plus the delay until the last grant is observed. A longer sequence counts as two turns.
	turn = 6 * time.Millisecond
	// openTime is how long Lockkeeper sometimes leaves a free lock to foreign clients.
	openTime = 10 * time.Millisecond
)

// shares: three processes of Go and one of Java request the lock all the time, in four threads each,
// and get the same number of turns. The Go processes transfer the lock to each other, so Java would starve if
// it were not sometimes left to foreign clients. On a busy machine Java may come too late, or make no request
// for a while: a lock left to Java counts as a turn of Java, and turns of Go while Java does not wait do not count.
// All holds of Java until the next one of Go are one turn: Redisson notifies all waiters of a release, and its own
// threads may be the first to try.
func shares(s *env) {
	contenders := []contender{{"Java", java, s.driver(java, s.kind.watchdog(), 0), 4}}
	for i := range 3 {
		contenders = append(contenders, contender{fmt.Sprint("Go", i+1), golang, s.driver(golang, s.kind.watchdog(), i), 4})
	}
	written := contenders[0].driver.stderr.String()
	forEachHold(func(hold time.Duration) string {
		holds := s.takeTurns(hold, time.Duration(s.times(1500, 1000))*time.Millisecond, contenders)
		turns, late := turnsOf(holds, max(hold, turn)), lateFor(holds)
		counts, beside := countsOf(turns), countsOf(whileWaiting(turns, holds))
		came := handOvers(holds, golang, java)
		check(len(came) > 0, "Java never got the lock after Go")
		each, fewest, overtaken := []string{fmt.Sprintf("Java %d", len(came))}, counts["Go1"], 0
		most := len(came)
		for _, t := range contenders[1:] {
			each = append(each, fmt.Sprintf("%s %d", t.name, counts[t.name]))
			fewest, most, overtaken = min(fewest, counts[t.name]), max(most, counts[t.name]), max(overtaken, beside[t.name])
		}
		s.addFigure("turns with holds of %s: %s; Java in %s after Go, and %d times too late",
			inMS(hold), strings.Join(each, ", "), quantiles(came), late)
		// At the end a process may be two turns behind.
		if 2*most <= 3*(fewest+2) && 2*overtaken <= 3*(len(came)+late+2) {
			return ""
		}
		return fmt.Sprintf("the turns are unequal; while Java waited, one process of Go had %d", overtaken)
	})
	stderr := strings.TrimPrefix(contenders[0].driver.stderr.String(), written)
	check(stderr == "", "Java wrote to stderr: %s", stderr)
}

// beside: one thread of Java requests the lock again and again, and so do four goroutines of a process, which hand
// it off in memory. While Java waits, one turn of Go begins, for which Go has waited while Java held the lock; on a
// busy machine one more turn begins before Java is known to wait, and one for each time that Java comes too late. The
// wait with the most turns does not count: Java may stall once before it is known to wait. Turns of Go while Java
// makes no request do not count: Java may be waiting for replicas.
func beside(s *env) {
	contenders := []contender{
		{"Java", java, s.driver(java, s.kind.watchdog(), 0), 1},
		{"Go", golang, s.driver(golang, s.kind.watchdog(), 0), 4},
	}
	forEachHold(func(hold time.Duration) string {
		holds := s.takeTurns(hold, time.Duration(s.times(3000, 1000))*time.Millisecond, contenders)
		// Until its first turn Java is still loading classes.
		holds = holds[slices.IndexFunc(holds, func(h span) bool { return h.side == java })+1:]
		turns, late := turnsOf(holds, max(hold, turn)), lateFor(holds)
		var waits []time.Duration
		overtaken, most := 0, 0
		for i, h := range holds {
			if h.side == java {
				n := len(whileWaiting(turns, holds[i:i+1]))
				waits, overtaken, most = append(waits, h.granted.Sub(h.asked)), overtaken+n, max(most, n)
			}
		}
		check(len(waits) >= 3, "Java got the lock %d times", len(waits)+1)
		s.addFigure("with holds of %s: Java %d, and Go %d turns, of which %d began while Java waited; Java's wait %s, and %d times too late",
			inMS(hold), len(waits), countsOf(turns)["Go"], overtaken, quantiles(waits), late)
		if overtaken-most <= 2*(len(waits)-1)+late {
			return ""
		}
		return fmt.Sprintf("Java waited for too many turns: %d, of which %d in one wait", overtaken, most)
	})
}

// forEachHold measures with holds of several lengths, and fails with the text that measure returns. It measures up to
// three times: on a busy machine the scheduler may be unfair once, but an unfair lock is unfair every time.
func forEachHold(measure func(hold time.Duration) (wrong string)) {
	for _, hold := range []time.Duration{20 * time.Millisecond, 2 * time.Millisecond, 0} {
		wrong := measure(hold)
		for tries := 1; wrong != "" && tries < 3; tries++ {
			wrong = measure(hold)
		}
		check(wrong == "", "with holds of %v: %s", hold, wrong)
	}
}

// contender is a process in which threads acquire the lock.
type contender struct {
	name    string
	side    side
	driver  *driver
	threads int
}

// span is one hold.
type span struct {
	side                 side
	name                 string
	asked, granted, left time.Time
}

// takeTurns makes the processes acquire the lock again and again for the time lasts, and keep it for hold.
func (s *env) takeTurns(hold, lasts time.Duration, contenders []contender) (holds []span) {
	key := s.name + ":holds"
	defer s.remove(key)
	byName := map[string]side{}
	for _, t := range contenders { // the processes must have started
		s.thread("hello", t.side, t.driver).begin("hello").within(4 * timeout)
		byName[t.name] = t.side
	}
	until := time.Now().Add(lasts).UnixMicro()
	var taking []*request
	for _, t := range contenders {
		for i := range t.threads {
			taking = append(taking, s.thread(fmt.Sprint("contender", i), t.side, t.driver).begin("take",
				"key="+key, "as="+t.name, fmt.Sprint("hold=", hold.Milliseconds()), fmt.Sprint("until=", until)))
		}
	}
	for _, r := range taking {
		r.await()
	}
	list, err := s.redis.Do(s.ctx, s.redis.B().Lrange().Key(key).Start(0).Stop(-1).Build()).AsStrSlice()
	try(err)
	for _, text := range list {
		var name string
		var asked, granted, left int64
		_, err := fmt.Sscan(text, &name, &asked, &granted, &left)
		try(err)
		holds = append(holds, span{byName[name], name, time.UnixMicro(asked), time.UnixMicro(granted), time.UnixMicro(left)})
	}
	return holds
}

// turnsOf returns the holds that begin a turn: those after a hold of another process, and those granted at least
// lasts after the start of the last turn.
func turnsOf(holds []span, lasts time.Duration) (turns []span) {
	for i, h := range holds {
		if i == 0 || holds[i-1].name != h.name || h.granted.Sub(turns[len(turns)-1].granted) >= lasts {
			turns = append(turns, h)
		}
	}
	return turns
}

func countsOf(turns []span) map[string]int {
	counts := map[string]int{}
	for _, h := range turns {
		counts[h.name]++
	}
	return counts
}

// whileWaiting returns the turns of Go that began while a thread of Java waited.
func whileWaiting(turns, holds []span) (beside []span) {
	for _, t := range turns {
		if t.side == golang && slices.ContainsFunc(holds, func(h span) bool {
			return h.side == java && h.asked.Before(t.granted) && t.granted.Before(h.granted)
		}) {
			beside = append(beside, t)
		}
	}
	return beside
}

// lateFor is how often the lock was left to Java and Java came too late.
func lateFor(holds []span) (late int) {
	for _, took := range handOvers(holds, golang, golang) {
		if took >= openTime {
			late++
		}
	}
	return late
}

// handOvers are the times from the end of a hold of one side to the next hold, if that is of the side to.
func handOvers(holds []span, from, to side) (took []time.Duration) {
	for i := 1; i < len(holds); i++ {
		if holds[i-1].side == from && holds[i].side == to {
			took = append(took, holds[i].granted.Sub(holds[i-1].left))
		}
	}
	return took
}
