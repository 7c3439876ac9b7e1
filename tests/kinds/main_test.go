package kinds_test

// What sets the kinds of lock apart: the order of a fair lock, readers and writers, the
// members of a MultiLock, the majority of a RedLock. What they have in common is tested by
// the conformance suite.

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}
