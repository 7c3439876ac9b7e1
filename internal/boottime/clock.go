// Package boottime measures how much time has passed, including the time for which the
// machine was asleep.
//
// A lease in Redis runs out while the client's machine is suspended. Go's monotonic clock
// stands still meanwhile, at least on Linux and macOS, and Go's timers with it: a process
// that wakes up would trust its leases for longer than they last. The clock of this
// package goes on, and its beat has timers looked at again when the machine wakes up.
//
//	Linux    CLOCK_BOOTTIME
//	macOS    CLOCK_MONOTONIC_RAW, which goes on during sleep there
//	Windows  QueryInterruptTimePrecise
//	others   what the wall clock gains on the monotonic clock has passed
//
// No clock of a virtual machine sees that its hypervisor has stopped the whole of it,
// unless the hypervisor says so.
package boottime

import "time"

// Clock measures the time since it was made.
type Clock interface {
	// Now is the time since the clock was made. It goes on while the machine sleeps, and
	// never goes backwards. It costs less than 200 ns, and may be called from anywhere.
	Now() time.Duration
	// Beat calls f about once a second, and when the machine wakes up: at once on Linux,
	// within a second elsewhere. Timers of package time, which stand still during sleep,
	// should be set again then. f must not block; it may be called from several
	// goroutines. stop ends the beat, and returns after the last call of f.
	Beat(f func()) (stop func())
}

// times are the wall clock, and the monotonic clock since epoch, at one moment.
func times(epoch time.Time) (wall, mono time.Duration) {
	now := time.Now()
	return time.Duration(now.UnixNano()), now.Sub(epoch)
}

// jitter is how much two clocks may seem to move against each other because they are not
// read at exactly the same moment. A reading that is interrupted for longer looks like a
// jump, and is checked.
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

// tick is a beat by a timer of package time, which goes on where it stood when the
// machine wakes up.
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
