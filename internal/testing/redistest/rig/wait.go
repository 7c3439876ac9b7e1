package rig

import (
	"fmt"
	"time"
)

const (
	// Limit bounds a start, a command, and what is expected soon. It is generous, since a busy machine may run nothing
	// of a test for many seconds: only what fails takes that long.
	Limit = time.Minute
	// agreement bounds the wait for servers to agree. Sentinels ask replicas every 10 s.
	agreement = 2 * Limit

	pollEvery = 3 * time.Millisecond
)

// Poll waits until cond is true, and reports whether it became true within the limit.
func Poll(limit time.Duration, cond func() bool) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(pollEvery) {
		late := time.Now().After(deadline) // taken before the last try
		if cond() {
			return true
		}
		if late {
			return false
		}
	}
}

// Await waits for servers to agree, until cond is true. The error names the condition, e.g. "the cluster is up".
func Await(what string, cond func() bool) error {
	if !Poll(agreement, cond) {
		return fmt.Errorf("not within %v: %s", agreement, what)
	}
	return nil
}
