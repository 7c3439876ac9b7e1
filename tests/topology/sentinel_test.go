package topology_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// The master dies: its replica is promoted, and knows of the hold.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Replica(t, master)
	outlives(t, redistest.Sentinel(t, master), redistest.Name(t), func() {
		redistest.Eventually(t, "the replica to know of the hold", func() bool { return len(replica.Keys(t, "*")) > 0 })
		master.Kill(t)
		replica.AwaitMaster(t)
	})
	redistest.Eventually(t, "nothing to be left", func() bool { return len(replica.Keys(t, "*")) == 0 })
}
