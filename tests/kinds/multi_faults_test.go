package kinds_test

// MultiLocks whose members are lost, or whose servers do not answer.

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A release that rolls back a try may arrive after a later try has taken the lock: it must not free it.
func TestMultiLock_LateRollBackFreesNothing(t *testing.T) {
	t.Parallel()
	links, whole := distantLocks(t, 2, locktest.ShortCallTimeout)
	first, second := links[0], links[1]
	second.TakeAs(t, locktest.Redisson, time.Minute)
	late := first.Proxy.Hold(releases)
	granted := locktest.AcquireSoon(locktest.Within(t), whole)
	late.Wait(t)
	second.Unlock(t)
	hold := locktest.Got(t, granted).Hold
	late.Release(t)
	if err := hold.Ensure(locktest.Within(t), time.Second); err != nil || !first.Exists(t) || !second.Exists(t) {
		t.Errorf("after the late roll-back: %v, and the locks are held by %v and %v", err, first.Owners(t), second.Owners(t))
	}
	locktest.Release(t, hold)
	first.AwaitFree(t)
	second.AwaitFree(t)
}

// The loss of one member loses all: the holder is notified, and the others are freed.
func TestMultiLock_LossOfAMemberLosesAll(t *testing.T) {
	t.Parallel()
	b := newBundle(t, frequent, redistest.SharedServers(t, 2)...)
	for i, m := range b.members {
		hold := locktest.Acquire(t, b.Lock)
		m.Do(t, append([]string{"DEL"}, keysLeft(t, m.Name, m.Server)...)...) // a read hold has a key next to the hash
		locktest.EndedBy(t, hold, messages.Reason_REASON_GONE)
		b.awaitLeft(t)
		if i != len(memberKinds) {
			continue
		}
		hold = locktest.Acquire(t, b.Lock)
		m.Atomically(t, `redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], 1)`, []string{m.Name}, locktest.Redisson)
		locktest.EndedBy(t, hold, messages.Reason_REASON_TAKEN)
		b.awaitLeft(t, m.Name)
		locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
		m.Do(t, "DEL", m.Name)
	}
	hold := locktest.Acquire(t, b.members[0].lock)
	locktest.ForceRelease(t, b.Lock, true) // a MultiLock counts as held if a member is
	locktest.EndedBy(t, hold)
}

// Closing a member's System takes the member away: the hold is lost, and the rest is freed.
func TestMultiLock_CloseOfAMembersSystemLosesTheHold(t *testing.T) {
	t.Parallel()
	cfg := frequent
	cfg.Watchdog, cfg.Renewal = 2*time.Second, 200*time.Millisecond
	links, whole := distantLocks(t, 2, cfg)
	links[0].SkipCloseCheck, links[1].SkipCloseCheck = true, true // both report that the part on the other was not released
	hold := locktest.Acquire(t, whole)
	locktest.Stop(t, links[1].Site)
	locktest.EndedBy(t, hold)
	links[0].AwaitFree(t)
	links[1].AwaitFree(t) // by its TTL
	if hold, err := whole.Acquire(locktest.Within(t)); err == nil {
		t.Errorf("granted without a member: %v", hold)
	}
	links[0].AwaitFree(t)
	links[0].ExpectGranted(t, links[0].Key)
}

// A server that refuses for a while delays the release of its member. The others have released theirs meanwhile, and
// that does not count as a loss.
func TestMultiLock_ReleaseReachesEveryServer(t *testing.T) {
	t.Parallel()
	here, near := locktest.New(t, lockkeeper.Config{})
	there, far := locktest.NewOnOwnServer(t, lockkeeper.Config{})
	hold := locktest.Acquire(t, lockkeeper.MultiLock(here.Lock(near.LockName), there.Lock(far.LockName)))
	far.Do(t, "REPLICAOF", "127.0.0.1", "1") // it becomes read-only
	far.Server.ResetStats(t)
	released := locktest.Go(func() error { return hold.Release(locktest.Within(t)) })
	redistest.Eventually(t, "a refusal", func() bool { return far.Server.Calls(t)["evalsha"] > 0 })
	near.AwaitFree(t)
	far.Do(t, "REPLICAOF", "NO", "ONE")
	locktest.Check(t, locktest.Await(t, "the release", released))
	near.IsFree(t)
	far.IsFree(t)
}

// A release that leaves a count frees nothing, even if a server refuses it: the outer hold goes on.
func TestMultiLock_PartialReleaseFreesNoMember(t *testing.T) {
	t.Parallel()
	near := locktest.NewKey(t, redistest.Start(t))
	near.Do(t, "ACL", "SETUSER", "no-hset", "reset", "on", ">pw", "~*", "&*", "+@all")
	cfg := frequent
	cfg.CallTimeout = locktest.Soon // the text of a refusal needs a while
	here := locktest.Open(t, locktest.URLAs(near.Server, "no-hset", "pw"), cfg)
	there, far := locktest.NewOnOwnServer(t, cfg)
	whole := lockkeeper.MultiLock(here.Lock(near.LockName), there.Lock(far.LockName))
	outer := locktest.Acquire(t, whole)
	inner := locktest.AcquireIn(t, outer.Context(), whole)
	near.Do(t, "ACL", "SETUSER", "no-hset", "-hset")
	far.Do(t, "REPLICAOF", "127.0.0.1", "1") // it becomes read-only
	locktest.IsError(t, inner.Release(locktest.Within(t)), lockkeeper.ErrRejected)
	far.Do(t, "REPLICAOF", "NO", "ONE")
	far.AwaitRenewals(t, 500*time.Millisecond)
	locktest.ExpectValidFor(t, 100*time.Millisecond, outer)
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, locktest.Open(t, far.Server.URL(), frequent).Lock(far.LockName))
	near.Do(t, "ACL", "SETUSER", "no-hset", "+hset")
	locktest.Release(t, outer)
	near.IsFree(t)
	far.IsFree(t)
}
