package kinds_test

// MultiLocks of all kinds of members, on several servers.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// memberKinds are the kinds that a MultiLock may have as members.
var memberKinds = locktest.Words()

// member is a member of a MultiLock.
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

// elsewhere returns the same MultiLock in another process.
func (b *bundle) elsewhere(t testing.TB, cfg lockkeeper.Config) *bundle {
	t.Helper()
	same := &bundle{base: b.base, servers: b.servers}
	var locks []*lockkeeper.Lock
	for i, server := range b.servers {
		s := locktest.Open(t, server.URL(), cfg)
		for _, kind := range memberKinds {
			name := fmt.Sprintf("%s.%d.%s", b.base, i, kind)
			lock := locktest.Kinds[kind](s, name)
			locks, same.members = append(locks, lock), append(same.members, member{locktest.KeyOf(server, name), kind, lock})
		}
	}
	same.Lock = lockkeeper.MultiLock(locks...)
	return same
}

// awaitLeft waits until only these keys are left.
func (b *bundle) awaitLeft(t testing.TB, keys ...string) {
	t.Helper()
	redistest.Eventually(t, "nothing to be left of "+b.base, func() bool { return slices.Equal(keysLeft(t, b.base, b.servers...), keys) })
}

// The order of the members does not matter, except for the tokens.
func TestMultiLock_OrderOfMembersDoesNotMatter(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, frequent)
	a, b, c := s.FencedLock(k.Name+".a"), s.Lock(k.Name+".b"), s.FencedLock(k.Name+".c")
	for range 3 { // the counters differ
		locktest.ExpectGranted(t, c)
	}
	one, other := lockkeeper.MultiLock(a, b, c), lockkeeper.MultiLock(c, a, b)
	hold := locktest.Acquire(t, one)
	if got, want := hold.MemberTokens(), []int64{1, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("tokens %v, want %v", got, want)
	}
	if status, err := other.Inspect(locktest.Within(t)); err != nil || !status.HeldHere {
		t.Errorf("in another order: %+v, %v", status, err)
	}
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, other)
	inner := locktest.AcquireIn(t, hold.Context(), other)
	if got, want := inner.MemberTokens(), []int64{4, 1, 0}; inner.Count() != 2 || !slices.Equal(got, want) {
		t.Errorf("re-entered in another order: count %d, tokens %v, want 2 and %v", inner.Count(), got, want)
	}
	locktest.Release(t, inner)
	locktest.Release(t, hold)
}

func multiMessage(members ...*messages.Lock) *messages.Lock {
	return &messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: members}
}

func TestMultiLock_RefusesInvalidMembers(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, frequent)
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
		"a RedLock":               multiMessage(one, &messages.Lock{Name: k.Name, Kind: messages.Kind_KIND_RED}),
	} {
		refused := locktest.Ask[*messages.NotAcquired](t, p, &messages.Acquire{Lock: lock, Wait: durationpb.New(0)})
		if refused.Reason != messages.Reason_REASON_INVALID || refused.Detail == "" {
			t.Errorf("%s: answered %v, want an invalid request and why", what, refused)
		}
	}
	if keys := keysLeft(t, k.Name, k.Server); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// A holder of one member in the same process counts as any other holder: a refusal does not affect it.
func TestMultiLock_RefusalKeepsMemberHeldInSameProcess(t *testing.T) {
	t.Parallel()
	for _, kind := range locktest.Words(locktest.Exclusive) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, a := locktest.New(t, frequent)
			member := locktest.Kinds[kind](s, a.LockName)
			one, two := lockkeeper.MultiLock(member, s.Lock(a.Name+"b")), lockkeeper.MultiLock(s.Lock(a.Name+"c"), member)
			for what, turn := range map[string]struct{ holder, wait *lockkeeper.Lock }{
				"a member, then the MultiLock": {member, one}, "the MultiLock, then a member": {one, member}, "two MultiLocks": {one, two},
			} {
				hold := locktest.Acquire(t, turn.holder)
				owners := a.Owners(t)
				for range 10 {
					locktest.ExpectRefused(t, lockkeeper.ErrHeld, turn.wait)
				}
				granted := locktest.AcquireSoon(locktest.Within(t), turn.wait)
				locktest.AwaitWaiters(t, turn.wait, 1)
				if err := hold.Ensure(locktest.Within(t), frequent.Watchdog*989/1000); err != nil { // after every command of the waiter
					t.Errorf("%s: %v", what, err)
				}
				if now := a.Owners(t); !maps.Equal(now, owners) {
					t.Errorf("%s: held by %v, and now by %v", what, owners, now)
				}
				locktest.Release(t, hold)
				locktest.Release(t, locktest.Got(t, granted).Hold)
			}
			redistest.Eventually(t, "nothing to be left", func() bool { return len(keysLeft(t, a.Name, a.Server)) == 0 })
		})
	}
}

// While a member is held elsewhere, the messages about members that a try takes and gives back do not cause another
// try.
func TestMultiLock_IgnoresMessagesOfItsOwnTries(t *testing.T) {
	t.Parallel()
	const poll, tries = 200 * time.Millisecond, 6
	for what, names := range map[string][2]string{"other names": {"a", "b"}, "names reversed": {"b", "a"}, "one name": {"a", "a"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var links []*locktest.Remote
			var members []*lockkeeper.Lock
			base := redistest.Name(t)
			for i, server := range redistest.SharedServers(t, 2) {
				r := locktest.NewRemote(t, server, lockkeeper.Config{Poll: poll})
				r.Name = base + names[i]
				r.Channel = "redisson_lock__channel:{" + r.Name + "}"
				links, members = append(links, r), append(members, r.Lock(r.Name), r.FencedLock(r.Name+"+"))
			}
			whole := lockkeeper.MultiLock(members...)
			for i, r := range links {
				r.TakeAs(t, locktest.Redisson, -1)
				ctx, cancel := context.WithCancel(context.Background())
				granted := locktest.AcquireSoon(ctx, whole)
				locktest.AwaitWaiters(t, whole, 1)
				r.AwaitSubscribers(t, 1)
				try := scripts.AcquireAll
				if what == "one name" {
					try = scripts.Acquire // the order is by name: no two neighbours are on one server
				}
				sent, began := countCommands(r.Proxy, redistest.Script(try.SHA)), time.Now()
				redistest.Eventually(t, "a few refusals", func() bool { return sent.Load() >= tries })
				// One may have been under way, and one was due.
				if took := time.Since(began); took < (tries-3)*poll/2 {
					t.Errorf("held on server %d: %d tries in %v, with a poll bound of %v", i, tries, took, poll)
				}
				cancel()
				locktest.ExpectEnd(t, granted, context.Canceled)
				r.Unlock(t)
				locktest.ExpectGranted(t, whole) // the last try gives back what it has taken
			}
		})
	}
}
