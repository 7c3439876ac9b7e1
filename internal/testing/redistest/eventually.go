package redistest

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// Limit is the time that the helpers of this package wait. It is generous: only a test that
// fails waits that long.
const Limit = rig.Limit

// Eventually waits until cond is true, and fails the test after [Limit]. what names the
// condition, e.g. "the waiter to be queued".
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	if !rig.Poll(Limit, cond) {
		t.Fatalf("not within %v: %s", Limit, what)
	}
}
