package kinds_test

// MultiLocks of all kinds of members, on several servers.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// memberKinds are the kinds that a MultiLock may have as members. A reader keeps no other out.
var memberKinds = []string{"plain", "fenced", "fair", "write", "read"}

// brisk looks again soon and renews often; what it leaves behind stays for longer than
// the tests wait.
var brisk = lockkeeper.Config{Watchdog: time.Minute, Renewal: 300 * time.Millisecond, Poll: 300 * time.Millisecond}

// member is one of a MultiLock's.
type member struct {
	locktest.Key
	kind string
	lock *lockkeeper.Lock
}

// bundle is a MultiLock with a member of each kind on each of some servers.
type bundle struct {
	base    string
	servers []*redistest.Server
	members []member
	*lockkeeper.Lock
}

func newBundle(t testing.TB, cfg lockkeeper.Config, servers ...*redistest.Server) *bundle {
	t.Helper()
	return (&bundle{base: redistest.Name(t), servers: servers}).elsewhere(t, cfg)
}

// elsewhere is the same MultiLock in another process.
func (b *bundle) elsewhere(t testing.TB, cfg lockkeeper.Config) *bundle {
	t.Helper()
	same := &bundle{base: b.base, servers: b.servers}
	var locks []*lockkeeper.Lock
	for i, server := range b.servers {
		s := locktest.Open(t, server.URL(), cfg)
		for _, kind := range memberKinds {
			name := fmt.Sprintf("%s.%d.%s", b.base, i, kind)
			lock := locktest.Kinds[kind](s, name)
			locks, same.members = append(locks, lock), append(same.members, member{locktest.Key{Server: server, LockName: name, Name: name}, kind, lock})
		}
	}
	same.Lock = lockkeeper.MultiLock(locks...)
	return same
}

// left are the keys of locks, without the counters of tokens, which stay.
func left(t testing.TB, base string, servers ...*redistest.Server) (all []string) {
	t.Helper()
	for _, server := range servers {
		all = append(all, slices.DeleteFunc(server.Keys(t, "*"+base+"*"), func(key string) bool { return strings.Contains(key, "lock_token") })...)
	}
	return all
}

// awaitLeft waits until nothing is left but these keys.
func (b *bundle) awaitLeft(t testing.TB, keys ...string) {
	t.Helper()
	redistest.Eventually(t, "nothing to be left of "+b.base, func() bool { return slices.Equal(left(t, b.base, b.servers...), keys) })
}

// heldTimes checks the hold count of each member in Redis.
func (b *bundle) heldTimes(t testing.TB, count string) {
	t.Helper()
	for _, m := range b.members {
		owners := m.Owners(t)
		delete(owners, "mode")
		if counts := slices.Collect(maps.Values(owners)); !slices.Equal(counts, []string{count}) {
			t.Errorf("%s has the owners %v, want one that holds it %s times", m.Name, owners, count)
		}
	}
}

func multiMessage(members ...*messages.Lock) *messages.Lock {
	return &messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: members}
}

// Whichever member is held elsewhere: none of the others is held meanwhile. What is held is
// held as often, and for as long, by each of them.
func TestMultiAllOrNothing(t *testing.T) {
	t.Parallel()
	here := newBundle(t, brisk, redistest.SharedServers(t, 2)...)
	there := here.elsewhere(t, brisk)
	for _, m := range there.members {
		if m.kind == "read" {
			continue
		}
		hold := locktest.Acquire(t, m.lock)
		before := left(t, here.base, here.servers...)
		locktest.Refused(t, lockkeeper.ErrHeld, here.Lock)
		here.awaitLeft(t, before...)
		locktest.Release(t, hold)
	}
	const lease = time.Minute
	outer := locktest.Acquire(t, here.Lock, lockkeeper.WithLease(lease))
	for _, m := range there.members {
		if ttl := m.Ttl(t); ttl > lease || ttl < lease/2 {
			t.Errorf("%s has a TTL of %v, of a lease of %v", m.Name, ttl, lease)
		}
		if m.kind == "read" {
			locktest.Passes(t, m.lock)
		} else {
			locktest.Refused(t, lockkeeper.ErrHeld, m.lock)
		}
	}
	inner := locktest.AcquireIn(t, outer.Context(), here.Lock)
	here.heldTimes(t, "2")
	locktest.Release(t, inner)
	here.heldTimes(t, "1")
	locktest.Release(t, outer)
	here.awaitLeft(t)
}

// Locks on one Redis are taken by one command, whatever their kinds.
func TestMultiOneScript(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBundle(t, locktest.NoPolling, server)
	locktest.Passes(t, b.Lock) // the server knows the scripts
	server.ResetStats(t)
	hold := locktest.Acquire(t, b.Lock)
	calls := server.Calls(t)
	if n := calls["evalsha"] + calls["eval"]; n != 1 {
		t.Errorf("%d members were taken by %d scripts, want 1", len(b.members), n)
	}
	locktest.Release(t, hold)
	if n := server.Calls(t)["evalsha"] - 1; n > int64(len(b.members)) {
		t.Errorf("%d members were given back by %d scripts", len(b.members), n)
	}
}

