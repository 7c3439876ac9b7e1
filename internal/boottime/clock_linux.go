package boottime

import (
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// New starts a clock.
func New() Clock {
	epoch := time.Now()
	c := &clock{
		times: func() (wall, mono time.Duration) { return times(epoch) },
		boot:  boot,
	}
	if !c.start() {
		return newCompared(c.times) // a sandbox without CLOCK_BOOTTIME
	}
	return c
}

func boot() (time.Duration, bool) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return time.Duration(ts.Nano()), err == nil
}

// clock is CLOCK_BOOTTIME, at a sixth of the cost of the system call that reads it.
//
// Go reads the wall clock and the monotonic clock without a system call. When the machine
// wakes up, the kernel adds the time of the sleep to the wall clock and to CLOCK_BOOTTIME
// in one step, before any process runs. So if the difference of the wall clock and the
// monotonic clock has not changed, the machine has not slept. If it has changed, the machine
// has slept or the wall clock was set, and the clock reads CLOCK_BOOTTIME. Slewing, as by
// NTP, does not change the differences.
//
// A wall clock that is set back by exactly the time of a sleep hides the sleep, but only
// until the next beat, which reads CLOCK_BOOTTIME.
type clock struct {
	times func() (wall, mono time.Duration)
	boot  func() (since time.Duration, ok bool)
	// zero is a lower bound of CLOCK_BOOTTIME when the monotonic clock was 0.
	zero time.Duration
	last atomic.Pointer[comparison]
}

// comparison has the differences of the clocks.
type comparison struct {
	// offset is the wall clock minus the monotonic clock.
	offset time.Duration
	// asleep is for how long the machine has slept. It may be too long by the time that a
	// reading of the clocks takes, but never too short: so a lease is never trusted for
	// longer than it lasts.
	asleep time.Duration
}

// start reports whether there is a CLOCK_BOOTTIME.
func (c *clock) start() bool {
	if _, ok := c.boot(); !ok {
		return false
	}
	r, _ := c.read()
	c.zero = r.least
	c.last.Store(&comparison{offset: r.offset})
	return true
}

// Now implements Clock.
func (c *clock) Now() time.Duration {
	wall, mono := c.times()
	last := c.last.Load()
	if moved := wall - mono - last.offset; moved <= jitter && moved >= -jitter {
		return mono + last.asleep
	}
	return c.compare()
}

// compare reads all clocks, records their differences, and returns the current time.
func (c *clock) compare() time.Duration {
	for {
		last := c.last.Load()
		r, mono := c.read()
		// A shorter sleep is an inaccuracy, which must not make the clock go backwards.
		now := &comparison{offset: r.offset, asleep: max(last.asleep, r.most-c.zero)}
		if c.last.CompareAndSwap(last, now) {
			return mono + now.asleep
		}
	}
}

// reading is the result of reading all clocks. They are not read at the same moment:
// CLOCK_BOOTTIME minus the monotonic clock is between least and most.
type reading struct {
	offset      time.Duration // the wall clock minus the monotonic clock
	least, most time.Duration
}

func (r *reading) gap() time.Duration { return r.most - r.least }

// maxTries bounds how often the clocks are read until the readings are close to each
// other. In a sandbox, an emulator or a virtual machine without a fast clock they never are.
const maxTries = 10

// read reads all clocks as close to each other as possible; mono is the monotonic clock. If
// the machine sleeps during read, offset is from before the sleep, so that the next
// comparison notices it.
func (c *clock) read() (best reading, mono time.Duration) {
	for try := range maxTries {
		wall, before := c.times()
		boot, _ := c.boot()
		_, mono = c.times()
		r := reading{offset: wall - before, least: boot - mono, most: boot - before}
		slept := r.least > best.most // since the best
		if try == 0 || slept || r.gap() < best.gap() {
			best = r
		}
		if best.gap() < jitter/4 {
			break
		}
	}
	return best, mono
}

// Beat implements Clock with a timer of the kernel that continues during sleep: when the
// machine wakes up, it is overdue and expires at once.
func (c *clock) Beat(f func()) (stop func()) {
	ring := func() {
		c.compare()
		f()
	}
	timer, err := newTimer(time.Second)
	if err != nil {
		return tick(time.Second, ring)
	}
	var rings [8]byte
	next := func() bool {
		_, err := timer.Read(rings[:])
		return err == nil
	}
	return beat(ring, next, func() { _ = timer.Close() })
}

// newTimer returns a timer that becomes readable when it expires. The runtime's poller
// waits for it, not a thread.
func newTimer(every time.Duration) (*os.File, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	period := unix.NsecToTimespec(every.Nanoseconds())
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: period, Value: period}, nil); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("timerfd_settime", err)
	}
	return os.NewFile(uintptr(fd), "timerfd"), nil
}
