package history

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time on CLOCK_MONOTONIC, which all processes of the machine share, and which
// cannot be set.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("the monotonic clock cannot be read: %v", err))
	}
	return time.Duration(ts.Nano())
}
