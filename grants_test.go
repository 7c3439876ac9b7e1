package lockkeeper_test

// What tests of every kind of lock ask for and look at.

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

// obtain acquires a lock of any kind.
func obtain(t testing.TB, l *lockkeeper.Lock, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	return obtainIn(t, within(t), l, options...)
}

func obtainIn(t testing.TB, ctx context.Context, l *lockkeeper.Lock, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	return got(t, obtainSoon(ctx, l, options...)).hold
}

// obtainSoon acquires on a goroutine.
func obtainSoon(ctx context.Context, l *lockkeeper.Lock, options ...lockkeeper.Option) <-chan grant {
	granted := make(chan grant, 1)
	go func() {
		hold, err := l.Acquire(ctx, options...)
		granted <- grant{hold, err, time.Now()}
	}()
	return granted
}

// pending checks that a request has not been granted yet.
func pending(t testing.TB, granted <-chan grant, why string) {
	t.Helper()
	select {
	case g := <-granted:
		t.Fatalf("granted (%v), though %s", g.err, why)
	default:
	}
}

// awaitWaiting waits until so many requests wait for a lock in its process.
func awaitWaiting(t testing.TB, l *lockkeeper.Lock, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d waiters", n), func() bool {
		status, err := l.Inspect(within(t))
		return err == nil && status.Waiters == n
	})
}

// endedBy checks why a hold is over, as soon as it is: for one of the reasons.
func endedBy(t testing.TB, hold *lockkeeper.Hold, reasons ...messages.Reason) {
	t.Helper()
	await(t, "the end of the hold", hold.Context().Done())
	if why := isError(t, context.Cause(hold.Context()), lockkeeper.ErrLost); !slices.Contains(reasons, why) {
		t.Errorf("the hold ended because of %v, want %v", why, reasons)
	}
}

// robbed is what a holder is told whose lock is gone, or has been taken since.
var robbed = []messages.Reason{messages.Reason_REASON_GONE, messages.Reason_REASON_TAKEN}
