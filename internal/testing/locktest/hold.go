package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Grant is the result of an Acquire on a goroutine.
type Grant struct {
	Hold *lockkeeper.Hold
	Err  error
	At   time.Time
}

// Got waits for a grant; the test ends on any error.
func Got(t testing.TB, granted <-chan Grant) Grant {
	t.Helper()
	g := Await(t, "the lock", granted)
	if g.Err != nil {
		t.Fatal(g.Err)
	}
	return g
}

// Release releases a hold; the test ends on an error, or if it takes too long.
func Release(t testing.TB, hold *lockkeeper.Hold) {
	t.Helper()
	releaseIn(t, Within(t), hold)
}

func releaseIn(t testing.TB, ctx context.Context, hold *lockkeeper.Hold) {
	t.Helper()
	OK(t, Limited(t, "the release", func() error { return hold.Release(ctx) }))
}

// Acquire acquires a lock of any kind.
func Acquire(t testing.TB, l *lockkeeper.Lock, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	return AcquireIn(t, Within(t), l, options...)
}

// AcquireIn acquires the lock with that context; the test ends on any error.
func AcquireIn(t testing.TB, ctx context.Context, l *lockkeeper.Lock, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	return Got(t, AcquireSoon(ctx, l, options...)).Hold
}

// AcquireSoon acquires on a goroutine. On a busy machine the reply of Redis may come too late for a short lease: then
// it asks again.
func AcquireSoon(ctx context.Context, l *lockkeeper.Lock, options ...lockkeeper.Option) <-chan Grant {
	granted := make(chan Grant, 1)
	go func() {
		hold, err := l.Acquire(ctx, options...)
		for IsLateReply(err) {
			hold, err = l.Acquire(ctx, options...)
		}
		granted <- Grant{hold, err, time.Now()}
	}()
	return granted
}

// IsLateReply reports whether an Acquire has failed because the reply of Redis came too late for its lease.
func IsLateReply(err error) bool {
	return errors.Is(err, lockkeeper.ErrUnavailable) && strings.Contains(err.Error(), "too long for a lease")
}

// Pending checks that a request has not been granted yet, and says why it must not be.
func Pending(t testing.TB, granted <-chan Grant, why string) {
	t.Helper()
	select {
	case g := <-granted:
		t.Fatalf("granted (%v), though %s", g.Err, why)
	default:
	}
}

// AwaitWaiters waits until n requests wait for a lock in its process.
func AwaitWaiters(t testing.TB, l *lockkeeper.Lock, n int) {
	t.Helper()
	var seen string
	defer func() {
		if t.Failed() {
			t.Log("seen last:", seen)
		}
	}()
	redistest.Eventually(t, fmt.Sprintf("%d waiters", n), func() bool {
		status, err := l.Inspect(Within(t))
		seen = fmt.Sprintf("%+v, %v", status, err)
		return err == nil && status.Waiters == n
	})
}

// EndedBy waits until a hold is lost and returns the reason, which must be one of reasons unless there are none.
func EndedBy(t testing.TB, hold *lockkeeper.Hold, reasons ...messages.Reason) messages.Reason {
	t.Helper()
	Await(t, "the loss", hold.Context().Done())
	why := IsError(t, context.Cause(hold.Context()), lockkeeper.ErrLost)
	if len(reasons) > 0 && !slices.Contains(reasons, why) {
		t.Errorf("the hold ended because of %v, want %v", why, reasons)
	}
	return why
}

// Taken is a hold of a lock, or a permit.
type Taken interface {
	Context() context.Context
	Err() error
	Release(ctx context.Context) error
}

// ExpectValidFor checks that none of the holds is lost within d.
func ExpectValidFor[H Taken](t testing.TB, d time.Duration, holds ...H) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for _, hold := range holds {
		select {
		case <-hold.Context().Done():
		case <-ctx.Done():
		}
		OK(t, hold.Err())
	}
}
