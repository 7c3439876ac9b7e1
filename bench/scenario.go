package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// A scenario is a workload: processes with goroutines that use locks.
type scenario struct {
	name, title string
	// section is the common name of scenarios that are variants of one, in one table; the
	// name, if empty.
	section      string
	processes    int
	goroutines   int
	kind         kind
	oneKey       bool          // one key for all goroutines, instead of one for each
	fresh        bool          // a new key for each turn
	pinned       bool          // client and Redis share one core
	away         time.Duration // s12: the delay in each direction between all processes and Redis
	distance     time.Duration // s14, s15: the delay in each direction between the last process and Redis; the others have none
	shares       string        // s17: the kind's name
	work         time.Duration // done under the lock
	size         int           // locks held, or waiting requests
	permits      int           // of the semaphore
	systems      int           // s19: of a process; otherwise one
	handOffLimit time.Duration // of Lockkeeper; 0 is the default
	meter        metric.Meter  // of Lockkeeper
	stretch      float64       // a factor of -seconds; 0 is 1
	libs         []string      // the libraries that support it
	columns      []figure      // of its table; the libraries are ranked by the first
	run          func(*task, candidate, library, scenario) (report, error)
}

// kind is the kind of the locks.
type kind int

const (
	plain kind = iota
	fenced
	fair
	readWrite
	write
	multi
	amongReaders // read/write: the last process writes, all others read
	amongWriters // the other way round
	semaphore
)

// theKey is the key of scenarios with oneKey.
const theKey = "bench"

const (
	lease   = 6 * time.Second
	nearby  = 500 * time.Microsecond // the delay of s12
	timeout = 3 * time.Second        // for goroutines that still wait when the measured time is over
)

var (
	peers = []string{"rueidislock", "redsync", "redislock", "go-zero"}
	// free are the libraries for locks without contention, contended those for locks with contention.
	free      = append([]string{ours, limit}, peers...)
	contended = append([]string{ours, limit, limitQueue}, peers...)
	// The same, with actors as users as well.
	actorsFree      = append([]string{ours, oursByMessage, oursMetered, limit}, peers...)
	actorsContended = append([]string{ours, oursByMessage, oursMetered, limit, limitQueue}, peers...)
	semaphores      = []string{ours, limit, "recipe-set", "recipe-list"}
)

var scenarios = slices.Concat([]scenario{
	{
		name: "s1", title: "one goroutine, one key, on one core",
		processes: 1, goroutines: 1, pinned: true,
		libs: actorsFree, columns: pairColumns, run: (*task).pairs,
	},
	{
		name: "s2", title: "1000 goroutines, 1000 keys",
		processes: 1, goroutines: 1000,
		libs: actorsFree, columns: pairColumns, run: (*task).pairs,
	},
	{
		name: "s3", title: "64 goroutines on one key",
		processes: 1, goroutines: 64, oneKey: true,
		libs: actorsContended, columns: waitColumns, run: (*task).pairs,
	},
	{
		name: "s4", title: "4 processes with 16 goroutines each on one key",
		processes: 4, goroutines: 16, oneKey: true,
		libs: actorsContended, columns: waitColumns, run: (*task).pairs,
	},
	{
		name: "s5", title: "10,000 locks held",
		processes: 1, goroutines: 64, size: 10_000, stretch: 10,
		libs: actorsFree, columns: heldColumns, run: (*task).holdMany,
	},
	{
		name: "s6", title: "release in one process to grant in another",
		processes: 2, goroutines: 1, oneKey: true, stretch: 3,
		libs: actorsContended, columns: handOverColumns, run: (*task).handOver,
	},
	{
		name: "s7-keys", title: "fenced: 1000 goroutines, 1000 keys",
		processes: 1, goroutines: 1000, kind: fenced,
		libs: []string{ours, limit}, columns: pairColumns, run: (*task).pairs,
	},
	{
		name: "s7-one", title: "fenced: 64 goroutines on one key",
		processes: 1, goroutines: 64, kind: fenced, oneKey: true,
		libs: []string{ours, limit}, columns: waitColumns, run: (*task).pairs,
	},
	{
		name: "s8", title: "read/write, 90 % reads: 64 goroutines on one key",
		processes: 1, goroutines: 64, kind: readWrite, oneKey: true,
		libs: []string{ours, limit}, columns: readWriteColumns, run: (*task).pairs,
	},
	{
		name: "s8x4", title: "read/write, 90 % reads: 4 processes with 16 goroutines each on one key",
		processes: 4, goroutines: 16, kind: readWrite, oneKey: true,
		libs: []string{ours, limit}, columns: readWriteColumns, run: (*task).pairs,
	},
	{
		name: "s9", title: "fair: 4 processes with 16 goroutines each on one key",
		processes: 4, goroutines: 16, kind: fair, oneKey: true,
		libs: []string{ours, limitQueue}, columns: waitColumns, run: (*task).pairs,
	},
}, growth(), []scenario{
	{
		name: "s11-1ms", title: "1 ms of work under the lock, 4 processes with 16 goroutines each on one key",
		processes: 4, goroutines: 16, oneKey: true, work: time.Millisecond, stretch: 2,
		libs: contended, columns: workColumns, run: (*task).pairs,
	},
	{
		name: "s11-10ms", title: "10 ms of work under the lock, 4 processes with 16 goroutines each on one key",
		processes: 4, goroutines: 16, oneKey: true, work: 10 * time.Millisecond, stretch: 5,
		libs: contended, columns: workColumns, run: (*task).pairs,
	},
	{
		name: "s12-s1", title: "Redis 1 ms away: one goroutine, one key",
		processes: 1, goroutines: 1, away: nearby,
		libs: free, columns: pairColumns, run: (*task).pairs,
	},
	{
		name: "s12-s2", title: "Redis 1 ms away: 1000 goroutines, 1000 keys",
		processes: 1, goroutines: 1000, away: nearby,
		libs: free, columns: pairColumns, run: (*task).pairs,
	},
	{
		name: "s12-s3", title: "Redis 1 ms away: 64 goroutines on one key",
		processes: 1, goroutines: 64, oneKey: true, away: nearby,
		libs: contended, columns: waitColumns, run: (*task).pairs,
	},
}, handOffLimits(), distances(), crowds(), shares(), []scenario{
	{
		name: "s16", title: "a semaphore of 10 permits, 64 goroutines",
		processes: 1, goroutines: 64, kind: semaphore, oneKey: true, permits: 10,
		libs: semaphores, columns: waitColumns, run: (*task).pairs,
	},
	{
		name: "s16x4", title: "a semaphore of 10 permits, 4 processes with 16 goroutines each",
		processes: 4, goroutines: 16, kind: semaphore, oneKey: true, permits: 10,
		libs: semaphores, columns: waitColumns, run: (*task).pairs,
	},
	{
		name: "s18", title: "a new key for each turn, 64 goroutines",
		processes: 1, goroutines: 64, fresh: true, stretch: 5,
		libs: actorsFree, columns: freshColumns, run: (*task).pairs,
	},
}, systems())

