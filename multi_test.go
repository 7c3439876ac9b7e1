package lockkeeper_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
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
