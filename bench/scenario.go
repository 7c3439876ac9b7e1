package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// A scenario is how locks are used: by so many processes with so many goroutines each.
type scenario struct {
	name, title string
	// section is what scenarios have in common that are variants of one, and make one table;
	// the name, if empty.
	section      string
	processes    int
	goroutines   int
	kind         kind
	oneKey       bool          // contended for by all, and not a key for each goroutine
	pinned       bool          // client and Redis share one core
	away         bool          // from Redis, by a proxy that delays
	distance     time.Duration // s14, s15: each way from the last process to Redis; the others are beside it
	shares       string        // s17: the kind's name
	work         time.Duration // done under the lock
	size         int           // locks held, or requests that wait
	permits      int           // of the semaphore
	handOffLimit time.Duration // of Lockkeeper; 0 is the default
	meter        metric.Meter  // of Lockkeeper
	stretch      float64       // measured for so many times -seconds; 0 is once
	libs         []string      // those that can take part
	columns      []figure      // of its table; the first compares the libraries
	bars         int           // how many of the columns are drawn
	run          func(*task, candidate, library, scenario) (report, error)
}

// kind is that of the locks.
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

// theKey is what all contend for who contend.
const theKey = "bench"

const (
	lease    = 6 * time.Second
	patience = 3 * time.Second // for goroutines that still wait when the time is over
)

var (
	peers = []string{"rueidislock", "redsync", "redsync-goredis", "redislock", "go-zero"}
	// free are for locks that are free, contended for those that are waited for.
	free      = append([]string{ours, limit}, peers...)
	contended = append([]string{ours, limit, limitQueue}, peers...)
	// The same with actors as users.
	actorsFree      = append([]string{ours, oursByMessage, oursMetered, limit}, peers...)
	actorsContended = append([]string{ours, oursByMessage, oursMetered, limit, limitQueue}, peers...)
	semaphores      = []string{ours, limit, "recipe-set", "recipe-list"}
)

var scenarios = slices.Concat([]scenario{
	{
		name: "s1", title: "one goroutine, one key, on one core",
		processes: 1, goroutines: 1, pinned: true,
		libs: actorsFree, columns: pairColumns, bars: 1, run: (*task).pairs,
	},
	{
		name: "s2", title: "1000 goroutines, 1000 keys",
		processes: 1, goroutines: 1000,
		libs: actorsFree, columns: pairColumns, bars: 1, run: (*task).pairs,
	},
	{
		name: "s3", title: "64 goroutines on one key",
		processes: 1, goroutines: 64, oneKey: true,
		libs: actorsContended, columns: waitColumns, bars: 2, run: (*task).pairs,
	},
	{
		name: "s4", title: "4 processes with 16 goroutines each on one key",
		processes: 4, goroutines: 16, oneKey: true,
		libs: actorsContended, columns: waitColumns, bars: 2, run: (*task).pairs,
	},
	{
		name: "s5", title: "10,000 locks held",
		processes: 1, goroutines: 64, size: 10_000, stretch: 10,
		libs: actorsFree, columns: heldColumns, bars: 2, run: (*task).holdMany,
	},
	{
		name: "s6", title: "release in one process to grant in another",
		processes: 2, goroutines: 1, oneKey: true, stretch: 3,
		libs: actorsContended, columns: handOverColumns, bars: 2, run: (*task).handOver,
	},
	{
		name: "s7-keys", title: "fenced: 1000 goroutines, 1000 keys",
		processes: 1, goroutines: 1000, kind: fenced,
		libs: []string{ours, limit}, columns: pairColumns, bars: 1, run: (*task).pairs,
	},
	{
		name: "s7-one", title: "fenced: 64 goroutines on one key",
		processes: 1, goroutines: 64, kind: fenced, oneKey: true,
		libs: []string{ours, limit}, columns: waitColumns, bars: 2, run: (*task).pairs,
	},
	{
		name: "s8", title: "read/write, 90 % reads: 64 goroutines on one key",
		processes: 1, goroutines: 64, kind: readWrite, oneKey: true,
		libs: []string{ours, limit}, columns: readWriteColumns, bars: 3, run: (*task).pairs,
	},
	{
		name: "s8x4", title: "read/write, 90 % reads: 4 processes with 16 goroutines each on one key",
		processes: 4, goroutines: 16, kind: readWrite, oneKey: true,
		libs: []string{ours, limit}, columns: readWriteColumns, bars: 3, run: (*task).pairs,
	},
	{
		name: "s9", title: "fair: 4 processes with 16 goroutines each on one key",
		processes: 4, goroutines: 16, kind: fair, oneKey: true,
		libs: []string{ours, limitQueue}, columns: waitColumns, bars: 2, run: (*task).pairs,
	},
}, growth(), []scenario{
	{
		name: "s11-1ms", title: "1 ms of work under the lock, 4 processes with 16 goroutines each on one key",
		processes: 4, goroutines: 16, oneKey: true, work: time.Millisecond, stretch: 2,
		libs: contended, columns: workColumns, bars: 3, run: (*task).pairs,
	},
	{
		name: "s11-10ms", title: "10 ms of work under the lock, 4 processes with 16 goroutines each on one key",
		processes: 4, goroutines: 16, oneKey: true, work: 10 * time.Millisecond, stretch: 5,
		libs: contended, columns: workColumns, bars: 3, run: (*task).pairs,
	},
	{
		name: "s12-s1", title: "Redis 1 ms away: one goroutine, one key",
		processes: 1, goroutines: 1, away: true,
		libs: free, columns: pairColumns, bars: 2, run: (*task).pairs,
	},
	{
		name: "s12-s2", title: "Redis 1 ms away: 1000 goroutines, 1000 keys",
		processes: 1, goroutines: 1000, away: true,
		libs: free, columns: pairColumns, bars: 1, run: (*task).pairs,
	},
	{
		name: "s12-s3", title: "Redis 1 ms away: 64 goroutines on one key",
		processes: 1, goroutines: 64, oneKey: true, away: true,
		libs: contended, columns: waitColumns, bars: 2, run: (*task).pairs,
	},
}, handOffLimits(), distances(), crowds(), shares(), []scenario{
	{
		name: "s16", title: "a semaphore of 10 permits, 64 goroutines",
		processes: 1, goroutines: 64, kind: semaphore, oneKey: true, permits: 10,
		libs: semaphores, columns: waitColumns, bars: 2, run: (*task).pairs,
	},
	{
		name: "s16x4", title: "a semaphore of 10 permits, 4 processes with 16 goroutines each",
		processes: 4, goroutines: 16, kind: semaphore, oneKey: true, permits: 10,
		libs: semaphores, columns: waitColumns, bars: 2, run: (*task).pairs,
	},
})

