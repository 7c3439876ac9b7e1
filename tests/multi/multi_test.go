package multi_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Whichever member is held elsewhere: none of the others is held meanwhile.
func TestMultiAllOrNothing(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, _ := b.lock(b.places)
	_, elsewhere := b.lock(b.elsewhere(t))
	for i, member := range elsewhere {
		if kind := memberKinds[i%len(memberKinds)]; kind.mode == messages.Mode_MODE_SHARED {
			continue // another reader keeps nobody out
		}
		hold := locktest.AcquireIn(t, locktest.Within(t), member)
		before := b.left(t)
		_, err := whole.TryAcquire(locktest.Within(t))
		locktest.IsError(t, err, lockkeeper.ErrHeld)
		if after := b.left(t); !slices.Equal(after, before) {
			t.Errorf("with %s held elsewhere, a try leaves %q, and before there was %q", member.Name(), after, before)
		}
		locktest.Release(t, hold)
	}
	hold := locktest.AcquireIn(t, locktest.Within(t), whole)
	for i, member := range elsewhere {
		other, err := member.TryAcquire(locktest.Within(t))
		if memberKinds[i%len(memberKinds)].mode == messages.Mode_MODE_SHARED {
			if err != nil {
				t.Errorf("%s: %v", member.Name(), err)
				continue
			}
			locktest.Release(t, other)
			continue
		}
		locktest.IsError(t, err, lockkeeper.ErrHeld)
	}
	locktest.Release(t, hold)
	if keys := b.left(t); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// Locks on one Redis are taken by one command, whatever their kinds.
func TestMultiOneScript(t *testing.T) {
	b := newBundle(t, locktest.NoPolling, redistest.Start(t))
	whole, members := b.lock(b.places)
	server := b.places[0].server
	locktest.Release(t, locktest.AcquireIn(t, locktest.Within(t), whole)) // the server knows the scripts
	server.ResetStats(t)
	hold := locktest.AcquireIn(t, locktest.Within(t), whole)
	calls := server.Calls(t)
	if n := calls["evalsha"] + calls["eval"]; n != 1 {
		t.Errorf("%d members were taken by %d scripts, want 1", len(members), n)
	}
	locktest.Release(t, hold)
	calls = server.Calls(t)
	if n := calls["evalsha"] - 1; n > int64(len(members)) {
		t.Errorf("%d members were given back by %d scripts", len(members), n)
	}
}

// The order in which the members are named does not matter, except for the tokens.
func TestMultiOrder(t *testing.T) {
	s := locktest.Open(t, redistest.Shared(t).URL(), brisk)
	base := redistest.Name(t)
	a, b, c := s.FencedLock(base+".a"), s.Lock(base+".b"), s.FencedLock(base+".c")
	for range 3 { // the counters differ
		locktest.Release(t, locktest.AcquireIn(t, locktest.Within(t), c))
	}
	one, other := lockkeeper.MultiLock(a, b, c), lockkeeper.MultiLock(c, a, b)
	hold := locktest.AcquireIn(t, locktest.Within(t), one)
	if got, want := hold.MemberTokens(), []int64{1, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("tokens %v, want %v", got, want)
	}
	if status, err := other.Inspect(locktest.Within(t)); err != nil || !status.HeldHere {
		t.Errorf("in another order: %+v, %v", status, err)
	}
	_, err := other.TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	inner := locktest.AcquireIn(t, hold.Context(), other)
	if got, want := inner.MemberTokens(), []int64{4, 1, 0}; inner.Count() != 2 || !slices.Equal(got, want) {
		t.Errorf("re-entered in another order: count %d, tokens %v, want 2 and %v", inner.Count(), got, want)
	}
	locktest.Release(t, inner)
	locktest.Release(t, hold)

	p := s.Probe(t)
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
	first := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: multi(name(true, ".a"), name(false, ".b"), name(true, ".c"))})
	second := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: multi(name(true, ".c"), name(false, ".b"), name(true, ".a"))})
	if got, want := first.MemberTokens, []int64{2, 0, 5}; !slices.Equal(got, want) {
		t.Errorf("by message: tokens %v, want %v", got, want)
	}
	if got, want := second.MemberTokens, []int64{5, 0, 2}; second.HoldCount != 2 || !slices.Equal(got, want) {
		t.Errorf("by message, in another order: count %d, tokens %v, want 2 and %v", second.HoldCount, got, want)
	}
	for range 2 {
		locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: multi(name(false, ".b"), name(true, ".a"), name(true, ".c"))})
	}
}

