package main

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// handOver makes the first process hold the lock until the second waits for it, and
// then release it, again and again. If locks linger, it releases the lock first, and the second process has to ask for
// it.
func (t *task) handOver(c candidate, lib library, s scenario) (report, error) {
	const warmUp = 10
	var times histogram
	seen, stuck := 0, 0
	await := func(what *atomic.Int64, n int64) bool {
		for start := time.Now(); what.Load() != n; {
			if t.shared.round.Load() < 0 || time.Since(start) > timeout {
				return false
			}
			time.Sleep(200 * time.Microsecond)
		}
		return true
	}
	lock := func() func() {
		release, err := lib.acquire(theKey)
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
					asked := now()
					release := lock()
					took := time.Duration(now() - max(asked, t.shared.released.Load()))
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
		end := time.Now().Add(t.span(1))
		for n := int64(1); time.Now().Before(end) || n <= warmUp+1; n++ {
			release := lock()
			if s.linger > 0 {
				release()
				time.Sleep(time.Millisecond)
			}
			t.shared.round.Store(n)
			if s.linger == 0 {
				time.Sleep(time.Duration(5+rand.IntN(10)) * time.Millisecond)
				t.shared.released.Store(now())
				release()
			}
			time.Sleep(2 * time.Millisecond)
			if !await(&t.shared.done, n) {
				stuck = 1
				break
			}
		}
		t.shared.round.Store(-1)
	})
	r.Times, r.Stuck = times, stuck
	if t.Index == 1 {
		r.Grants = []int{seen} // they are the hand-overs
	}
	return r, err
}
