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
// it were not left to those outside the line now and then. On a busy machine Java may come too late;
// that it was left to Java counts here.
func shares(s *scene) {
	takers := []taker{{"Java", java, s.driver(java, s.kind.watchdog(), 0), 4}}
	for i := range 3 {
		takers = append(takers, taker{fmt.Sprint("Go", i+1), golang, s.driver(golang, s.kind.watchdog(), i), 4})
	}
	written := takers[0].driver.stderr.String()
	for _, hold := range []time.Duration{20 * time.Millisecond, 2 * time.Millisecond, 0} {
		holds := s.take(hold, time.Duration(s.times(1500, 1000))*time.Millisecond, takers)
		counts := turnsOf(holds, max(hold, turn))
		var each []string
		var all []int
		for _, t := range takers {
			each = append(each, fmt.Sprintf("%s %d", t.name, counts[t.name]))
			all = append(all, counts[t.name])
		}
		late := 0
		for _, took := range handOvers(holds, golang, golang) {
			if took >= openTime {
				late++
			}
		}
		all[0] = min(all[0]+late, slices.Max(all))
		s.tell("turns with holds of %s: %s; Java in %s after Go, and %d times too late", inMS(hold), strings.Join(each, ", "), quantiles(handOvers(holds, golang, java)), late)
		// Those who were about to have theirs at the end have two less.
		check(2*slices.Max(all) <= 3*(slices.Min(all)+2), "with holds of %v some have much less than others", hold)
	}
	complaints := strings.TrimPrefix(takers[0].driver.stderr.String(), written)
	check(complaints == "", "Java complains: %s", complaints)
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
	side          side
	name          string
	granted, left time.Time
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
		var granted, left int64
		_, err := fmt.Sscan(text, &name, &granted, &left)
		try(err)
		holds = append(holds, had{byName[name], name, time.UnixMicro(granted), time.UnixMicro(left)})
	}
	return holds
}

// turnsOf counts the turns of each process: a hold begins one if another process had the lock
// before, or if the last one began that long ago.
func turnsOf(holds []had, lasts time.Duration) map[string]int {
	counts, began := map[string]int{}, time.Time{}
	for i, h := range holds {
		if i == 0 || holds[i-1].name != h.name || h.granted.Sub(began) >= lasts {
			counts[h.name]++
			began = h.granted
		}
	}
	return counts
}

// handOvers are the times from the end of a process's hold to the next one, which is another's.
func handOvers(holds []had, from, to side) (took []time.Duration) {
	for i := 1; i < len(holds); i++ {
		if holds[i-1].side == from && holds[i].side == to && holds[i-1].name != holds[i].name {
			took = append(took, holds[i].granted.Sub(holds[i-1].left))
		}
	}
	check(len(took) > 0, "%s never had the lock after %s", to.name, from.name)
	return took
}
