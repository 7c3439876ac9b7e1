package lockkeeper_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// memberKinds are the kinds that a MultiLock may have as members.
var memberKinds = []struct {
	name string
	of   func(s *site, name string) *lockkeeper.Lock
	kind messages.Kind
	mode messages.Mode
}{
	{"plain", func(s *site, name string) *lockkeeper.Lock { return s.Lock(name) }, messages.Kind_KIND_REENTRANT, 0},
	{"fenced", func(s *site, name string) *lockkeeper.Lock { return s.FencedLock(name) }, messages.Kind_KIND_FENCED, 0},
	{"fair", func(s *site, name string) *lockkeeper.Lock { return s.FairLock(name) }, messages.Kind_KIND_FAIR, 0},
	{"write", func(s *site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Write() }, messages.Kind_KIND_READ_WRITE, 0},
	{"read", func(s *site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Read() }, messages.Kind_KIND_READ_WRITE, messages.Mode_MODE_SHARED},
}

// brisk looks again soon and renews often; what it leaves behind stays for longer than
// the tests wait.
var brisk = lockkeeper.Config{Watchdog: time.Minute, Renewal: 300 * time.Millisecond, Poll: 300 * time.Millisecond}

// place is a Redis with a site on it.
type place struct {
	server *redistest.Server
	*site
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
		b.places = append(b.places, place{server, open(t, server.URL(), cfg)})
	}
	return b
}

// lock is the MultiLock, and its members, as the sites at those places make it.
func (b *bundle) lock(places []place) (whole *lockkeeper.Lock, members []*lockkeeper.Lock) {
	for i, p := range places {
		for _, kind := range memberKinds {
			members = append(members, kind.of(p.site, fmt.Sprintf("%s.%d.%s", b.base, i, kind.name)))
		}
	}
	return lockkeeper.MultiLock(members...), members
}

