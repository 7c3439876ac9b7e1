package locktest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Main is the TestMain of a package whose tests use this one: it runs the tests, stops the
// shared redis-server, and fails if goroutines are left over. In a process that a test has
// started it plays that role instead.
func Main(m *testing.M) {
	playRole()
	redistest.Main(m,
		// rueidis closes the connection to a server that has left a cluster 5 s later.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		// It looks at the cluster a second after it was redirected, also when it was closed since.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}
