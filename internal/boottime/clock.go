// Package boottime measures how much time has passed, including the time for which the
// machine was asleep.
//
// A lease in Redis expires while the client's machine is suspended. Go's monotonic clock
// stops meanwhile, at least on Linux and macOS, and so do Go's timers: a process that wakes
// up would trust its leases for longer than they last. The clock of this package continues,
// and its beat lets users check their timers when the machine wakes up.
//
//	Linux    CLOCK_BOOTTIME
//	macOS    CLOCK_MONOTONIC_RAW, which continues during sleep there
//	Windows  QueryInterruptTimePrecise
//	others   the monotonic clock, plus what the wall clock gains on it
//
// The clocks of a virtual machine do not count the time for which its hypervisor stops it,
// unless the hypervisor reports that.
package boottime

import "time"

// Clock measures the time since it was created.
type Clock interface {
	// Now returns the time since the clock was created. It continues while the machine
	// sleeps, and never goes backwards. A call takes less than 200 ns, and may be made from
	// any goroutine.
	Now() time.Duration
	// Beat calls f when the machine wakes up, at once on Linux and within a quarter of a second
	// elsewhere; and in between about once a second on Linux, and four times a second elsewhere.
	// Timers of package time, which stop during sleep, should be reset then. f must not block; it
	// may be called from several goroutines. stop ends the beat, and returns after the last call
	// of f.
	Beat(f func()) (stop func())
}

// times returns the wall clock, and the monotonic clock since epoch, at one moment.
func times(epoch time.Time) (wall, mono time.Duration) {
	now := time.Now()
	return time.Duration(now.UnixNano()), now.Sub(epoch)
}

// jitter is how much the difference of two clocks may change because they are not read at
// exactly the same moment. A reading that is interrupted for longer looks like a jump, and
// is checked.
const jitter = 100 * time.Microsecond

// beat calls f whenever next returns true, until stop has ended next.
func beat(f func(), next func() bool, end func()) (stop func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for next() {
			f()
		}
	}()
	return func() {
		end()
		<-ended
	}
}

// tick is a beat with a ticker of package time, which continues with its remaining time when
// the machine wakes up.
func tick(every time.Duration, f func()) (stop func()) {
	ticker, stopped := time.NewTicker(every), make(chan struct{})
	next := func() bool {
		select {
		case <-ticker.C:
			return true
		case <-stopped:
			return false
		}
	}
	return beat(f, next, func() {
		ticker.Stop()
		close(stopped)
	})
}