// elsewhere are other sites at the same places.
func (b *bundle) elsewhere(t testing.TB) []place {
	var others []place
	for _, p := range b.places {
		others = append(others, place{p.server, open(t, p.server.URL(), brisk)})
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

func acquireLock(t testing.TB, ctx context.Context, l *lockkeeper.Lock, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	hold, err := l.Acquire(ctx, options...)
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

func lockSoon(l *lockkeeper.Lock, ctx context.Context, options ...lockkeeper.Option) <-chan grant {
	granted := make(chan grant, 1)
	go func() {
		hold, err := l.Acquire(ctx, options...)
		granted <- grant{hold, err, time.Now()}
	}()
	return granted
}

func awaitLocalWaiters(t testing.TB, l *lockkeeper.Lock, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d waiters", n), func() bool {
		status, err := l.Inspect(within(t))
		return err == nil && status.Waiters == n
	})
}

// isOver waits until a hold is told that it is lost, and gives the reason.
func isOver(t testing.TB, hold *lockkeeper.Hold) messages.Reason {
	t.Helper()
	await(t, "the loss", hold.Context().Done())
	return isError(t, context.Cause(hold.Context()), lockkeeper.ErrLost)
}

// Whichever member is held elsewhere: none of the others is held meanwhile.
func TestMultiAllOrNothing(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, _ := b.lock(b.places)
	_, elsewhere := b.lock(b.elsewhere(t))
	for i, member := range elsewhere {
		if kind := memberKinds[i%len(memberKinds)]; kind.mode == messages.Mode_MODE_SHARED {
			continue // another reader keeps nobody out
		}
		hold := acquireLock(t, within(t), member)
		before := b.left(t)
		_, err := whole.TryAcquire(within(t))
		isError(t, err, lockkeeper.ErrHeld)
		if after := b.left(t); !slices.Equal(after, before) {
			t.Errorf("with %s held elsewhere, a try leaves %q, and before there was %q", member.Name(), after, before)
		}
		release(t, hold)
	}
	hold := acquireLock(t, within(t), whole)
	for i, member := range elsewhere {
		other, err := member.TryAcquire(within(t))
		if memberKinds[i%len(memberKinds)].mode == messages.Mode_MODE_SHARED {
			if err != nil {
				t.Errorf("%s: %v", member.Name(), err)
				continue
			}
			release(t, other)
			continue
		}
		isError(t, err, lockkeeper.ErrHeld)
	}
	release(t, hold)
	if keys := b.left(t); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// Locks on one Redis are taken by one command, whatever their kinds.
func TestMultiOneScript(t *testing.T) {
	b := newBundle(t, noPolling, redistest.Start(t))
	whole, members := b.lock(b.places)
	server := b.places[0].server
	release(t, acquireLock(t, within(t), whole)) // the server knows the scripts
	server.ResetStats(t)
	hold := acquireLock(t, within(t), whole)
	calls := server.Calls(t)
	if n := calls["evalsha"] + calls["eval"]; n != 1 {
		t.Errorf("%d members were taken by %d scripts, want 1", len(members), n)
	}
	release(t, hold)
	calls = server.Calls(t)
	if n := calls["evalsha"] - 1; n > int64(len(members)) {
		t.Errorf("%d members were given back by %d scripts", len(members), n)
	}
}

// The order in which the members are named does not matter, except for the tokens.
func TestMultiOrder(t *testing.T) {
	s := open(t, redistest.Shared(t).URL(), brisk)
	base := redistest.Name(t)
	a, b, c := s.FencedLock(base+".a"), s.Lock(base+".b"), s.FencedLock(base+".c")
	for range 3 { // the counters differ
		release(t, acquireLock(t, within(t), c))
	}
	one, other := lockkeeper.MultiLock(a, b, c), lockkeeper.MultiLock(c, a, b)
	hold := acquireLock(t, within(t), one)
	if got, want := hold.MemberTokens(), []int64{1, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("tokens %v, want %v", got, want)
	}
	if status, err := other.Inspect(within(t)); err != nil || !status.HeldHere {
		t.Errorf("in another order: %+v, %v", status, err)
	}
	_, err := other.TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrHeld)
	inner := acquireLock(t, hold.Context(), other)
	if got, want := inner.MemberTokens(), []int64{4, 1, 0}; inner.Count() != 2 || !slices.Equal(got, want) {
		t.Errorf("re-entered in another order: count %d, tokens %v, want 2 and %v", inner.Count(), got, want)
	}
	release(t, inner)
	release(t, hold)

	p := s.probe(t)
	name := func(fenced bool, letter string) *messages.Lock {
		kind := messages.Kind_KIND_REENTRANT
		if fenced {
			kind = messages.Kind_KIND_FENCED
		}
		return &messages.Lock{Name: base + letter, Kind: kind}
	}
	multi := func(members ...*messages.Lock) *messages.Lock {
		return &messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: members}
	}
	first := ask[*messages.Acquired](t, p, &messages.Acquire{Lock: multi(name(true, ".a"), name(false, ".b"), name(true, ".c"))})
	second := ask[*messages.Acquired](t, p, &messages.Acquire{Lock: multi(name(true, ".c"), name(false, ".b"), name(true, ".a"))})
	if got, want := first.MemberTokens, []int64{2, 0, 5}; !slices.Equal(got, want) {
		t.Errorf("by message: tokens %v, want %v", got, want)
	}
	if got, want := second.MemberTokens, []int64{5, 0, 2}; second.HoldCount != 2 || !slices.Equal(got, want) {
		t.Errorf("by message, in another order: count %d, tokens %v, want 2 and %v", second.HoldCount, got, want)
	}
	for range 2 {
		ask[*messages.Released](t, p, &messages.Release{Lock: multi(name(false, ".b"), name(true, ".a"), name(true, ".c"))})
	}
}

// distant are locks on servers of their own, behind proxies, in the order in which a
// MultiLock takes them.
func distant(t testing.TB, n int, cfg lockkeeper.Config) (links []*remote, whole *lockkeeper.Lock) {
	t.Helper()
	var locks []*lockkeeper.Lock
	for range n {
		r := far(t, redistest.Start(t), cfg)
		links, locks = append(links, r), append(locks, r.Lock(r.lock))
	}
	return links, lockkeeper.MultiLock(locks...)
}

// All members share one deadline: none begins afresh with each.
func TestMultiSharedDeadline(t *testing.T) {
	cfg := brisk
	cfg.CallTimeout = 700 * time.Millisecond
	links, whole := distant(t, 3, cfg)
	for _, r := range links {
		r.proxy.Delay(150 * time.Millisecond) // each takes 300 ms, all of them longer than one may
	}
	_, err := whole.TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrUnavailable)
	for _, r := range links {
		r.proxy.Delay(0)
		r.awaitFree(t)
	}
	release(t, acquireLock(t, within(t), whole))
}

