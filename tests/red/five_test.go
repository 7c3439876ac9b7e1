package red_test

// Five servers, and processes that share RedLocks on them.

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// redConfig has a short Watchdog, since a server has no vote for that long after its start.
var redConfig = lockkeeper.Config{Watchdog: 2 * time.Second, Renewal: 300 * time.Millisecond, Poll: 300 * time.Millisecond}

// five are independent servers, behind proxies.
type five struct {
	name    string
	cfg     lockkeeper.Config
	servers []*redistest.Server
	proxies []*redistest.Proxy
}

// newFive starts the servers and waits until all have a vote.
func newFive(t testing.TB, cfg lockkeeper.Config) *five {
	t.Helper()
	f := &five{name: redistest.Name(t), cfg: cfg}
	for range 5 {
		server := redistest.Start(t)
		for _, script := range scripts.All {
			server.Do(t, "SCRIPT", "LOAD", script.Source)
		}
		f.servers = append(f.servers, server)
		f.proxies = append(f.proxies, redistest.NewProxy(t, server.Addr()))
	}
	awaitVotes(t, f.party(t).red, f.cfg.Watchdog, f.servers)
	return f
}

// awaitVotes has a process ask for a lock until every server's memory is known to be so old
// that it has a vote.
func awaitVotes(t testing.TB, red *lockkeeper.Red, watchdog time.Duration, servers []*redistest.Server) {
	t.Helper()
	lock := red.Lock(redistest.Name(t) + "-votes")
	for _, server := range servers {
		redistest.Eventually(t, "the server's vote", func() bool {
			if hold, err := lock.TryAcquire(locktest.Within(t)); err == nil {
				locktest.Release(t, hold)
			}
			age, _ := server.Do(t, "HGET", "lockkeeper_memory", "age").AsInt64() // none before the first vote
			return age >= watchdog.Milliseconds()
		})
	}
}

// party is one process with a RedLock: a site for each of the servers.
type party struct {
	sites []*locktest.Site
	red   *lockkeeper.Red
	*lockkeeper.Lock
}

func (f *five) party(t testing.TB) *party {
	t.Helper()
	p := &party{}
	var systems []*lockkeeper.System
	for _, proxy := range f.proxies {
		s := locktest.Open(t, proxy.URL()+"?write_timeout=1s", f.cfg)
		s.Lame = true // servers are killed
		p.sites, systems = append(p.sites, s), append(systems, s.System)
	}
	var err error
	if p.red, err = lockkeeper.RedLock(systems...); err != nil {
		t.Fatal(err)
	}
	p.Lock = p.red.Lock(f.name)
	return p
}

func (f *five) key(i int) locktest.Key {
	return locktest.Key{Server: f.servers[i], LockName: f.name, Name: f.name, Channel: "redisson_lock__channel:{" + f.name + "}"}
}

func (f *five) awaitFree(t testing.TB, servers ...int) {
	t.Helper()
	for _, i := range servers {
		f.key(i).AwaitFree(t)
	}
}

// awaitGivenBack waits until the lock is free on those servers, and not because its TTL is over.
func (f *five) awaitGivenBack(t testing.TB, servers ...int) {
	t.Helper()
	for _, i := range servers {
		var expiry time.Time
		redistest.Eventually(t, "the lock to be given back", func() bool {
			at := f.key(i).Expiry(t)
			if !at.IsZero() {
				expiry = at
			}
			return at.IsZero()
		})
		if !expiry.IsZero() && time.Now().After(expiry) {
			t.Errorf("server %d held the lock until its TTL was over", i)
		}
	}
}

var allFive = []int{0, 1, 2, 3, 4}

// awaitHeld waits until all those servers hold the lock, with that count.
func (f *five) awaitHeld(t testing.TB, count string, servers ...int) {
	t.Helper()
	for _, i := range servers {
		redistest.Eventually(t, fmt.Sprintf("server %d to hold the lock %s times", i, count), func() bool {
			owners := f.key(i).Owners(t)
			for _, n := range owners {
				return len(owners) == 1 && n == count
			}
			return false
		})
	}
}
