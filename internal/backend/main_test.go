package backend

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// TestMain stops the shared redis-server and finds goroutines that were left behind.
func TestMain(m *testing.M) { redistest.Main(m) }
