package locks_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// With OneTokenCounter, names that are used once leave no keys, and the tokens of each name grow, whichever way they
// come: from a script, a transfer, a MultiLock, or to a singleton.
func TestOneTokenCounter_LeavesNoKeys(t *testing.T) {
	t.Parallel()
	cfg := locktest.NoPolling
	cfg.OneTokenCounter, cfg.KeyPrefix = true, "app:"
	s, k := locktest.NewOnOwnServer(t, cfg)
	other := locktest.Open(t, k.Server.URL(), cfg)
	const counter = "redisson_lock_token:{app:lockkeeper_tokens}"
	last := int64(0)
	grows := func(what string, tokens ...int64) {
		t.Helper()
		for _, token := range tokens {
			if token <= last {
				t.Errorf("%s: token %d after %d", what, token, last)
			}
			last = token
		}
	}
	for i := range 50 {
		hold := locktest.Acquire(t, s.FencedLock(fmt.Sprint("once ", i)))
		grows("another name", hold.Token())
		locktest.Release(t, hold)
	}
	hold := locktest.Acquire(t, s.FencedLock("a"))
	grows("a script", hold.Token())
	granted := locktest.AcquireSoon(locktest.Within(t), other.FencedLock("a"))
	redistest.Eventually(t, "the wait", func() bool { return k.Number(t, "HLEN", keyspace.WaitQueue("app:a")) == 1 })
	locktest.Release(t, hold)
	hold = locktest.Got(t, granted).Hold
	grows("a transfer", hold.Token())
	locktest.Release(t, hold)
	hold = locktest.Acquire(t, lockkeeper.MultiLock(s.FencedLock("a"), other.FencedLock("b"), s.FencedLock("c")))
	tokens := hold.MemberTokens()
	slices.Sort(tokens)
	grows("a MultiLock", tokens...)
	locktest.Release(t, hold)
	hold = locktest.Acquire(t, s.FencedLock("a"))
	grows("the lock itself", hold.Token())
	locktest.Release(t, hold)

	if keys := k.Server.Keys(t, "redisson_lock_token*"); !slices.Equal(keys, []string{counter}) {
		t.Errorf("the counters are %v", keys)
	}
	if n := k.Number(t, "DBSIZE"); n != 1 {
		t.Errorf("left are %v", k.Server.Keys(t, "*"))
	}
	k.Do(t, "SET", keyspace.Token("app:a"), "1") // of another setting: without effect
	hold = locktest.Acquire(t, other.FencedLock("a"))
	grows("with a counter of its own", hold.Token())
	locktest.Release(t, hold)
}
