package lockkeeper_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// TestMain stops the shared redis-server and finds goroutines that were left behind.
func TestMain(m *testing.M) {
	playRole() // in a process that a test has started
	redistest.Main(m)
}