// All members share one deadline: none begins afresh with each.
func TestMultiSharedDeadline(t *testing.T) {
	cfg := brisk
	cfg.CallTimeout = 700 * time.Millisecond
	links, whole := distant(t, 3, cfg)
	for _, r := range links {
		r.Proxy.Delay(150 * time.Millisecond) // each takes 300 ms, all of them longer than one may
	}
	_, err := whole.TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrUnavailable)
	for _, r := range links {
		r.Proxy.Delay(0)
		r.AwaitFree(t)
	}
	locktest.Release(t, locktest.AcquireIn(t, locktest.Within(t), whole))
}

// What was taken is given back also when a later server hangs, or its reply is lost.
func TestMultiRollBack(t *testing.T) {
	for what, fault := range map[string]func(t *testing.T, r *locktest.Remote) (end func()){
		"paused": func(t *testing.T, r *locktest.Remote) func() { r.Server.Pause(t); return func() { r.Server.Resume(t) } },
		"replies dropped": func(_ *testing.T, r *locktest.Remote) func() {
			r.Proxy.DropReplies(true)
			return func() { r.Proxy.DropReplies(false) }
		},
		"cut off": func(_ *testing.T, r *locktest.Remote) func() {
			r.Proxy.Refuse(true)
			return func() { r.Proxy.Refuse(false) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := locktest.NoPolling
			cfg.CallTimeout = 500 * time.Millisecond
			links, whole := distant(t, 2, cfg)
			first, second := links[0], links[1]
			end := fault(t, second)
			_, err := whole.TryAcquire(locktest.Within(t))
			locktest.IsError(t, err, lockkeeper.ErrUnavailable)
			first.AwaitFree(t) // long before its TTL is over
			end()
			second.AwaitFree(t)
			locktest.Release(t, locktest.AcquireIn(t, locktest.Within(t), whole))
			first.IsFree(t)
			second.IsFree(t)
			// What is still to be confirmed needs the member's System: the MultiLock's own goes first.
			home := first
			if second.LockName < first.LockName {
				home = second
			}
			if err := home.Close(locktest.Within(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A release that rolls back a try may arrive when a later try has taken the lock: it
// must not take it away.
func TestMultiLateRollBack(t *testing.T) {
	links, whole := distant(t, 2, locktest.Impatient)
	first, second := links[0], links[1]
	second.TakeAs(t, locktest.Redisson, time.Minute)
	late := first.Proxy.Hold(redistest.Script(scripts.Release.SHA))
	granted := locktest.AcquireSoon(locktest.Within(t), whole)
	late.Wait(t)
	second.Unlock(t)
	hold := locktest.Got(t, granted).Hold
	late.Release(t)
	if err := hold.Ensure(locktest.Within(t), time.Second); err != nil || !first.Exists(t) || !second.Exists(t) {
		t.Errorf("after the late roll-back: %v, and the locks are held by %v and %v", err, first.Owners(t), second.Owners(t))
	}
	locktest.Release(t, hold)
	first.AwaitFree(t)
	second.AwaitFree(t)
}

// A holder of one member in the same process is a stranger like any other.
func TestMultiBesideItsMembers(t *testing.T) {
	server := redistest.Shared(t)
	for _, kind := range memberKinds[:4] {
		t.Run(kind.name, func(t *testing.T) {
			s := locktest.Open(t, server.URL(), brisk)
			a, b, c := locktest.NewKey(t, server), locktest.NewKey(t, server), locktest.NewKey(t, server)
			plain := kind.of(s, a.LockName)
			one := lockkeeper.MultiLock(plain, s.Lock(b.LockName))
			two := lockkeeper.MultiLock(s.Lock(c.LockName), kind.of(s, a.LockName))
			for _, turn := range []struct {
				what         string
				holder, wait *lockkeeper.Lock
			}{{"a member, then the MultiLock", plain, one}, {"the MultiLock, then a member", one, plain}, {"two MultiLocks", one, two}} {
				hold := locktest.AcquireIn(t, locktest.Within(t), turn.holder)
				owners := a.Owners(t)
				_, err := turn.wait.TryAcquire(locktest.Within(t))
				locktest.IsError(t, err, lockkeeper.ErrHeld)
				granted := locktest.AcquireSoon(locktest.Within(t), turn.wait)
				locktest.AwaitWaiters(t, turn.wait, 1)
				if err := hold.Ensure(locktest.Within(t), brisk.Watchdog*989/1000); err != nil { // behind whatever the waiter has sent
					t.Errorf("%s: %v", turn.what, err)
				}
				if now := a.Owners(t); !maps.Equal(now, owners) {
					t.Errorf("%s: held by %v, and now by %v", turn.what, owners, now)
				}
				locktest.Release(t, hold)
				locktest.Release(t, locktest.Got(t, granted).Hold)
			}
			for _, k := range []locktest.Key{a, b, c} {
				k.AwaitFree(t)
			}
		})
	}
}

func TestMultiReentry(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, members := b.lock(b.places)
	outer := locktest.AcquireIn(t, locktest.Within(t), whole)
	_, err := whole.Acquire(outer.Context(), lockkeeper.WithoutReentry())
	locktest.IsError(t, err, lockkeeper.ErrReentry)
	inner := locktest.AcquireIn(t, outer.Context(), whole)
	if counts := b.counts(t, members); inner.Count() != 2 || len(counts) != 1 || !counts["2"] {
		t.Errorf("re-entered: count %d, in Redis %v", inner.Count(), counts)
	}
	locktest.Release(t, inner)
	if counts := b.counts(t, members); len(counts) != 1 || !counts["1"] {
		t.Errorf("after the inner release: in Redis %v", counts)
	}
	locktest.Release(t, outer)
	if keys := b.left(t); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

func TestMultiInput(t *testing.T) {
	s := locktest.Open(t, redistest.Shared(t).URL(), brisk)
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
		_, err := lock.Acquire(locktest.Within(t))
		locktest.IsError(t, err, lockkeeper.ErrInvalid)
		_, err = lock.TryAcquire(locktest.Within(t))
		locktest.IsError(t, err, lockkeeper.ErrInvalid)
		_, err = lock.ForceRelease(locktest.Within(t))
		locktest.IsError(t, err, lockkeeper.ErrInvalid)
		_, err = lock.Inspect(locktest.Within(t))
		if locktest.IsError(t, err, lockkeeper.ErrInvalid); t.Failed() {
			t.Fatal(what)
		}
	}
	one, two := &messages.Lock{Name: base + ".a"}, &messages.Lock{Name: base + ".b"}
	read := &messages.Lock{Name: base, Kind: messages.Kind_KIND_READ_WRITE, Mode: messages.Mode_MODE_SHARED}
	write := &messages.Lock{Name: base, Kind: messages.Kind_KIND_READ_WRITE}
	p := s.Probe(t)
	for what, lock := range map[string]*messages.Lock{
		"none": byMessage(), "too many": byMessage(manyNames...), "nil": byMessage(one, nil), "twice": byMessage(one, two, one),
		"read and write": byMessage(read, write), "nested": byMessage(one, byMessage(two)),
		"a name":                  {Kind: messages.Kind_KIND_MULTI, Name: base, Members: []*messages.Lock{one}},
		"a mode":                  {Kind: messages.Kind_KIND_MULTI, Mode: messages.Mode_MODE_SHARED, Members: []*messages.Lock{one}},
		"members of a plain lock": {Name: base, Members: []*messages.Lock{one}},
		"an unknown kind":         byMessage(one, &messages.Lock{Name: base, Kind: 99}),
		"no RedLock":              byMessage(one, &messages.Lock{Name: base, Kind: messages.Kind_KIND_RED}),
	} {
		refused := locktest.Ask[*messages.NotAcquired](t, p, &messages.Acquire{Lock: lock, Wait: durationpb.New(0)})
		if refused.Reason != messages.Reason_REASON_INVALID || refused.Detail == "" {
			t.Errorf("%s: %v", what, refused)
		}
	}
	if keys := left(t, redistest.Shared(t), base); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}
