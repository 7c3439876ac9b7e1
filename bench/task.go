package main

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A task is the work of one child process.
type task struct {
	Scenario, Lib, Profile string
	Addr                   string   // of Redis, for the library
	Near                   []string // of all servers, for the measuring
	Index                  int
	Seconds                float64

	shared *shared
}

// shared is the shared memory of the processes of one measurement.
type shared struct {
	ready    atomic.Int64 // processes that are connected
	holders  atomic.Int64 // holders of the one key: readers count 1, writers count writer
	round    atomic.Int64 // s6: the number of the prepared hand-over; s10: 1 when the lock is held; negative at the end
	released atomic.Int64 // s6: when the lock was released, on the clock of now
	done     atomic.Int64 // s6: the number of the finished hand-over
}

// writer is what an exclusive holder adds to shared.holders.
const writer = 1 << 32

// A report is the results of a child process.
type report struct {
	Seconds    float64
	Grants     []int // of each goroutine; nil if the process takes no part in the figures
	Times      histogram
	ClientCPU  float64 // seconds
	Redis      usage
	Stuck      int // goroutines that still waited for the lock after the end
	Memory     memory
	Before     memory // s5, s10: when nothing was locked yet
	Goroutines int
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
	chosen, err := choose(t.Scenario)
	if err != nil {
		return err
	}
	s := chosen[0]
	lib, err := c.open(t.Addr, lease, s)
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

// span is the time of one measurement, times factor.
func (t *task) span(factor float64) time.Duration {
	return time.Duration(t.Seconds * factor * float64(time.Second))
}
