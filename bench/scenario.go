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
	section    string
	of         string // what the variants differ in
	processes  int
	goroutines int
	kind       kind
	oneKey     bool          // one key for all goroutines, instead of one for each
	fresh      bool          // a new key for each turn
	pinned     bool          // client and Redis share one core
	away       time.Duration // s12, s20: the delay in each direction between all processes and Redis
	size       int           // locks held, or waiting requests
	permits    int           // of the semaphore
	systems    int           // s19: of a process; otherwise one
	linger     time.Duration // of Lockkeeper
	meter      metric.Meter  // of Lockkeeper
	stretch    float64       // a factor of -seconds; 0 is 1
	libs       []string      // the libraries that support it
	columns    []figure      // of its table; the libraries are ranked by the first
	run        func(*task, candidate, library, scenario) (report, error)
}

// kind is the kind of the locks.
type kind int

const (
	plain kind = iota
	fenced
	fair
	write // of a read/write lock
	read
	readWrite // 9 of 10 turns read
	semaphore
	expirable
	multi // a MultiLock of two plain locks
)

func (k kind) String() string {
	return [...]string{"plain", "fenced", "fair", "write", "read", "readwrite", "semaphore", "expirable", "multi"}[k]
}

// theKey is the key of scenarios with oneKey.
const theKey = "bench"

const (
	lease   = 6 * time.Second
	timeout = 3 * time.Second // for goroutines that still wait when the measured time is over
)

var (
	peers = []string{"rueidislock", "redsync", "redislock", "go-zero"}
	// free are the libraries for locks without contention, contended those for locks with contention.
	free       = append([]string{ours, oursByMessage, oursMetered, limit}, peers...)
	contended  = append([]string{ours, oursByMessage, oursMetered, limit, limitQueue}, peers...)
	semaphores = []string{ours, limit, "recipe-set", "recipe-list"}
)

var scenarios = slices.Concat([]scenario{
	{
		name: "s1", title: "one goroutine, one key, on one core",
		processes: 1, goroutines: 1, pinned: true,
		libs: free, columns: pairColumns, run: (*task).pairs,
	},
	{
		name: "s2", title: "1000 goroutines, 1000 keys",
		processes: 1, goroutines: 1000,
		libs: free, columns: pairColumns, run: (*task).pairs,
	},
	{
		name: "s3", title: "64 goroutines on one key",
		processes: 1, goroutines: 64, oneKey: true,
		libs: contended, columns: waitColumns, run: (*task).pairs,
	},
	{
		name: "s4", title: "4 processes with 16 goroutines each on one key",
		processes: 4, goroutines: 16, oneKey: true,
		libs: contended, columns: waitColumns, run: (*task).pairs,
	},
	{
		name: "s5", title: "10,000 locks held",
		processes: 1, goroutines: 64, size: 10_000, stretch: 10,
		libs: free, columns: heldColumns, run: (*task).holdMany,
	},
	{
		name: "s6", title: "release in one process to grant in another",
		processes: 2, goroutines: 1, oneKey: true, stretch: 3,
		libs: contended, columns: handOverColumns, run: (*task).handOver,
	},
	{
		name: "s6-multi", title: "release of a MultiLock of two locks in one process to grant in another",
		processes: 2, goroutines: 1, kind: multi, oneKey: true, stretch: 3,
		libs: []string{ours}, columns: handOverColumns, run: (*task).handOver,
	},
}, growth(), []scenario{
	{
		name: "s12", title: "Redis 1 ms away: 1000 goroutines, 1000 keys",
		processes: 1, goroutines: 1000, away: nearby, stretch: 2,
		libs: []string{ours, limit}, columns: pairColumns, run: (*task).pairs,
	},
}, shares(), []scenario{
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
		libs: free, columns: freshColumns, run: (*task).pairs,
	},
	{
		name: "s20-s1", title: "locks that linger, Redis 1 ms away: one goroutine, one key",
		processes: 1, goroutines: 1, away: nearby, linger: lease / 3,
		libs: free, columns: pairColumns, run: (*task).pairs,
	},
	{
		name: "s20-s2", title: "locks that linger, Redis 1 ms away: 1000 goroutines, 1000 keys",
		processes: 1, goroutines: 1000, away: nearby, linger: lease / 3,
		libs: free, columns: pairColumns, run: (*task).pairs,
	},
	{
		name: "s20-s6", title: "a lock that lingers: acquire in another process to its grant",
		processes: 2, goroutines: 1, oneKey: true, stretch: 3, linger: lease / 3,
		libs: []string{ours}, columns: handOverColumns, run: (*task).handOver,
	},
}, systems(), kinds())

// nearby is the delay in each direction of a Redis that is 1 ms away.
const nearby = 500 * time.Microsecond

// growth is s10: more and more held locks, and more and more waiting requests.
func growth() (list []scenario) {
	for n := 1; n <= 100_000; n *= 10 {
		list = append(list, scenario{
			name: fmt.Sprintf("s10-held-%d", n), section: "s10-held", of: "size", title: "growth: locks held",
			processes: 1, goroutines: 64, size: n, stretch: 4,
			libs: []string{ours, limit}, columns: growthColumns, run: (*task).holdMany,
		})
	}
	for n := 1; n <= 100_000; n *= 10 {
		list = append(list, scenario{
			name: fmt.Sprintf("s10-waiting-%d", n), section: "s10-waiting", of: "size",
			title:     "growth: requests that wait for one lock, which another process holds",
			processes: 2, goroutines: 1, oneKey: true, size: n, stretch: 4,
			libs: []string{ours, limitQueue}, columns: growthColumns, run: (*task).waitMany,
		})
	}
	return list
}

// shares is s17: what each of several processes gets, by the kind of the lock.
func shares() (list []scenario) {
	for _, k := range []kind{plain, fenced, fair, write, readWrite} {
		list = append(list, scenario{
			name: "s17-" + k.String(), section: "s17", of: "kind", title: "equal shares: 3 processes with 4 goroutines each on one key",
			processes: 3, goroutines: 4, kind: k, oneKey: true,
			libs: []string{ours}, columns: shareColumns, run: (*task).pairs,
		})
	}
	return list
}

// kinds is s21: what a pair costs, by the kind of the lock.
func kinds() (list []scenario) {
	for _, k := range []kind{plain, fenced, fair, write, read, expirable} {
		list = append(list, scenario{
			name: "s21-" + k.String(), section: "s21", of: "kind", title: "1000 goroutines, 1000 keys, by kind",
			processes: 1, goroutines: 1000, kind: k,
			libs: []string{ours}, columns: kindColumns, run: (*task).pairs,
		})
	}
	return list
}

// grows reports whether the scenario is one of several sizes.
func (s scenario) grows() bool { return s.section != "" && s.size > 0 }

// variant is the part of the name that differs in the section.
func (s scenario) variant() string { return strings.TrimPrefix(s.name, s.section+"-") }

// in is the section that the scenario belongs to.
func (s scenario) in() string {
	return cmp.Or(s.section, s.name)
}

// choose finds the scenarios of a list of names; s17 is every s17-….
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