// What was taken is given back also when a later server hangs, or its reply is lost.
func TestMultiRollBack(t *testing.T) {
	for what, fault := range map[string]func(t *testing.T, r *remote) (end func()){
		"paused": func(t *testing.T, r *remote) func() { r.server.Pause(t); return func() { r.server.Resume(t) } },
		"replies dropped": func(_ *testing.T, r *remote) func() {
			r.proxy.DropReplies(true)
			return func() { r.proxy.DropReplies(false) }
		},
		"cut off": func(_ *testing.T, r *remote) func() { r.proxy.Refuse(true); return func() { r.proxy.Refuse(false) } },
	} {
		t.Run(what, func(t *testing.T) {
			cfg := noPolling
			cfg.CallTimeout = 500 * time.Millisecond
			links, whole := distant(t, 2, cfg)
			first, second := links[0], links[1]
			end := fault(t, second)
			_, err := whole.TryAcquire(within(t))
			isError(t, err, lockkeeper.ErrUnavailable)
			first.awaitFree(t) // long before its TTL is over
			end()
			second.awaitFree(t)
			release(t, acquireLock(t, within(t), whole))
			first.isFree(t)
			second.isFree(t)
		})
	}
}

// A release that rolls back a try may arrive when a later try has taken the lock: it
// must not take it away.
func TestMultiLateRollBack(t *testing.T) {
	links, whole := distant(t, 2, impatient)
	first, second := links[0], links[1]
	second.takeAs(t, redisson, time.Minute)
	late := first.proxy.Hold(redistest.Script(scripts.Release.SHA))
	granted := lockSoon(whole, within(t))
	late.Wait(t)
	second.unlock(t)
	hold := got(t, granted).hold
	late.Release(t)
	if err := hold.Ensure(within(t), time.Second); err != nil || !first.exists(t) || !second.exists(t) {
		t.Errorf("after the late roll-back: %v, and the locks are held by %v and %v", err, first.owners(t), second.owners(t))
	}
	release(t, hold)
	first.awaitFree(t)
	second.awaitFree(t)
}

// A holder of one member in the same process is a stranger like any other.
func TestMultiBesideItsMembers(t *testing.T) {
	server := redistest.Shared(t)
	for _, kind := range memberKinds[:4] {
		t.Run(kind.name, func(t *testing.T) {
			s := open(t, server.URL(), brisk)
			a, b, c := newKey(t, server), newKey(t, server), newKey(t, server)
			plain := kind.of(s, a.lock)
			one := lockkeeper.MultiLock(plain, s.Lock(b.lock))
			two := lockkeeper.MultiLock(s.Lock(c.lock), kind.of(s, a.lock))
			for _, turn := range []struct {
				what         string
				holder, wait *lockkeeper.Lock
			}{{"a member, then the MultiLock", plain, one}, {"the MultiLock, then a member", one, plain}, {"two MultiLocks", one, two}} {
				hold := acquireLock(t, within(t), turn.holder)
				owners := a.owners(t)
				_, err := turn.wait.TryAcquire(within(t))
				isError(t, err, lockkeeper.ErrHeld)
				granted := lockSoon(turn.wait, within(t))
				awaitLocalWaiters(t, turn.wait, 1)
				if err := hold.Ensure(within(t), brisk.Watchdog*989/1000); err != nil { // behind whatever the waiter has sent
					t.Errorf("%s: %v", turn.what, err)
				}
				if now := a.owners(t); !maps.Equal(now, owners) {
					t.Errorf("%s: held by %v, and now by %v", turn.what, owners, now)
				}
				release(t, hold)
				release(t, got(t, granted).hold)
			}
			for _, k := range []key{a, b, c} {
				k.awaitFree(t)
			}
		})
	}
}

// When one member is lost, all are: the holder is told, and the others are freed.
func TestMultiLoss(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, members := b.lock(b.places)
	for i, member := range members {
		k := key{server: b.places[i/len(memberKinds)].server, name: member.Name()}
		hold := acquireLock(t, within(t), whole)
		for _, each := range left(t, k.server, k.name) { // a read hold has a key beside the hash
			k.do(t, "DEL", each)
		}
		if reason := isOver(t, hold); reason != messages.Reason_REASON_GONE {
			t.Errorf("%s was deleted: the reason is %v", k.name, reason)
		}
		b.awaitNothing(t)
	}
	hold := acquireLock(t, within(t), whole)
	taken := key{server: b.places[1].server, name: members[len(memberKinds)].Name()}
	taken.do(t, "DEL", taken.name)
	taken.takeAs(t, redisson, -1)
	if reason := isOver(t, hold); reason != messages.Reason_REASON_TAKEN {
		t.Errorf("%s was taken: the reason is %v", taken.name, reason)
	}
	redistest.Eventually(t, "nothing but that to be left", func() bool { return slices.Equal(b.left(t), []string{taken.name}) })
	isError(t, hold.Release(within(t)), lockkeeper.ErrLost)
	taken.do(t, "DEL", taken.name)
}

