package lockkeeper_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// The master dies: its replica is promoted, and knows of the hold. The holder goes on, and
// what is told of its release there reaches the waiter.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Replica(t, master)
	url := redistest.Sentinel(t, master)
	s, other := open(t, url, lockkeeper.Config{}), open(t, url, lockkeeper.Config{Poll: time.Minute})
	before := newKey(t, master)
	after := before
	after.server = replica
	hold := s.acquire(t, before)
	waiting := other.acquireSoon(t, before)
	before.awaitSubscribers(t, 1)
	redistest.Eventually(t, "the replica to know of the hold", func() bool { return after.exists(t) })

	master.Kill(t)
	replica.AwaitMaster(t)
	after.awaitSubscribers(t, 1)
	if err := hold.Ensure(within(t), 20*time.Second); err != nil {
		t.Fatalf("the new master knows of the hold: %v", err)
	}
	release(t, hold)
	release(t, got(t, waiting).hold)
	after.awaitFree(t)
}