// The order in which the members are named does not matter, except for the tokens.
func TestMultiOrder(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, brisk)
	a, b, c := s.FencedLock(k.Name+".a"), s.Lock(k.Name+".b"), s.FencedLock(k.Name+".c")
	for range 3 { // the counters differ
		locktest.Passes(t, c)
	}
	one, other := lockkeeper.MultiLock(a, b, c), lockkeeper.MultiLock(c, a, b)
	hold := locktest.Acquire(t, one)
	if got, want := hold.MemberTokens(), []int64{1, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("tokens %v, want %v", got, want)
	}
	if status, err := other.Inspect(locktest.Within(t)); err != nil || !status.HeldHere {
		t.Errorf("in another order: %+v, %v", status, err)
	}
	locktest.Refused(t, lockkeeper.ErrHeld, other)
	inner := locktest.AcquireIn(t, hold.Context(), other)
	if got, want := inner.MemberTokens(), []int64{4, 1, 0}; inner.Count() != 2 || !slices.Equal(got, want) {
		t.Errorf("re-entered in another order: count %d, tokens %v, want 2 and %v", inner.Count(), got, want)
	}
	locktest.Release(t, inner)
	locktest.Release(t, hold)

	p := s.Probe(t)
	ma, mb, mc := locktest.KindMessage("fenced", k.Name+".a"), locktest.KindMessage("plain", k.Name+".b"), locktest.KindMessage("fenced", k.Name+".c")
	first := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: multiMessage(ma, mb, mc)})
	second := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: multiMessage(mc, mb, ma)})
	if !slices.Equal(first.MemberTokens, []int64{2, 0, 5}) || second.HoldCount != 2 || !slices.Equal(second.MemberTokens, []int64{5, 0, 2}) {
		t.Errorf("by message: tokens %v, and in another order %v, with a count of %d", first.MemberTokens, second.MemberTokens, second.HoldCount)
	}
	for range 2 {
		locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: multiMessage(mb, ma, mc)})
	}
}

func TestMultiInput(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, brisk)
	a, b, rw := s.Lock(k.Name+".a"), s.Lock(k.Name+".b"), s.ReadWriteLock(k.Name)
	var many []*lockkeeper.Lock
	var manyNames []*messages.Lock
	for i := range 65 {
		name := fmt.Sprint(k.Name, i)
		many, manyNames = append(many, s.Lock(name)), append(manyNames, locktest.KindMessage("plain", name))
	}
	for what, lock := range map[string]*lockkeeper.Lock{
		"none": lockkeeper.MultiLock(), "too many": lockkeeper.MultiLock(many...), "nil": lockkeeper.MultiLock(a, nil),
		"twice": lockkeeper.MultiLock(a, b, s.Lock(k.Name+".a")), "of two kinds": lockkeeper.MultiLock(a, s.FencedLock(k.Name+".a")),
		"read and write": lockkeeper.MultiLock(rw.Read(), rw.Write()), "nested": lockkeeper.MultiLock(a, lockkeeper.MultiLock(b)),
		"wrong inside": lockkeeper.MultiLock(a, lockkeeper.MultiLock()), "no name": lockkeeper.MultiLock(a, s.Lock("")),
	} {
		for call, err := range locktest.Errors(locktest.Within(t), lock) {
			if locktest.IsError(t, err, lockkeeper.ErrInvalid); t.Failed() {
				t.Fatal(what, call)
			}
		}
	}
	one, two := locktest.KindMessage("plain", k.Name+".a"), locktest.KindMessage("plain", k.Name+".b")
	p := s.Probe(t)
	for what, lock := range map[string]*messages.Lock{
		"none": multiMessage(), "too many": multiMessage(manyNames...), "nil": multiMessage(one, nil), "twice": multiMessage(one, two, one),
		"read and write":          multiMessage(locktest.KindMessage("read", k.Name), locktest.KindMessage("write", k.Name)),
		"nested":                  multiMessage(one, multiMessage(two)),
		"a name":                  {Kind: messages.Kind_KIND_MULTI, Name: k.Name, Members: []*messages.Lock{one}},
		"a mode":                  {Kind: messages.Kind_KIND_MULTI, Mode: messages.Mode_MODE_SHARED, Members: []*messages.Lock{one}},
		"members of a plain lock": {Name: k.Name, Members: []*messages.Lock{one}},
		"an unknown kind":         multiMessage(one, &messages.Lock{Name: k.Name, Kind: 99}),
		"no RedLock":              multiMessage(one, &messages.Lock{Name: k.Name, Kind: messages.Kind_KIND_RED}),
	} {
		refused := locktest.Ask[*messages.NotAcquired](t, p, &messages.Acquire{Lock: lock, Wait: durationpb.New(0)})
		if refused.Reason != messages.Reason_REASON_INVALID || refused.Detail == "" {
			t.Errorf("%s: %v", what, refused)
		}
	}
	if keys := left(t, k.Name, k.Server); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}
