package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// holdMany acquires many locks, and measures the cost of holding them. The rate is the rate of the acquires.
func (t *task) holdMany(c candidate, lib library, s scenario) (report, error) {
	var work sync.WaitGroup
	before := readMemory()
	start := time.Now()
	for i := range s.goroutines {
		work.Go(func() {
			for n := i; n < s.size; n += s.goroutines {
				if err := lib.hold(fmt.Sprintf("%s%d", theKey, n)); err != nil {
					fail(err)
				}
			}
		})
	}
	work.Wait()
	filled := time.Since(start)
	time.Sleep(min(lease/2, t.span(2))) // until the renewals are under way
	r, err := t.window(c, func() { time.Sleep(t.intervals()) })
	r.Before, r.Memory = before, readMemory()
	r.Grants = []int{int(float64(s.size) / filled.Seconds() * r.Seconds)}
	if checker, ok := lib.(checker); ok && err == nil {
		err = checker.check()
	}
	return r, err
}

// A checker is a library that reports a lost lock only when check is called.
type checker interface{ check() error }

// intervals is a whole number of renewal intervals, for intervals of a half or a third of the
// lease, if the time allows it.
func (t *task) intervals() time.Duration {
	span := t.span(1)
	if span > lease/2 {
		return max(span.Round(lease), lease)
	}
	return span
}

// waitMany makes the second process hold the lock and many goroutines of the first one wait for it, and measures the
// cost of waiting. The rate is the rate at which goroutines start to wait.
func (t *task) waitMany(c candidate, lib library, s scenario) (report, error) {
	if t.Index == 1 {
		if err := lib.hold(theKey); err != nil {
			return report{}, err
		}
		t.shared.round.Store(1)
		for t.shared.round.Load() > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		return report{}, nil
	}
	for t.shared.round.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	before := readMemory()
	start := time.Now()
	var begun atomic.Int64
	for range s.size {
		go func() {
			begun.Add(1)
			_, err := lib.acquire(theKey)
			fail(fmt.Errorf("%s granted a lock that another process holds, or refused to wait: %v", t.Lib, err))
		}()
	}
	for begun.Load() < int64(s.size) {
		time.Sleep(time.Millisecond)
	}
	joined := time.Since(start)
	t.calm()
	r, err := t.window(c, func() { time.Sleep(t.intervals()) })
	r.Before, r.Memory = before, readMemory()
	r.Grants = []int{int(float64(s.size) / joined.Seconds() * r.Seconds)}
	t.shared.round.Store(-1)
	return r, err
}

// calm waits until the process is nearly idle.
func (t *task) calm() {
	const step = 100 * time.Millisecond
	for range 100 {
		before := clientCPU()
		time.Sleep(step)
		if clientCPU()-before < step.Seconds()/20 {
			return
		}
	}
}
