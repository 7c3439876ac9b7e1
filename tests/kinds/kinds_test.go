// Package kinds_test tests what differs between the kinds of lock: the order of a fair lock, readers and writers, the
// members of a MultiLock, the majority of a RedLock. tests/conformance tests what they have in common.
package kinds_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}

// A forced release, in the holder's process or elsewhere, ends the hold and wakes a waiter that does not poll.
func TestForceRelease_NotifiesHolderAndWakesWaiter(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"plain", "fenced", "fair", "write"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := locktest.NewKey(t, redistest.Shared(t))
			var locks []*lockkeeper.Lock
			for _, s := range sites(t, k, locktest.NoPolling, 3) {
				locks = append(locks, locktest.Kinds[kind](s, k.LockName))
			}
			here, there, elsewhere := locks[0], locks[1], locks[2]
			for _, by := range []*lockkeeper.Lock{here, elsewhere} {
				hold, waiter := locktest.Acquire(t, here), locktest.AcquireSoon(locktest.Within(t), there)
				locktest.AwaitWaiters(t, there, 1)
				locktest.ForceRelease(t, by, true)
				if by == here {
					locktest.EndedBy(t, hold, messages.Reason_REASON_FORCED)
				}
				locktest.Release(t, locktest.Got(t, waiter).Hold)
				locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
			}
		})
	}
}
