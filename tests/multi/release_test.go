package multi_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A server that refuses for a while delays the release of its member. That the others have
// released theirs meanwhile does not mean that they were lost.
func TestMultiReleaseReachesEveryServer(t *testing.T) {
	t.Parallel()
	near, far := locktest.NewKey(t, redistest.Shared(t)), locktest.NewKey(t, redistest.Start(t))
	whole := lockkeeper.MultiLock(locktest.Open(t, near.Server.URL(), lockkeeper.Config{}).Lock(near.LockName), locktest.Open(t, far.Server.URL(), lockkeeper.Config{}).Lock(far.LockName))
	hold := locktest.AcquireIn(t, locktest.Within(t), whole)
	far.Do(t, "REPLICAOF", "127.0.0.1", "1") // it becomes read-only
	far.Server.ResetStats(t)
	released := make(chan error, 1)
	go func() { released <- hold.Release(locktest.Within(t)) }()
	redistest.Eventually(t, "a refusal", func() bool { return far.Server.Calls(t)["evalsha"] > 0 })
	near.AwaitFree(t)
	far.Do(t, "REPLICAOF", "NO", "ONE")
	if err := locktest.Await(t, "the release", released); err != nil {
		t.Error(err)
	}
	near.IsFree(t)
	far.IsFree(t)
}

// A release that leaves a count frees nothing, whatever comes of it on the servers: the outer
// hold goes on.
func TestMultiPartialReleaseFreesNoMember(t *testing.T) {
	t.Parallel()
	near, far := locktest.NewKey(t, redistest.Start(t)), locktest.NewKey(t, redistest.Start(t))
	near.Do(t, "ACL", "SETUSER", "no-hset", "reset", "on", ">pw", "~*", "&*", "+@all")
	elsewhere := locktest.Open(t, far.Server.URL(), lockkeeper.Config{})
	whole := lockkeeper.MultiLock(
		locktest.Open(t, locktest.As(near.Server, "no-hset", "pw"), lockkeeper.Config{}).Lock(near.LockName),
		locktest.Open(t, far.Server.URL(), lockkeeper.Config{}).Lock(far.LockName))
	outer := locktest.AcquireIn(t, locktest.Within(t), whole)
	inner := locktest.AcquireIn(t, outer.Context(), whole)
	near.Do(t, "ACL", "SETUSER", "no-hset", "-hset")
	far.Do(t, "REPLICAOF", "127.0.0.1", "1") // it becomes read-only
	locktest.IsError(t, inner.Release(locktest.Within(t)), lockkeeper.ErrRejected)
	far.Do(t, "REPLICAOF", "NO", "ONE")
	locktest.Lasts(t, time.Second, outer)
	_, err := elsewhere.Lock(far.LockName).TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	near.Do(t, "ACL", "SETUSER", "no-hset", "+hset")
	locktest.Release(t, outer)
	near.IsFree(t)
	far.IsFree(t)
}
