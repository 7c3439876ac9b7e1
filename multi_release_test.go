package lockkeeper_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A server that refuses for a while delays the release of its member. That the others have
// released theirs meanwhile does not mean that they were lost.
func TestMultiReleaseReachesEveryServer(t *testing.T) {
	t.Parallel()
	near, far := newKey(t, redistest.Shared(t)), newKey(t, redistest.Start(t))
	whole := lockkeeper.MultiLock(open(t, near.server.URL(), lockkeeper.Config{}).Lock(near.lock), open(t, far.server.URL(), lockkeeper.Config{}).Lock(far.lock))
	hold := acquireLock(t, within(t), whole)
	far.do(t, "REPLICAOF", "127.0.0.1", "1") // it becomes read-only
	far.server.ResetStats(t)
	released := make(chan error, 1)
	go func() { released <- hold.Release(within(t)) }()
	redistest.Eventually(t, "a refusal", func() bool { return far.server.Calls(t)["evalsha"] > 0 })
	near.awaitFree(t)
	far.do(t, "REPLICAOF", "NO", "ONE")
	if err := await(t, "the release", released); err != nil {
		t.Error(err)
	}
	near.isFree(t)
	far.isFree(t)
}
