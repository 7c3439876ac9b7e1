package lockkeeper_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// TestMain stops the shared redis-server and finds goroutines that were left behind.
func TestMain(m *testing.M) {
	playRole() // in a process that a test has started
	redistest.Main(m,
		// rueidis closes the connection to a server that has left a cluster 5 s later.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		// It looks at the cluster a second after it was redirected, also when it was closed since.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}