// counts are the hold counts in Redis, of all members.
func (b *bundle) counts(t testing.TB, members []*lockkeeper.Lock) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for i, member := range members {
		owners := key{server: b.places[i/len(memberKinds)].server, name: member.Name()}.owners(t)
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

func TestMultiReentry(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, members := b.lock(b.places)
	outer := acquireLock(t, within(t), whole)
	_, err := whole.Acquire(outer.Context(), lockkeeper.WithoutReentry())
	isError(t, err, lockkeeper.ErrReentry)
	inner := acquireLock(t, outer.Context(), whole)
	if counts := b.counts(t, members); inner.Count() != 2 || len(counts) != 1 || !counts["2"] {
		t.Errorf("re-entered: count %d, in Redis %v", inner.Count(), counts)
	}
	release(t, inner)
	if counts := b.counts(t, members); len(counts) != 1 || !counts["1"] {
		t.Errorf("after the inner release: in Redis %v", counts)
	}
	release(t, outer)
	if keys := b.left(t); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

func TestMultiLease(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, members := b.lock(b.places)
	each := func(check func(k key)) {
		for i, member := range members {
			check(key{server: b.places[i/len(memberKinds)].server, name: member.Name()})
		}
	}
	const lease = 1500 * time.Millisecond
	hold := acquireLock(t, within(t), whole, lockkeeper.WithLease(lease))
	each(func(k key) {
		if ttl := k.ttl(t); ttl > lease {
			t.Errorf("%s has a TTL of %v, of a lease of %v", k.name, ttl, lease)
		}
	})
	if reason := isOver(t, hold); reason != messages.Reason_REASON_EXPIRED {
		t.Errorf("the lease is over, and the reason is %v", reason)
	}
	b.awaitNothing(t)

	hold = acquireLock(t, within(t), whole)
	each(func(k key) {
		first := k.expiry(t)
		redistest.Eventually(t, k.name+" to be renewed", func() bool { return k.expiry(t).After(first) })
	})
	release(t, hold)
}

// Whatever way a waiter gives up, it leaves nothing behind.
func TestMultiWaitersGiveUp(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, _ := b.lock(b.places)
	_, elsewhere := b.lock(b.elsewhere(t))
	blocker := acquireLock(t, within(t), elsewhere[len(memberKinds)]) // on the second server
	before := b.left(t)

	_, err := whole.TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrHeld)
	_, err = whole.Acquire(within(t), lockkeeper.WithWait(200*time.Millisecond))
	isError(t, err, lockkeeper.ErrTimeout)
	ctx, cancel := context.WithCancel(context.Background())
	granted := lockSoon(whole, ctx)
	awaitLocalWaiters(t, whole, 1)
	cancel()
	if g := await(t, "the error", granted); g.err == nil {
		t.Error("granted though cancelled")
	}
	redistest.Eventually(t, "nothing but the blocker to be left", func() bool { return slices.Equal(b.left(t), before) })
	for i, p := range b.places {
		channel := "redisson_lock__channel:{" + fmt.Sprintf("%s.%d.plain", b.base, i) + "}"
		redistest.Eventually(t, "no subscriber of "+channel, func() bool { return p.server.Subscribers(t, channel) == 0 })
	}
	release(t, blocker)
	release(t, acquireLock(t, within(t), whole))
}

func TestMultiForceRelease(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, members := b.lock(b.places)
	there, _ := b.lock(b.elsewhere(t))
	for what, by := range map[string]*lockkeeper.Lock{"here": whole, "elsewhere": there} {
		hold := acquireLock(t, within(t), whole)
		if status, err := there.Inspect(within(t)); err != nil || !status.Locked || status.HeldHere {
			t.Errorf("%s: %+v, %v", what, status, err)
		}
		if was, err := by.ForceRelease(within(t)); !was || err != nil {
			t.Errorf("%s: %v, %v", what, was, err)
		}
		want := messages.Reason_REASON_FORCED
		if by == there {
			want = messages.Reason_REASON_GONE
		}
		if reason := isOver(t, hold); reason != want {
			t.Errorf("forced %s: the reason is %v, want %v", what, reason, want)
		}
		b.awaitNothing(t)
		if was, err := by.ForceRelease(within(t)); was || err != nil {
			t.Errorf("%s, when free: %v, %v", what, was, err)
		}
	}
	one := acquireLock(t, within(t), members[0])
	if was, err := whole.ForceRelease(within(t)); !was || err != nil {
		t.Errorf("with one member held: %v, %v", was, err)
	}
	isOver(t, one)
}

// byMessage names the members for the guardian of the site that has them all.
func byMessage(members ...*messages.Lock) *messages.Lock {
	return &messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: members}
}

