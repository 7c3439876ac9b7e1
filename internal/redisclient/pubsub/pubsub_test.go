package pubsub

import (
	"flag"
	"testing"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "12") // they wait more than they compute
	// When the client checks for a cluster, it leaves this goroutine, which sleeps for a second.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// first is the first channel of all subscriptions in the tests.
const first = "ok, the first"

// subscribe opens subscriptions to channels, which are closed when the test ends.
func subscribe(t *testing.T, client rueidis.Client, channels ...string) (*Subscriptions, *redistest.Events) {
	t.Helper()
	e := redistest.NewEvents()
	subs := NewSubscriptions(client, e, first, func() {})
	t.Cleanup(subs.Close)
	redistest.Listen(t, subs, e, channels...)
	return subs, e
}
