package locktest

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Main is the TestMain of a package whose tests use this one: it runs the tests, stops the
// shared redis-server, and fails if goroutines are left over.
func Main(m *testing.M) {
	redistest.Main(m,
		// rueidis closes the connection to a server that has left a cluster 5 s later.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		// It refreshes the cluster's slots a second after a redirection, even if it was closed since.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// Overlap lets 8 parallel tests of a package run at the same time, on any number of
// processors: they wait far more than they compute. Call it before Main.
func Overlap() { _ = flag.Set("test.parallel", "8") }