// growth is s10: more and more held locks, and more and more waiting requests.
func growth() (list []scenario) {
	for n := 1; n <= 100_000; n *= 10 {
		list = append(list, scenario{
			name: fmt.Sprintf("s10-held-%d", n), section: "s10-held", title: "growth: locks held",
			processes: 1, goroutines: 64, size: n, stretch: 4,
			libs: []string{ours, limit}, columns: growthColumns, run: (*task).holdMany,
		})
	}
	for n := 1; n <= 100_000; n *= 10 {
		list = append(list, scenario{
			name: fmt.Sprintf("s10-waiting-%d", n), section: "s10-waiting", title: "growth: requests that wait for one lock, which another process holds",
			processes: 2, goroutines: 1, oneKey: true, size: n, stretch: 4,
			libs: []string{ours, limitQueue}, columns: growthColumns, run: (*task).waitMany,
		})
	}
	return list
}

// handOffLimits is s13: how long a process may hand the lock off before the others get it.
func handOffLimits() (list []scenario) {
	for _, ms := range []int{1, 2, 5, 10, 20, 50} {
		list = append(list, scenario{
			name: fmt.Sprintf("s13-%dms", ms), section: "s13", title: "the hand-off limit: 4 processes with 16 goroutines each on one key",
			processes: 4, goroutines: 16, oneKey: true, handOffLimit: time.Duration(ms) * time.Millisecond,
			libs: []string{ours}, columns: waitColumns, run: (*task).pairs,
		})
	}
	return list
}

// grows reports whether the scenario is one of several sizes.
func (s scenario) grows() bool { return s.section != "" && s.size > 0 }

// variant is the difference from the other scenarios of its section; empty without others.
func (s scenario) variant() string {
	switch {
	case s.grows():
		return figure{}.text(float64(s.size))
	case s.systems > 0:
		return figure{}.text(float64(s.systems))
	case s.handOffLimit > 0:
		return s.handOffLimit.String()
	case s.shares != "":
		return s.shares
	case s.hasOddProcess():
		return "+" + s.distance.String()
	case s.distance > 0:
		return fmt.Sprintf("%d+%d ms", s.work.Milliseconds(), s.distance.Milliseconds())
	default:
		return ""
	}
}

// in is the section that the scenario belongs to.
func (s scenario) in() string {
	return cmp.Or(s.section, s.name)
}

// choose finds the scenarios of a list of names; s12 is every s12-….
func choose(names string) (chosen []scenario, err error) {
	if names == "" {
		return scenarios, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		found := false
		for _, s := range scenarios {
			if s.name == name || strings.HasPrefix(s.name, name+"-") {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("unknown scenario %q", name)
		}
	}
	return chosen, nil
}
