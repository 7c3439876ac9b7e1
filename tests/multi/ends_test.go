package multi_test

// How holds of a MultiLock, and waits for one, end.

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// When one member is lost, all are: the holder is told, and the others are freed.
func TestMultiLoss(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, members := b.lock(b.places)
	for i, member := range members {
		k := locktest.Key{Server: b.places[i/len(memberKinds)].server, Name: member.Name()}
		hold := locktest.AcquireIn(t, locktest.Within(t), whole)
		for _, each := range left(t, k.Server, k.Name) { // a read hold has a key beside the hash
			k.Do(t, "DEL", each)
		}
		if reason := locktest.IsOver(t, hold); reason != messages.Reason_REASON_GONE {
			t.Errorf("%s was deleted: the reason is %v", k.Name, reason)
		}
		b.awaitNothing(t)
	}
	hold := locktest.AcquireIn(t, locktest.Within(t), whole)
	taken := locktest.Key{Server: b.places[1].server, Name: members[len(memberKinds)].Name()}
	taken.Do(t, "DEL", taken.Name)
	taken.TakeAs(t, locktest.Redisson, -1)
	if reason := locktest.IsOver(t, hold); reason != messages.Reason_REASON_TAKEN {
		t.Errorf("%s was taken: the reason is %v", taken.Name, reason)
	}
	redistest.Eventually(t, "nothing but that to be left", func() bool { return slices.Equal(b.left(t), []string{taken.Name}) })
	locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
	taken.Do(t, "DEL", taken.Name)
}

func TestMultiLease(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, members := b.lock(b.places)
	each := func(check func(k locktest.Key)) {
		for i, member := range members {
			check(locktest.Key{Server: b.places[i/len(memberKinds)].server, Name: member.Name()})
		}
	}
	const lease = 1500 * time.Millisecond
	hold := locktest.AcquireIn(t, locktest.Within(t), whole, lockkeeper.WithLease(lease))
	each(func(k locktest.Key) {
		if ttl := k.Ttl(t); ttl > lease {
			t.Errorf("%s has a TTL of %v, of a lease of %v", k.Name, ttl, lease)
		}
	})
	if reason := locktest.IsOver(t, hold); reason != messages.Reason_REASON_EXPIRED {
		t.Errorf("the lease is over, and the reason is %v", reason)
	}
	b.awaitNothing(t)

	hold = locktest.AcquireIn(t, locktest.Within(t), whole)
	each(func(k locktest.Key) {
		first := k.Expiry(t)
		redistest.Eventually(t, k.Name+" to be renewed", func() bool { return k.Expiry(t).After(first) })
	})
	locktest.Release(t, hold)
}

// Whatever way a waiter gives up, it leaves nothing behind.
func TestMultiWaitersGiveUp(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, _ := b.lock(b.places)
	_, elsewhere := b.lock(b.elsewhere(t))
	blocker := locktest.AcquireIn(t, locktest.Within(t), elsewhere[len(memberKinds)]) // on the second server
	before := b.left(t)

	_, err := whole.TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	_, err = whole.Acquire(locktest.Within(t), lockkeeper.WithWait(200*time.Millisecond))
	locktest.IsError(t, err, lockkeeper.ErrTimeout)
	ctx, cancel := context.WithCancel(context.Background())
	granted := locktest.AcquireSoon(ctx, whole)
	locktest.AwaitWaiters(t, whole, 1)
	cancel()
	if g := locktest.Await(t, "the error", granted); g.Err == nil {
		t.Error("granted though cancelled")
	}
	redistest.Eventually(t, "nothing but the blocker to be left", func() bool { return slices.Equal(b.left(t), before) })
	for i, p := range b.places {
		channel := "redisson_lock__channel:{" + fmt.Sprintf("%s.%d.plain", b.base, i) + "}"
		redistest.Eventually(t, "no subscriber of "+channel, func() bool { return p.server.Subscribers(t, channel) == 0 })
	}
	locktest.Release(t, blocker)
	locktest.Release(t, locktest.AcquireIn(t, locktest.Within(t), whole))
}