// The death of an actor that holds or waits for a MultiLock releases it.
func TestMultiOwnerDies(t *testing.T) {
	tr := newTree(t, lockkeeper.Config{})
	lock := byMessage(&messages.Lock{Name: redistest.Name(t)}, &messages.Lock{Name: redistest.Name(t), Kind: messages.Kind_KIND_FAIR})
	holder, heir, next := tr.client(t, "holder"), tr.client(t, "heir"), tr.client(t, "next")
	waiters := func() int {
		next.request(&messages.Inspect{Lock: lock})
		return int(expect[*messages.Status](t, next).Waiters)
	}
	for range 2 {
		holder.request(&messages.Acquire{Lock: lock})
		expect[*messages.Acquired](t, holder)
	}
	heir.request(&messages.Acquire{Lock: lock})
	redistest.Eventually(t, "the heir waits", func() bool { return waiters() == 1 })
	tr.system.Root.Stop(heir.pid)
	redistest.Eventually(t, "the heir is gone", func() bool { return waiters() == 0 })
	tr.system.Root.Stop(holder.pid)
	next.request(&messages.Acquire{Lock: lock})
	if got := expect[*messages.Acquired](t, next); got.HoldCount != 1 {
		t.Errorf("granted %d times", got.HoldCount)
	}
	tr.system.Root.Stop(next.pid)
	for _, member := range lock.Members {
		redistest.Eventually(t, "the lock is free", func() bool { return tr.owner(t, member.Name) == "" })
	}
}

// While a member is held elsewhere, the messages about those that a try takes and
// gives back are no reason to try again.
func TestMultiNoEcho(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Poll: 400 * time.Millisecond}
	one, two := redistest.Start(t), redistest.Start(t)
	here, there := open(t, one.URL(), cfg), open(t, two.URL(), cfg)
	for what, names := range map[string][2]string{
		"other names": {redistest.Name(t), redistest.Name(t)}, "names reversed": {redistest.Name(t) + "z", redistest.Name(t)},
		"one name": {"same", "same"},
	} {
		whole := lockkeeper.MultiLock(here.Lock(names[0]), here.FencedLock(names[0]+"+"), there.Lock(names[1]), there.FencedLock(names[1]+"+"))
		for i, server := range []*redistest.Server{one, two} {
			held := key{server: server, name: names[i], channel: "redisson_lock__channel:{" + names[i] + "}"}
			held.takeAs(t, redisson, -1)
			ctx, cancel := context.WithCancel(context.Background())
			granted := lockSoon(whole, ctx)
			awaitLocalWaiters(t, whole, 1)
			held.awaitSubscribers(t, 1)
			server.ResetStats(t)
			began := time.Now()
			const tries = 6
			redistest.Eventually(t, "a few refusals", func() bool { return server.Calls(t)["hrandfield"] >= tries })
			// One may have been under way, and one was due.
			if took := time.Since(began); took < (tries-3)*cfg.Poll/2 {
				t.Errorf("%s, held on server %d: %d tries in %v, with a poll bound of %v", what, i, tries, took, cfg.Poll)
			}
			cancel()
			if g := await(t, "the error", granted); g.err == nil {
				t.Error("granted though cancelled")
			}
			held.unlock(t)
		}
		release(t, acquireLock(t, within(t), whole))
	}
}

