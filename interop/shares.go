package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// turn is how long a process may keep a lock for its own waiters: Lockkeeper's hand-off limit,
	// and how much later the last grant may be seen that it allows. What lasts longer is two turns.
	turn = 6 * time.Millisecond
	// openTime is for how long Lockkeeper leaves a free lock to Redisson, now and then.
	openTime = 10 * time.Millisecond
)

// shares: three processes of Go and one of Java want the lock all the time, in four threads each,
// and get the same number of turns. Go's transfer the lock to each other, so Java would starve if
// it were not left to those outside the line now and then. On a busy machine Java may come too late, or not
// ask for a while: that it was left to Java counts here, and what Go has while Java does not wait is no matter to Java.
func shares(s *scene) {
	takers := []taker{{"Java", java, s.driver(java, s.kind.watchdog(), 0), 4}}
	for i := range 3 {
		takers = append(takers, taker{fmt.Sprint("Go", i+1), golang, s.driver(golang, s.kind.watchdog(), i), 4})
	}
	written := takers[0].driver.stderr.String()
	forEachHold(func(hold time.Duration) string {
		holds := s.take(hold, time.Duration(s.times(1500, 1000))*time.Millisecond, takers)
		turns, late := turnsOf(holds, max(hold, turn)), lateFor(holds)
		counts, beside := countsOf(turns), countsOf(whileWaiting(turns, holds))
		each, fewest, overtaken := []string{fmt.Sprintf("Java %d", counts["Java"])}, counts["Go1"], 0
		most := counts["Java"]
		for _, t := range takers[1:] {
			each = append(each, fmt.Sprintf("%s %d", t.name, counts[t.name]))
			fewest, most, overtaken = min(fewest, counts[t.name]), max(most, counts[t.name]), max(overtaken, beside[t.name])
		}
		came := handOvers(holds, golang, java)
		check(len(came) > 0, "Java never had the lock after Go")
		s.tell("turns with holds of %s: %s; Java in %s after Go, and %d times too late", inMS(hold), strings.Join(each, ", "), quantiles(came), late)
		// Those who were about to have theirs at the end have two less.
		if 2*most <= 3*(fewest+2) && 2*overtaken <= 3*(counts["Java"]+late+2) {
			return ""
		}
		return fmt.Sprintf("some have much less than others; while Java waited, one of Go's had %d", overtaken)
	})
	complaints := strings.TrimPrefix(takers[0].driver.stderr.String(), written)
	check(complaints == "", "Java complains: %s", complaints)
}

// beside: one thread of Java wants the lock again and again, and so do four goroutines of a process, which
// hand it to each other in memory. While Java waits, one turn of theirs begins, for which they have waited
// while Java had the lock; and on a busy machine one more before Java is seen to wait, and for each time that it comes
// too late. The wait in which most turns began does not count: Java may stand still once before it is seen to wait. What
// they have while Java asks for nothing is no matter: it may be waiting for replicas.
func beside(s *scene) {
	takers := []taker{{"Java", java, s.driver(java, s.kind.watchdog(), 0), 1}, {"Go", golang, s.driver(golang, s.kind.watchdog(), 0), 4}}
	forEachHold(func(hold time.Duration) string {
		holds := s.take(hold, time.Duration(s.times(3000, 1000))*time.Millisecond, takers)
		// Before its first turn Java is still loading what it takes.
		holds = holds[slices.IndexFunc(holds, func(h had) bool { return h.side == java })+1:]
		turns, late := turnsOf(holds, max(hold, turn)), lateFor(holds)
		var waits []time.Duration
		overtaken, most := 0, 0
		for i, h := range holds {
			if h.side == java {
				n := len(whileWaiting(turns, holds[i:i+1]))
				waits, overtaken, most = append(waits, h.granted.Sub(h.asked)), overtaken+n, max(most, n)
			}
		}
		check(len(waits) >= 3, "Java had the lock %d times", len(waits)+1)
		s.tell("with holds of %s: Java %d, and Go %d turns, of which %d began while Java waited; Java's wait %s, and %d times too late",
			inMS(hold), len(waits), countsOf(turns)["Go"], overtaken, quantiles(waits), late)
		if overtaken-most <= 2*(len(waits)-1)+late {
			return ""
		}
		return fmt.Sprintf("Java waited for too many turns: %d, of which %d in one wait", overtaken, most)
	})
}

// forEachHold measures with holds of several lengths, and fails with what measure says is wrong. It measures up to
// three times: who has the processor on a busy machine may be unfair once, but a lock that is unfair is so always.
func forEachHold(measure func(hold time.Duration) (wrong string)) {
	for _, hold := range []time.Duration{20 * time.Millisecond, 2 * time.Millisecond, 0} {
		wrong := measure(hold)
		for tries := 1; wrong != "" && tries < 3; tries++ {
			wrong = measure(hold)
		}
		check(wrong == "", "with holds of %v: %s", hold, wrong)
	}
}

// taker is a process in which so many threads take the lock.
type taker struct {
	name    string
	side    side
	driver  *driver
	threads int
}

// had is one hold.
type had struct {
	side                 side
	name                 string
	asked, granted, left time.Time
}

// take has the processes take the lock again and again for some time, and keep it for that long.
func (s *scene) take(hold, lasts time.Duration, takers []taker) (holds []had) {
	key := s.name + ":holds"
	defer s.remove(key)
	byName := map[string]side{}
	for _, t := range takers { // those who start have to be there
		s.thread("hello", t.side, t.driver).begin("hello").within(4 * patience)
		byName[t.name] = t.side
	}
	until := time.Now().Add(lasts).UnixMicro()
	var taking []*request
	for _, t := range takers {
		for i := range t.threads {
			taking = append(taking, s.thread(fmt.Sprint("taker", i), t.side, t.driver).begin("take",
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
		holds = append(holds, had{byName[name], name, time.UnixMicro(asked), time.UnixMicro(granted), time.UnixMicro(left)})
	}
	return holds
}

// turnsOf gives the holds that begin a turn: if another process had the lock before, or if the last turn began
// that long ago.
func turnsOf(holds []had, lasts time.Duration) (turns []had) {
	for i, h := range holds {
		if i == 0 || holds[i-1].name != h.name || h.granted.Sub(turns[len(turns)-1].granted) >= lasts {
			turns = append(turns, h)
		}
	}
	return turns
}

func countsOf(turns []had) map[string]int {
	counts := map[string]int{}
	for _, h := range turns {
		counts[h.name]++
	}
	return counts
}

// whileWaiting gives the turns of Go that began while a thread of Java waited.
func whileWaiting(turns, holds []had) (beside []had) {
	for _, t := range turns {
		if t.side == golang && slices.ContainsFunc(holds, func(h had) bool {
			return h.side == java && h.asked.Before(t.granted) && t.granted.Before(h.granted)
		}) {
			beside = append(beside, t)
		}
	}
	return beside
}

// lateFor is how often the lock was left to Java, which came too late.
func lateFor(holds []had) (late int) {
	for _, took := range handOvers(holds, golang, golang) {
		if took >= openTime {
			late++
		}
	}
	return late
}

// handOvers are the times from the end of a side's hold to the next one, if that is the other's, or its own.
func handOvers(holds []had, from, to side) (took []time.Duration) {
	for i := 1; i < len(holds); i++ {
		if holds[i-1].side == from && holds[i].side == to {
			took = append(took, holds[i].granted.Sub(holds[i-1].left))
		}
	}
	return took
}
