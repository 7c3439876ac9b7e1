package kinds_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// inAnotherFormat runs a subtest for each two of the kinds, of which the second writes another hash.
func inAnotherFormat(t *testing.T, words []string, test func(t *testing.T, held, as string)) {
	t.Helper()
	storedAs := func(word string) messages.Kind { return kinds.Of(kinds.Forms[word].Kind).StoredAs }
	for _, held := range words {
		for _, as := range words {
			if storedAs(held) != storedAs(as) {
				t.Run(held+", then "+as, func(t *testing.T) {
					t.Parallel()
					test(t, held, as)
				})
			}
		}
	}
}

// A lock whose name another process uses as another kind is shown with its owner, refused to others, and freed by
// force as one of its own kind is: nothing of it stays.
func TestOtherKind_IsShownRefusedAndFreed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := locktest.Open(t, server.URL(), lockkeeper.Config{})
	a.SkipCloseCheck = true // its holds are lost
	inAnotherFormat(t, locktest.Words(), func(t *testing.T, held, as string) {
		k := locktest.NewKey(t, server)
		b := locktest.Open(t, server.URL(), lockkeeper.Config{})
		lock := locktest.Kinds[held](a, k.LockName)
		locktest.Acquire(t, lock)
		usesAsOtherKind(t, k, lock, locktest.Kinds[as](b, k.LockName))
	})
}

// usesAsOtherKind checks what a handle of another kind does to a lock that is held.
func usesAsOtherKind(t *testing.T, k locktest.Key, lock, handle *lockkeeper.Lock) {
	t.Helper()
	ctx := locktest.Within(t)
	own, err := lock.Inspect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := handle.Inspect(ctx)
	if err != nil || !seen.Locked || seen.Holder != own.Holder || !slices.Equal(seen.Owners, own.Owners) {
		t.Errorf("shown with the owner %q, owners %q, %v, want %q", seen.Holder, seen.Owners, err, own.Owners)
	}
	_, err = handle.TryAcquire(ctx)
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	if err == nil || !strings.Contains(err.Error(), own.Holder) {
		t.Errorf("the refusal does not name the owner %s: %v", own.Holder, err)
	}
	if was, err := handle.ForceRelease(ctx, own.Owners...); !was || err != nil {
		t.Errorf("a forced release: held %v, %v", was, err)
	}
	if left, err := k.Server.Do(t, "HGETALL", k.Name).AsStrMap(); err != nil || len(left) > 0 {
		t.Errorf("left after the forced release: %v, %v", left, err)
	}
	hold := locktest.Must(handle.Acquire(ctx, lockkeeper.WithWait(5*time.Second)))(t)
	locktest.Release(t, hold)
}

// A waiter of another kind is granted the free lock when it polls, and keeps it: it gets no transfer, which would have
// the format of the holder's kind.
func TestOtherKind_WaiterKeepsItsHold(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	inAnotherFormat(t, locktest.Words(locktest.HasWaitQueue), func(t *testing.T, held, as string) {
		cfg := lockkeeper.Config{Poll: 500 * time.Millisecond, Watchdog: time.Second}
		k, a, b := locktest.NewKey(t, server), locktest.Open(t, server.URL(), cfg), locktest.Open(t, server.URL(), cfg)
		hold := locktest.Acquire(t, locktest.Kinds[held](a, k.LockName))
		granted := locktest.AcquireSoon(locktest.Within(t), locktest.Kinds[as](b, k.LockName))
		redistest.Eventually(t, "the entry of the waiter", func() bool {
			entries := k.Number(t, "HLEN", keyspace.WaitQueue(k.Name)) + k.Number(t, "HLEN", keyspace.ReadWriteQueue(k.Name))
			return entries == 1
		})
		locktest.Release(t, hold)
		next := locktest.Got(t, granted).Hold
		select {
		case <-next.Context().Done():
			t.Fatalf("the hold is lost: %v", context.Cause(next.Context()))
		case <-time.After(2 * cfg.Watchdog): // several renewals
		}
		locktest.Release(t, next)
		locktest.Release(t, locktest.Acquire(t, locktest.Kinds[held](a, k.LockName)))
	})
}
