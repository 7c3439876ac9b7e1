// Package kinds_test tests what differs between the kinds of lock: the order of a fair lock, readers and writers, the
// members of a MultiLock, the majority of a RedLock. tests/conformance tests what they have in common.
package kinds_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
)

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}
