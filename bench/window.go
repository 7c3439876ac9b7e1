package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// window measures time, CPU and commands while body runs; a CPU profile covers it, and a heap
// profile shows its end.
func (t *task) window(c candidate, body func()) (r report, err error) {
	var before usage
	if t.Index == 0 {
		if before, err = readUsage(t.Near, c.sends); err != nil {
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
		after, err := readUsage(t.Near, c.sends)
		if err != nil {
			return r, err
		}
		r.Redis = after.since(before)
	}
	r.Goroutines = runtime.NumGoroutine()
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

func clientCPU() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		fail(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// now is a clock that all processes share.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		fail(err)
	}
	return ts.Nano()
}

// memory is the memory of a process, in megabytes.
type memory struct {
	RSS  float64 // resident, including garbage
	Heap float64 // live heap and stacks
}

// readMemory reads the resident set before it collects garbage.
func readMemory() (m memory) {
	b, err := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(b)); err == nil && len(fields) > 1 {
		pages, _ := strconv.Atoi(fields[1])
		m.RSS = float64(pages*os.Getpagesize()) / 1e6
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	m.Heap = float64(stats.HeapAlloc+stats.StackInuse) / 1e6
	return m
}
