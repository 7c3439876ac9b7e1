//go:build darwin || windows

package boottime

import "time"

// direct is a clock of the operating system that continues during sleep, and is cheap to read.
type direct struct{ start time.Duration }

// Now implements Clock.
func (d direct) Now() time.Duration { return boot() - d.start }

// Beat implements Clock.
func (direct) Beat(f func()) (stop func()) { return tick(time.Second/4, f) }