// Close of the System that keeps the MultiLock frees all members; close of another
// takes its members with it: the hold is lost, and told, and the rest is freed.
func TestMultiClose(t *testing.T) {
	closeNow := func(t *testing.T, s *site) {
		t.Helper()
		if err := s.Close(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("all", func(t *testing.T) {
		links, whole := distant(t, 2, noPolling)
		hold := acquireLock(t, within(t), whole)
		waiter := lockSoon(whole, within(t))
		awaitLocalWaiters(t, whole, 1)
		closeNow(t, links[0].site)
		isOver(t, hold)
		isError(t, await(t, "the error", waiter).err, lockkeeper.ErrClosed)
		links[0].isFree(t)
		links[1].isFree(t)
		_, err := whole.Acquire(within(t))
		isError(t, err, lockkeeper.ErrClosed)
		links[1].passes(t, links[1].key)
	})
	t.Run("a member's", func(t *testing.T) {
		cfg := brisk
		cfg.Watchdog, cfg.Renewal = 2*time.Second, 200*time.Millisecond
		links, whole := distant(t, 2, cfg)
		hold := acquireLock(t, within(t), whole)
		closeNow(t, links[1].site)
		isOver(t, hold)
		links[0].awaitFree(t)
		links[1].awaitFree(t) // by its TTL
		if hold, err := whole.Acquire(within(t)); err == nil {
			t.Errorf("granted without a member: %v", hold)
		}
		links[0].awaitFree(t)
		links[0].passes(t, links[0].key)
	})
}

func TestMultiInput(t *testing.T) {
	s := open(t, redistest.Shared(t).URL(), brisk)
	base := redistest.Name(t)
	a, b := s.Lock(base+".a"), s.Lock(base+".b")
	var many []*lockkeeper.Lock
	var manyNames []*messages.Lock
	for i := range 65 {
		name := fmt.Sprint(base, i)
		many, manyNames = append(many, s.Lock(name)), append(manyNames, &messages.Lock{Name: name})
	}
	rw := s.ReadWriteLock(base)
	for what, lock := range map[string]*lockkeeper.Lock{
		"none": lockkeeper.MultiLock(), "too many": lockkeeper.MultiLock(many...), "nil": lockkeeper.MultiLock(a, nil),
		"twice": lockkeeper.MultiLock(a, b, s.Lock(base+".a")), "of two kinds": lockkeeper.MultiLock(a, s.FencedLock(base+".a")),
		"read and write": lockkeeper.MultiLock(rw.Read(), rw.Write()), "nested": lockkeeper.MultiLock(a, lockkeeper.MultiLock(b)),
		"wrong inside": lockkeeper.MultiLock(a, lockkeeper.MultiLock()), "no name": lockkeeper.MultiLock(a, s.Lock("")),
	} {
		_, err := lock.Acquire(within(t))
		isError(t, err, lockkeeper.ErrInvalid)
		_, err = lock.TryAcquire(within(t))
		isError(t, err, lockkeeper.ErrInvalid)
		_, err = lock.ForceRelease(within(t))
		isError(t, err, lockkeeper.ErrInvalid)
		_, err = lock.Inspect(within(t))
		if isError(t, err, lockkeeper.ErrInvalid); t.Failed() {
			t.Fatal(what)
		}
	}
	one, two := &messages.Lock{Name: base + ".a"}, &messages.Lock{Name: base + ".b"}
	read := &messages.Lock{Name: base, Kind: messages.Kind_KIND_READ_WRITE, Mode: messages.Mode_MODE_SHARED}
	write := &messages.Lock{Name: base, Kind: messages.Kind_KIND_READ_WRITE}
	p := s.probe(t)
	for what, lock := range map[string]*messages.Lock{
		"none": byMessage(), "too many": byMessage(manyNames...), "nil": byMessage(one, nil), "twice": byMessage(one, two, one),
		"read and write": byMessage(read, write), "nested": byMessage(one, byMessage(two)),
		"a name":                  {Kind: messages.Kind_KIND_MULTI, Name: base, Members: []*messages.Lock{one}},
		"a mode":                  {Kind: messages.Kind_KIND_MULTI, Mode: messages.Mode_MODE_SHARED, Members: []*messages.Lock{one}},
		"members of a plain lock": {Name: base, Members: []*messages.Lock{one}},
		"an unknown kind":         byMessage(one, &messages.Lock{Name: base, Kind: 99}),
		"no RedLock":              byMessage(one, &messages.Lock{Name: base, Kind: messages.Kind_KIND_RED}),
	} {
		refused := ask[*messages.NotAcquired](t, p, &messages.Acquire{Lock: lock, Wait: durationpb.New(0)})
		if refused.Reason != messages.Reason_REASON_INVALID || refused.Detail == "" {
			t.Errorf("%s: %v", what, refused)
		}
	}
	if keys := left(t, redistest.Shared(t), base); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// Eight actors in two processes take random sets of three of six locks, of all kinds:
// nobody gets stuck, no member is ever held twice, and nothing is left behind.
func TestMultiRandomSets(t *testing.T) {
	server := redistest.Start(t)
	base := redistest.Name(t)
	var six []*messages.Lock
	for i, kind := range append(memberKinds[:4:4], memberKinds[0], memberKinds[3]) {
		six = append(six, &messages.Lock{Name: fmt.Sprintf("%s.%d", base, i), Kind: kind.kind})
	}
	sites := []*site{open(t, server.URL(), brisk), open(t, server.URL(), brisk)}
	var inside [6]atomic.Int32
	grants := make([]int, 8)
	longest := make([]time.Duration, len(grants))
	end := time.Now().Add(10 * time.Second)
	var work sync.WaitGroup
	for i := range grants {
		p := sites[i%len(sites)].probe(t)
		request := func(m any) any {
			p.send(m)
			select {
			case answer := <-p.mail:
				return answer
			case <-time.After(redistest.Limit):
				return nil
			}
		}
		work.Go(func() {
			for time.Now().Before(end) {
				set := rand.Perm(len(six))[:3]
				lock := byMessage(six[set[0]], six[set[1]], six[set[2]])
				began := time.Now()
				if answer, ok := request(&messages.Acquire{Lock: lock}).(*messages.Acquired); !ok {
					t.Errorf("actor %d was sent %v", i, answer)
					return
				}
				longest[i] = max(longest[i], time.Since(began))
				for _, n := range set {
					if inside[n].Add(1) != 1 {
						t.Errorf("two hold %s", six[n].Name)
					}
				}
				for _, n := range set {
					inside[n].Add(-1)
				}
				if answer, ok := request(&messages.Release{Lock: lock}).(*messages.Released); !ok {
					t.Errorf("actor %d was sent %v for its release", i, answer)
					return
				}
				grants[i]++
			}
		})
	}
	work.Wait()
	t.Logf("grants of the 8 actors in 10 s: %v; longest waits: %v", grants, longest)
	for i, n := range grants {
		if n == 0 {
			t.Errorf("actor %d was granted nothing", i)
		}
	}
	redistest.Eventually(t, "nothing to be left", func() bool { return len(left(t, server, base)) == 0 })
	for i := range six {
		channel := fmt.Sprintf("redisson_lock__channel:{%s.%d}", base, i)
		redistest.Eventually(t, "no subscriber of "+channel, func() bool { return server.Subscribers(t, channel) == 0 })
	}
}

// A MultiLock gets its turn against a crowd that wants one of its members all the time,
// in the same process or in another.
func TestMultiAgainstACrowd(t *testing.T) {
	server := redistest.Start(t)
	for what, same := range map[string]bool{"in the same process": true, "in another": false} {
		s := open(t, server.URL(), brisk)
		crowded := s
		if !same {
			crowded = open(t, server.URL(), brisk)
		}
		a, b := newKey(t, server), newKey(t, server)
		ctx, stop := context.WithCancel(context.Background())
		var crowd sync.WaitGroup
		var grants atomic.Int64
		for range 4 {
			crowd.Go(func() {
				for ctx.Err() == nil {
					hold, err := crowded.Lock(a.lock).Acquire(ctx)
					if err != nil {
						continue
					}
					grants.Add(1)
					time.Sleep(time.Millisecond)
					if err := hold.Release(context.WithoutCancel(ctx)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		whole := lockkeeper.MultiLock(s.Lock(a.lock), s.Lock(b.lock))
		var waits []time.Duration
		for range 10 {
			others := grants.Load()
			redistest.Eventually(t, "the crowd", func() bool { return grants.Load() > others+10 })
			began := time.Now()
			hold := acquireLock(t, within(t), whole)
			waits = append(waits, time.Since(began).Round(time.Millisecond))
			release(t, hold)
		}
		stop()
		crowd.Wait()
		t.Logf("a crowd of 4 %s, with %d grants: the MultiLock waited %v", what, grants.Load(), waits)
		a.awaitFree(t)
		b.awaitFree(t)
	}
}
