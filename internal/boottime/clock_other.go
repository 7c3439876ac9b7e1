//go:build !linux && !darwin && !windows

package boottime

import "time"

// New starts a clock.
func New() Clock {
	epoch := time.Now()
	return newCompared(func() (wall, mono time.Duration) { return times(epoch) })
}
