//go:build !linux

package rig

import "time"

// alarm waits until a time.
type alarm struct{}

// await waits until a time, and returns false if done is closed before.
func (*alarm) await(due time.Time, done <-chan struct{}) bool {
	if left := time.Until(due); left > 0 {
		select {
		case <-time.After(left):
		case <-done:
			return false
		}
	}
	return true
}

func (*alarm) close() {}
