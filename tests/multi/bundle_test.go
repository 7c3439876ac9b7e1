package multi_test

// Locks of all kinds, on several servers, to make MultiLocks of.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// memberKinds are the kinds that a MultiLock may have as members.
var memberKinds = []struct {
	name string
	of   func(s *locktest.Site, name string) *lockkeeper.Lock
	kind messages.Kind
	mode messages.Mode
}{
	{"plain", func(s *locktest.Site, name string) *lockkeeper.Lock { return s.Lock(name) }, messages.Kind_KIND_REENTRANT, 0},
	{"fenced", func(s *locktest.Site, name string) *lockkeeper.Lock { return s.FencedLock(name) }, messages.Kind_KIND_FENCED, 0},
	{"fair", func(s *locktest.Site, name string) *lockkeeper.Lock { return s.FairLock(name) }, messages.Kind_KIND_FAIR, 0},
	{"write", func(s *locktest.Site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Write() }, messages.Kind_KIND_READ_WRITE, 0},
	{"read", func(s *locktest.Site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Read() }, messages.Kind_KIND_READ_WRITE, messages.Mode_MODE_SHARED},
}

// brisk looks again soon and renews often; what it leaves behind stays for longer than
// the tests wait.
var brisk = lockkeeper.Config{Watchdog: time.Minute, Renewal: 300 * time.Millisecond, Poll: 300 * time.Millisecond}

// place is a Redis with a site on it.
type place struct {
	server *redistest.Server
	*locktest.Site
}

// bundle are members of a MultiLock: of each kind one on each of the places.
type bundle struct {
	base   string
	places []place
}

func newBundle(t testing.TB, cfg lockkeeper.Config, servers ...*redistest.Server) *bundle {
	t.Helper()
	b := &bundle{base: redistest.Name(t)}
	for _, server := range servers {
		b.places = append(b.places, place{server, locktest.Open(t, server.URL(), cfg)})
	}
	return b
}

// lock is the MultiLock, and its members, as the sites at those places make it.
func (b *bundle) lock(places []place) (whole *lockkeeper.Lock, members []*lockkeeper.Lock) {
	for i, p := range places {
		for _, kind := range memberKinds {
			members = append(members, kind.of(p.Site, fmt.Sprintf("%s.%d.%s", b.base, i, kind.name)))
		}
	}
	return lockkeeper.MultiLock(members...), members
}

// elsewhere are other sites at the same places.
func (b *bundle) elsewhere(t testing.TB) []place {
	var others []place
	for _, p := range b.places {
		others = append(others, place{p.server, locktest.Open(t, p.server.URL(), brisk)})
	}
	return others
}

// left are the keys of the locks, without the counters of tokens, which stay.
func left(t testing.TB, server *redistest.Server, base string) []string {
	t.Helper()
	return slices.DeleteFunc(server.Keys(t, "*"+base+"*"), func(key string) bool { return strings.Contains(key, "lock_token") })
}

func (b *bundle) left(t testing.TB) (all []string) {
	t.Helper()
	for _, p := range b.places {
		all = append(all, left(t, p.server, b.base)...)
	}
	return all
}

func (b *bundle) awaitNothing(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, "nothing to be left of "+b.base, func() bool { return len(b.left(t)) == 0 })
}

// distant are locks on servers of their own, behind proxies, in the order in which a
// MultiLock takes them.
func distant(t testing.TB, n int, cfg lockkeeper.Config) (links []*locktest.Remote, whole *lockkeeper.Lock) {
	t.Helper()
	var locks []*lockkeeper.Lock
	for range n {
		r := locktest.Far(t, redistest.Start(t), cfg)
		links, locks = append(links, r), append(locks, r.Lock(r.LockName))
	}
	return links, lockkeeper.MultiLock(locks...)
}

// counts are the hold counts in Redis, of all members.
func (b *bundle) counts(t testing.TB, members []*lockkeeper.Lock) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for i, member := range members {
		owners := locktest.Key{Server: b.places[i/len(memberKinds)].server, Name: member.Name()}.Owners(t)
		delete(owners, "mode")
		for _, count := range owners {
			found[count] = true
		}
		if len(owners) != 1 {
			t.Errorf("%s has the owners %v", member.Name(), owners)
		}
	}
	return found
}

// byMessage names the members for the guardian of the site that has them all.
func byMessage(members ...*messages.Lock) *messages.Lock {
	return &messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: members}
}
