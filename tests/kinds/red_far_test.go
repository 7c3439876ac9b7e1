package kinds_test

// RedLocks on servers that are not equally far away.

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// owner is the field of another client, one for each letter.
func owner(letter rune) string { return "00000000-0000-4000-8000-00000000000" + string(letter) + ":1" }

// A majority that is free is granted, however far its servers are compared with the others.
func TestRedLock_FarServersMakeAMajority(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		held   string // by whom, one letter for each server; "." is free
		delays []time.Duration
	}{
		"three": {"a..", []time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond}},
		"five":  {"ab...", []time.Duration{0, 0, 0, 100 * time.Millisecond, 100 * time.Millisecond}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := quorumOf(t, locktest.NoPolling, redistest.SharedServers(t, len(test.held))...)
			p := q.party(t)
			for i, letter := range test.held {
				q.proxies[i].Delay(test.delays[i])
				if letter != '.' {
					q.key(i).TakeAs(t, owner(letter), -1)
				}
			}
			for range 3 {
				hold, err := p.TryAcquire(locktest.Within(t))
				if err != nil {
					t.Fatalf("a majority is free: %v", err)
				}
				locktest.Release(t, hold)
				locktest.ExpectGranted(t, p.Lock)
			}
		})
	}
}

// A waiter wakes when a majority is released, whichever servers have refused it first.
func TestRedLock_WakesBehindSeveralOwners(t *testing.T) {
	t.Parallel()
	for what, held := range map[string]string{
		"a RedLock beside what a killed process has left": "aa",
		"owners of which one has two servers":             "aabcd",
		"owners of which two have two servers":            "aabbc",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := newQuorum(t, locktest.NoPolling)
			holder, p := q.party(t), q.party(t)
			for i, letter := range held {
				q.key(i).TakeAs(t, owner(letter), time.Minute)
			}
			release := func() { q.unlock(t, 2, 3, 4) }
			if len(held) == 2 {
				hold := locktest.Acquire(t, holder.Lock)
				release = func() { locktest.Release(t, hold) }
				q.awaitHeld(t, "1", 2, 3, 4)
			}
			for _, proxy := range q.proxies[3:] {
				proxy.Delay(20 * time.Millisecond) // the others refuse first
			}
			var tries []*atomic.Int64
			for _, proxy := range q.proxies {
				tries = append(tries, counted(proxy, votes))
			}
			granted := locktest.AcquireSoon(locktest.Within(t), p.Lock)
			for i := range q.servers {
				q.key(i).AwaitSubscribers(t, 1)
			}
			redistest.Eventually(t, "each server to be asked again after the subscription", func() bool {
				return !slices.ContainsFunc(tries, func(n *atomic.Int64) bool { return n.Load() < 2 })
			})
			release()
			locktest.Release(t, locktest.Got(t, granted).Hold)
			q.unlock(t, 0, 1)
		})
	}
}