// growth is s10: ever more locks that are held, and ever more requests that wait.
func growth() (list []scenario) {
	for n := 1; n <= 100_000; n *= 10 {
		list = append(list, scenario{
			name: fmt.Sprintf("s10-held-%d", n), section: "s10-held", title: "growth: locks held",
			processes: 1, goroutines: 64, size: n, stretch: 4,
			libs: []string{ours, limit}, columns: growthColumns, bars: len(growthColumns), run: (*task).holdMany,
		})
	}
	for n := 1; n <= 100_000; n *= 10 {
		list = append(list, scenario{
			name: fmt.Sprintf("s10-waiting-%d", n), section: "s10-waiting", title: "growth: requests that wait for one lock, which another process holds",
			processes: 2, goroutines: 1, oneKey: true, size: n, stretch: 4,
			libs: []string{ours, limitQueue}, columns: growthColumns, bars: len(growthColumns), run: (*task).waitMany,
		})
	}
	return list
}

// handOffLimits is s13: how long a process may pass the lock on before the others have it.
func handOffLimits() (list []scenario) {
	for _, ms := range []int{1, 2, 5, 10, 20, 50} {
		list = append(list, scenario{
			name: fmt.Sprintf("s13-%dms", ms), section: "s13", title: "the hand-off limit: 4 processes with 16 goroutines each on one key",
			processes: 4, goroutines: 16, oneKey: true, handOffLimit: time.Duration(ms) * time.Millisecond,
			libs: []string{ours}, columns: waitColumns, bars: 2, run: (*task).pairs,
		})
	}
	return list
}

// grows says that the scenario is one size of several.
func (s scenario) grows() bool { return s.section != "" && s.size > 0 }

// variant is what makes it another than the others of its section; empty without others.
func (s scenario) variant() string {
	switch {
	case s.grows():
		return figure{}.text(float64(s.size))
	case s.handOffLimit > 0:
		return s.handOffLimit.String()
	case s.shares != "":
		return s.shares
	case s.odd():
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
			return nil, fmt.Errorf("there is no scenario %q", name)
		}
	}
	return chosen, nil
}
