package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A scenario is how locks are used: by so many processes with so many goroutines each.
type scenario struct {
	title      string
	processes  int
	goroutines int
	oneKey     bool // contended for by all, and not a key for each goroutine
	pinned     bool // client and Redis share one core
	headline   headline
	run        func(*task, candidate, library, scenario) (report, error)
}

var scenarios = map[string]scenario{
	"s1": {title: "one goroutine, one key, on one core", processes: 1, goroutines: 1, pinned: true, headline: rate, run: (*task).pairs},
	"s2": {title: "1000 goroutines, 1000 keys", processes: 1, goroutines: 1000, headline: rate, run: (*task).pairs},
	"s3": {title: "64 goroutines on one key", processes: 1, goroutines: 64, oneKey: true, headline: rate, run: (*task).pairs},
	"s4": {title: "4 processes with 16 goroutines each on one key", processes: 4, goroutines: 16, oneKey: true, headline: rate, run: (*task).pairs},
	"s5": {title: "10,000 locks held", processes: 1, goroutines: 64, headline: commands, run: (*task).holdMany},
	"s6": {title: "release in one process to grant in another", processes: 2, goroutines: 1, oneKey: true, headline: latency, run: (*task).handOver},
}

const (
	lease     = 6 * time.Second
	heldLocks = 10_000
	patience  = 3 * time.Second // for goroutines that still wait when the time is over
)

// A task is what one child process does.
type task struct {
	Scenario, Lib, Addr, Profile string
	Index                        int
	Seconds                      float64

	shared *shared
}

// shared is memory that the processes of one measurement have in common.
type shared struct {
	ready    atomic.Int64 // processes that are connected
	holder   atomic.Int64 // processes that hold the one key
	round    atomic.Int64 // s6: the hand-over that was prepared; negative at the end
	released atomic.Int64 // s6: when the lock was released, on the clock of now
	done     atomic.Int64 // s6: the hand-over that was seen
}

// A report is what a child found out.
type report struct {
	Seconds    float64
	Grants     []int // of each goroutine
	Times      histogram
	ClientCPU  float64 // seconds
	Redis      usage
	Stuck      int // goroutines that still waited for the lock after the end
	RSS        float64
	Goroutines int
}

func (t *task) span(factor float64) time.Duration {
	return time.Duration(t.Seconds * factor * float64(time.Second))
}

func clientCPU() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		fail(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// now is the same in all processes.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		fail(err)
	}
	return ts.Nano()
}

// run connects, waits for the other processes, and writes the report to the standard output.
func (t *task) run() error {
	memory, err := unix.Mmap(3, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	t.shared = (*shared)(unsafe.Pointer(&memory[0]))
	c, err := find(t.Lib)
	if err != nil {
		return err
	}
	s := scenarios[t.Scenario]
	lib, err := c.open(t.Addr, lease, s.oneKey)
	if err != nil {
		return err
	}
	t.shared.ready.Add(1)
	for t.shared.ready.Load() < int64(s.processes) {
		time.Sleep(time.Millisecond)
	}
	r, err := s.run(t, c, lib, s)
	if err != nil {
		return err
	}
	return writeReport(r)
}

// window measures what happens while body runs: time, CPU, commands; a CPU profile
// covers it, and a heap profile shows its end.
func (t *task) window(c candidate, body func()) (r report, err error) {
	var before usage
	if t.Index == 0 {
		if before, err = readUsage(t.Addr, c.sends); err != nil {
			return r, err
		}
	}
	path := func(kind string) string {
		return filepath.Join(t.Profile, fmt.Sprintf("%s-%s-%d.%s.prof", t.Scenario, t.Lib, t.Index, kind))
	}
	if t.Profile != "" {
		f, err := os.Create(path("cpu"))
		if err != nil {
			return r, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return r, err
		}
	}
	start, cpu := time.Now(), clientCPU()
	body()
	r.Seconds, r.ClientCPU = time.Since(start).Seconds(), clientCPU()-cpu
	if t.Index == 0 {
		after, err := readUsage(t.Addr, c.sends)
		if err != nil {
			return r, err
		}
		r.Redis = after.since(before)
	}
	r.RSS, r.Goroutines = residentMB(), runtime.NumGoroutine()
	if t.Profile != "" {
		pprof.StopCPUProfile()
		f, err := os.Create(path("heap"))
		if err != nil {
			return r, err
		}
		defer f.Close()
		runtime.GC()
		return r, pprof.WriteHeapProfile(f)
	}
	return r, nil
}

func residentMB() float64 {
	b, err := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(b)); err == nil && len(fields) > 1 {
		pages, _ := strconv.Atoi(fields[1])
		return float64(pages*os.Getpagesize()) / 1e6
	}
	return 0
}