func TestMultiForceRelease(t *testing.T) {
	b := newBundle(t, brisk, redistest.Shared(t), redistest.Start(t))
	whole, members := b.lock(b.places)
	there, _ := b.lock(b.elsewhere(t))
	for what, by := range map[string]*lockkeeper.Lock{"here": whole, "elsewhere": there} {
		hold := locktest.AcquireIn(t, locktest.Within(t), whole)
		if status, err := there.Inspect(locktest.Within(t)); err != nil || !status.Locked || status.HeldHere {
			t.Errorf("%s: %+v, %v", what, status, err)
		}
		if was, err := by.ForceRelease(locktest.Within(t)); !was || err != nil {
			t.Errorf("%s: %v, %v", what, was, err)
		}
		want := messages.Reason_REASON_FORCED
		if by == there {
			want = messages.Reason_REASON_GONE
		}
		if reason := locktest.IsOver(t, hold); reason != want {
			t.Errorf("forced %s: the reason is %v, want %v", what, reason, want)
		}
		b.awaitNothing(t)
		if was, err := by.ForceRelease(locktest.Within(t)); was || err != nil {
			t.Errorf("%s, when free: %v, %v", what, was, err)
		}
	}
	one := locktest.AcquireIn(t, locktest.Within(t), members[0])
	if was, err := whole.ForceRelease(locktest.Within(t)); !was || err != nil {
		t.Errorf("with one member held: %v, %v", was, err)
	}
	locktest.IsOver(t, one)
}

// The death of an actor that holds or waits for a MultiLock releases it.
func TestMultiOwnerDies(t *testing.T) {
	tr := locktest.NewTree(t, lockkeeper.Config{})
	lock := byMessage(&messages.Lock{Name: redistest.Name(t)}, &messages.Lock{Name: redistest.Name(t), Kind: messages.Kind_KIND_FAIR})
	holder, heir, next := tr.Client(t, "holder"), tr.Client(t, "heir"), tr.Client(t, "next")
	waiters := func() int {
		next.Request(&messages.Inspect{Lock: lock})
		return int(locktest.Expect[*messages.Status](t, next).Waiters)
	}
	for range 2 {
		holder.Request(&messages.Acquire{Lock: lock})
		locktest.Expect[*messages.Acquired](t, holder)
	}
	heir.Request(&messages.Acquire{Lock: lock})
	redistest.Eventually(t, "the heir waits", func() bool { return waiters() == 1 })
	tr.System.Root.Stop(heir.Pid)
	redistest.Eventually(t, "the heir is gone", func() bool { return waiters() == 0 })
	tr.System.Root.Stop(holder.Pid)
	next.Request(&messages.Acquire{Lock: lock})
	if got := locktest.Expect[*messages.Acquired](t, next); got.HoldCount != 1 {
		t.Errorf("granted %d times", got.HoldCount)
	}
	tr.System.Root.Stop(next.Pid)
	for _, member := range lock.Members {
		redistest.Eventually(t, "the lock is free", func() bool { return tr.Owner(t, member.Name) == "" })
	}
}

// Close of the System that keeps the MultiLock frees all members; close of another
// takes its members with it: the hold is lost, and told, and the rest is freed.
func TestMultiClose(t *testing.T) {
	closeNow := func(t *testing.T, s *locktest.Site) {
		t.Helper()
		if err := s.Close(locktest.Within(t)); err != nil {
			t.Fatal(err)
		}
	}
	// home comes first: the MultiLock's actor is in the System of the name that sorts first.
	homeFirst := func(links []*locktest.Remote) {
		if links[1].LockName < links[0].LockName {
			links[0], links[1] = links[1], links[0]
		}
	}
	t.Run("all", func(t *testing.T) {
		links, whole := distant(t, 2, locktest.NoPolling)
		homeFirst(links)
		hold := locktest.AcquireIn(t, locktest.Within(t), whole)
		waiter := locktest.AcquireSoon(locktest.Within(t), whole)
		locktest.AwaitWaiters(t, whole, 1)
		closeNow(t, links[0].Site)
		locktest.IsOver(t, hold)
		locktest.IsError(t, locktest.Await(t, "the error", waiter).Err, lockkeeper.ErrClosed)
		links[0].IsFree(t)
		links[1].IsFree(t)
		_, err := whole.Acquire(locktest.Within(t))
		locktest.IsError(t, err, lockkeeper.ErrClosed)
		links[1].Passes(t, links[1].Key)
	})
	t.Run("a member's", func(t *testing.T) {
		cfg := brisk
		cfg.Watchdog, cfg.Renewal = 2*time.Second, 200*time.Millisecond
		links, whole := distant(t, 2, cfg)
		homeFirst(links)
		links[0].Lame, links[1].Lame = true, true // both say that the part on the other was not released
		hold := locktest.AcquireIn(t, locktest.Within(t), whole)
		closeNow(t, links[1].Site)
		locktest.IsOver(t, hold)
		links[0].AwaitFree(t)
		links[1].AwaitFree(t) // by its TTL
		if hold, err := whole.Acquire(locktest.Within(t)); err == nil {
			t.Errorf("granted without a member: %v", hold)
		}
		links[0].AwaitFree(t)
		links[0].Passes(t, links[0].Key)
	})
}
