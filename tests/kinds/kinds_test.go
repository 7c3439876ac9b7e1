// Package kinds_test tests what differs between the kinds of lock: the order of a fair lock, readers and writers, the
// members of a MultiLock, the majority of a RedLock. tests/conformance tests what they have in common.
package kinds_test

// What several files of the tests use.

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}

// frequent polls and renews often, and its TTL outlasts the waits of the tests: a key that is left behind is noticed.
var frequent = lockkeeper.Config{Watchdog: time.Minute, Renewal: 300 * time.Millisecond, Poll: 300 * time.Millisecond}

// openSites opens processes on the key's server.
func openSites(t testing.TB, k locktest.Key, cfg lockkeeper.Config, n int) (all []*locktest.Site) {
	t.Helper()
	for range n {
		all = append(all, locktest.Open(t, k.Server.URL(), cfg))
	}
	return all
}

// distantLocks are locks on different servers, behind proxies. The first is the home of the MultiLock: its actor is in
// the System of the name that sorts first.
func distantLocks(t testing.TB, n int, cfg lockkeeper.Config) (links []*locktest.Remote, whole *lockkeeper.Lock) {
	t.Helper()
	var locks []*lockkeeper.Lock
	for _, server := range redistest.SharedServers(t, n) {
		links = append(links, locktest.NewRemote(t, server, cfg))
	}
	slices.SortFunc(links, func(a, b *locktest.Remote) int { return strings.Compare(a.LockName, b.LockName) })
	for _, r := range links {
		locks = append(locks, r.Lock(r.LockName))
	}
	return links, lockkeeper.MultiLock(locks...)
}

// keysLeft returns the keys of locks, without the counters of tokens, which stay.
func keysLeft(t testing.TB, base string, servers ...*redistest.Server) (all []string) {
	t.Helper()
	for _, server := range servers {
		all = append(all, slices.DeleteFunc(server.Keys(t, "*"+base+"*"), func(key string) bool { return strings.Contains(key, "lock_token") })...)
	}
	return all
}

// redissonOwners are owners as Redisson writes them.
func redissonOwners(n int) (owners []string) {
	for i := range n {
		owners = append(owners, strings.TrimSuffix(locktest.Redisson, "57")+strconv.Itoa(i))
	}
	return owners
}
