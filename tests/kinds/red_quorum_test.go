package kinds_test

// The servers of a RedLock, and processes that share it.

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// redConfig renews and polls often, and has a TTL that a busy machine does not exceed.
var redConfig = lockkeeper.Config{Watchdog: 8 * time.Second, Renewal: 300 * time.Millisecond, Poll: 300 * time.Millisecond}

var (
	votes    = redistest.Script(scripts.MajorityAcquire.SHA)
	releases = redistest.Script(scripts.Release.SHA)
	renewals = redistest.Script(scripts.Renew.SHA)
)

// quorum are independent servers, each behind a proxy of the test's own, and the name of a RedLock on them.
type quorum struct {
	name    string
	cfg     lockkeeper.Config
	servers []*redistest.Server
	proxies []*redistest.Proxy
}

// newQuorum has five servers, which the tests share: faults are made in its proxies only.
func newQuorum(t testing.TB, cfg lockkeeper.Config) *quorum {
	t.Helper()
	return quorumOf(t, cfg, redistest.SharedServers(t, 5)...)
}

// ownQuorum has servers that the test may kill and flush.
func ownQuorum(t testing.TB, cfg lockkeeper.Config, n int) *quorum {
	t.Helper()
	var servers []*redistest.Server
	for range n {
		servers = append(servers, redistest.Start(t))
	}
	return quorumOf(t, cfg, servers...)
}

func quorumOf(t testing.TB, cfg lockkeeper.Config, servers ...*redistest.Server) *quorum {
	t.Helper()
	locktest.AgeServers(t, servers...)
	q := &quorum{name: redistest.Name(t), cfg: cfg, servers: servers}
	for _, server := range servers {
		for _, script := range scripts.All {
			server.Do(t, "SCRIPT", "LOAD", script.Source)
		}
		q.proxies = append(q.proxies, redistest.NewProxy(t, server.Addr()))
	}
	return q
}

// party is one process with a RedLock: a site for each of the servers.
type party struct {
	sites []*locktest.Site
	*lockkeeper.Lock
}

func (q *quorum) party(t testing.TB) *party {
	t.Helper()
	var sites []*locktest.Site
	for _, proxy := range q.proxies {
		sites = append(sites, locktest.Open(t, proxy.URL()+"?write_timeout=1s", q.cfg))
	}
	return q.partyOf(t, sites...)
}

func (q *quorum) partyOf(t testing.TB, sites ...*locktest.Site) *party {
	t.Helper()
	p := &party{sites: sites}
	var systems []*lockkeeper.System
	for _, s := range sites {
		s.SkipCloseCheck = true // servers are unreachable at the end
		systems = append(systems, s.System)
	}
	red := locktest.Must(lockkeeper.NewRedLock(systems...))(t)
	p.Lock = red.Lock(q.name)
	return p
}

// disconnect cuts servers off, or connects them again.
func (q *quorum) disconnect(gone bool, servers ...int) {
	for _, i := range servers {
		q.proxies[i].Refuse(gone)
	}
}

func (q *quorum) key(i int) locktest.Key {
	return locktest.KeyOf(q.servers[i], q.name)
}

// takeAs takes the lock on some servers for a foreign owner.
func (q *quorum) takeAs(t testing.TB, ttl time.Duration, servers ...int) {
	t.Helper()
	for _, i := range servers {
		q.key(i).TakeAs(t, locktest.Redisson, ttl)
	}
}

func (q *quorum) unlock(t testing.TB, servers ...int) {
	t.Helper()
	for _, i := range servers {
		q.key(i).Unlock(t)
	}
}

// or returns the named servers, or all if none is named.
func (q *quorum) or(servers []int) []int {
	if len(servers) > 0 {
		return servers
	}
	for i := range q.servers {
		servers = append(servers, i)
	}
	return servers
}

func (q *quorum) awaitFree(t testing.TB, servers ...int) {
	t.Helper()
	for _, i := range q.or(servers) {
		q.key(i).AwaitFree(t)
	}
}

// awaitGivenBack waits until the lock is free on those servers, and not because its TTL has ended.
func (q *quorum) awaitGivenBack(t testing.TB, servers ...int) {
	t.Helper()
	for _, i := range q.or(servers) {
		var end time.Time
		redistest.Eventually(t, "the lock to be given back", func() bool {
			at := q.key(i).Expiry(t)
			if !at.IsZero() {
				end = at
			}
			return at.IsZero()
		})
		if !end.IsZero() && time.Now().After(end) {
			t.Errorf("server %d held the lock until its TTL ended", i)
		}
	}
}

// awaitHeld waits until one owner holds the lock on those servers, with that count.
func (q *quorum) awaitHeld(t testing.TB, count string, servers ...int) {
	t.Helper()
	for _, i := range q.or(servers) {
		redistest.Eventually(t, fmt.Sprintf("server %d to hold the lock %s times", i, count), func() bool {
			owners := q.key(i).Owners(t)
			for owner, n := range owners {
				return len(owners) == 1 && n == count && owner != locktest.Redisson
			}
			return false
		})
	}
}

// countCommands counts the commands that pass a proxy and match.
func countCommands(p *redistest.Proxy, match func(cmd []string) bool) *atomic.Int64 {
	var n atomic.Int64
	p.See(func(cmd []string) {
		if match(cmd) {
			n.Add(1)
		}
	})
	return &n
}
