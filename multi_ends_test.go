package lockkeeper_test

// How holds of a MultiLock, and waits for one, end.

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

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
		links[0].lame = true // it says that it could not release the part on the other
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
