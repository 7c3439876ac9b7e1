package redisio_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "12") // they wait more than they compute
	// When the client checks for a cluster, it leaves this goroutine, which sleeps for a second.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}
