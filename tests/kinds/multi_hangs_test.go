package kinds_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A MultiLock is the first in the wait queue of a member, and the server of its other member hangs. It leaves the queue, so
// that others get the member when that is free, and not when it would poll.
func TestMultiLock_LeavesAMemberWhileAServerHangs(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]string{"a": "before the other member", "z": "behind it"} {
		for _, known := range []bool{false, true} {
			what := order + ", noticed by its own try"
			if known {
				what = order + ", noticed by another lock"
			}
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				living, hanging := redistest.Start(t), redistest.Start(t)
				proxy := redistest.NewProxy(t, hanging.Addr())
				cfg := lockkeeper.Config{Poll: 3 * time.Minute, Watchdog: 10 * time.Minute, WaiterTimeout: 11 * time.Minute}
				here, there := locktest.Open(t, living.URL(), cfg), locktest.Open(t, proxy.URL(), cfg)
				here.SkipCloseCheck, there.SkipCloseCheck = true, true
				holder, other := locktest.Open(t, living.URL(), cfg), locktest.Open(t, living.URL(), cfg)
				both := lockkeeper.MultiLock(here.Lock(name), there.Lock("b"))
				locktest.Release(t, locktest.Acquire(t, both))
				hold := locktest.Acquire(t, holder.Lock(name))
				entries := func(n int64) func() bool {
					return func() bool {
						got, _ := living.Do(t, "HLEN", keyspace.WaitQueue(name)).AsInt64()
						return got == n
					}
				}
				ctx := locktest.Within(t)
				hanging.ResetStats(t)
				waiting := locktest.AcquireSoon(ctx, both)
				redistest.Eventually(t, "the entry of the MultiLock", entries(1))
				if name > "b" { // it has taken and released b twice, the second time since it listens: now it sleeps
					redistest.Eventually(t, "the tries of the MultiLock", func() bool {
						calls := hanging.Calls(t)
						return calls["evalsha"]+calls["eval"] >= 4 && len(hanging.Keys(t, "b")) == 0
					})
				}
				next := locktest.AcquireSoon(ctx, other.Lock(name))
				redistest.Eventually(t, "the other entry", entries(2))
				proxy.Freeze(true)
				if known {
					if _, err := lockkeeper.MultiLock(here.Lock("x"), there.Lock("y")).TryAcquire(ctx); err == nil {
						t.Error("acquired on a server that hangs")
					}
				}
				locktest.Release(t, hold)
				locktest.Release(t, locktest.Got(t, next).Hold)
				proxy.Freeze(false)
				locktest.Release(t, locktest.Got(t, waiting).Hold)
			})
		}
	}
}