// pairs has every goroutine lock and unlock its key, or the one key, again and again.
// The times are those of a pair where there is no contention, else those of the wait.
func (t *task) pairs(c candidate, lib library, s scenario) (report, error) {
	const (
		warmUp = iota
		counting
		over
	)
	var (
		phase atomic.Int32
		left  atomic.Int64
		work  sync.WaitGroup
	)
	grants, times := make([]int, s.goroutines), make([]histogram, s.goroutines)
	left.Store(int64(s.goroutines))
	for i := range s.goroutines {
		key := "bench"
		if !s.oneKey {
			key = fmt.Sprintf("bench%d", i)
		}
		work.Go(func() {
			defer left.Add(-1)
			for phase.Load() != over {
				start := time.Now()
				release, err := lib.acquire(key)
				if err != nil {
					fail(err)
				}
				took := time.Since(start)
				if s.oneKey && t.shared.holder.Add(1) != 1 {
					fail(fmt.Errorf("%s let two in at once", t.Lib))
				}
				if s.oneKey {
					t.shared.holder.Add(-1)
				}
				if err := release(); err != nil {
					fail(err)
				}
				if !s.oneKey {
					took = time.Since(start)
				}
				if phase.Load() == counting {
					grants[i]++
					times[i].add(took)
				}
			}
		})
	}
	time.Sleep(t.span(0.25))
	phase.Store(counting)
	r, err := t.window(c, func() { time.Sleep(t.span(1)) })
	phase.Store(over)
	if err != nil {
		return r, err
	}
	ended := make(chan struct{})
	go func() { work.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(patience):
		r.Stuck = int(left.Load()) // they count nothing any more
	}
	r.Grants = grants
	for i := range times {
		r.Times.merge(&times[i])
	}
	return r, nil
}

// holdMany takes many locks, and measures what it costs to keep them. The rate is
// that of taking them.
func (t *task) holdMany(c candidate, lib library, s scenario) (report, error) {
	var work sync.WaitGroup
	start := time.Now()
	for i := range s.goroutines {
		work.Go(func() {
			for n := i; n < heldLocks; n += s.goroutines {
				if err := lib.hold(fmt.Sprintf("bench%d", n)); err != nil {
					fail(err)
				}
			}
		})
	}
	work.Wait()
	filled := time.Since(start)
	time.Sleep(min(lease/2, t.span(2))) // until the renewals go round
	span := t.span(10)
	if span > lease/2 {
		span = max(span.Round(lease), lease) // whole intervals of renewal, be they a half or a third of the lease
	}
	r, err := t.window(c, func() { time.Sleep(span) })
	r.Grants = []int{int(heldLocks / filled.Seconds() * r.Seconds)}
	return r, err
}

// handOver has the first process hold the lock until the second waits for it, and
// then release it, again and again.
func (t *task) handOver(c candidate, lib library, _ scenario) (report, error) {
	const warmUp = 10
	var times histogram
	seen, stuck := 0, 0
	await := func(what *atomic.Int64, n int64) bool {
		for start := time.Now(); what.Load() != n; {
			if t.shared.round.Load() < 0 || time.Since(start) > patience {
				return false
			}
			time.Sleep(200 * time.Microsecond)
		}
		return true
	}
	lock := func() func() {
		release, err := lib.acquire("bench")
		if err != nil {
			fail(err)
		}
		return func() {
			if err := release(); err != nil {
				fail(err)
			}
		}
	}
	r, err := t.window(c, func() {
		if t.Index == 1 {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for n := int64(1); await(&t.shared.round, n); n++ {
					release := lock()
					took := time.Duration(now() - t.shared.released.Load())
					release()
					seen++
					if n > warmUp {
						times.add(took)
					}
					t.shared.done.Store(n)
				}
			}()
			for t.shared.round.Load() >= 0 {
				time.Sleep(20 * time.Millisecond)
			}
			select {
			case <-ended:
			case <-time.After(50 * time.Millisecond): // stuck in acquire
			}
			return
		}
		end := time.Now().Add(t.span(3))
		for n := int64(1); time.Now().Before(end) || n <= warmUp+1; n++ {
			release := lock()
			t.shared.round.Store(n)
			time.Sleep(time.Duration(5+rand.IntN(10)) * time.Millisecond)
			t.shared.released.Store(now())
			release()
			time.Sleep(2 * time.Millisecond)
			if !await(&t.shared.done, n) {
				stuck = 1
				break
			}
		}
		t.shared.round.Store(-1)
	})
	r.Times, r.Grants, r.Stuck = times, []int{seen}, stuck
	return r, err
}
