package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// New starts a clock.
func New() Clock { return direct{start: boot()} }

// boot continues during sleep: CLOCK_MONOTONIC_RAW is mach_continuous_time on macOS.
func boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &ts); err != nil {
		// The only possible error is an unknown clock id.
		panic("boottime: clock_gettime(CLOCK_MONOTONIC_RAW): " + err.Error())
	}
	return time.Duration(ts.Nano())
}
