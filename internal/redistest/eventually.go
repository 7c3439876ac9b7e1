package redistest

import (
	"testing"
	"time"
)

// Limit is how long the helpers of this package wait. It is generous: only a test that
// fails waits that long.
const Limit = 20 * time.Second

const pollEvery = 3 * time.Millisecond

// Eventually waits until cond is true, and fails the test after [Limit]. what names the
// condition, e.g. "the waiter to be queued".
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	if !poll(Limit, cond) {
		t.Fatalf("not within %v: %s", Limit, what)
	}
}

func poll(limit time.Duration, cond func() bool) bool {
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
