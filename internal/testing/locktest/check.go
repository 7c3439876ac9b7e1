package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// OK ends the test on an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Check fails the test on an error, and goes on.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Must returns the result of a call, and ends the test if there is an error: Must(l.Inspect(ctx))(t).
func Must[T any](result T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return result
	}
}

// Fails checks that a call ends with an error, as IsError does: Fails(l.TryAcquire(ctx))(t, lockkeeper.ErrHeld).
func Fails[T any](_ T, err error) func(t testing.TB, want error, words ...string) messages.Reason {
	return func(t testing.TB, want error, words ...string) messages.Reason {
		t.Helper()
		return IsError(t, err, want, words...)
	}
}

// NotYet checks that nothing has come over a channel yet, and says what that would be.
func NotYet[T any](t testing.TB, from <-chan T, what string) {
	t.Helper()
	select {
	case came := <-from:
		t.Fatalf("%s: %v", what, came)
	default:
	}
}

// Equal fails the test unless got is what is wanted; the format has one verb, for got.
func Equal[T comparable](t testing.TB, got, want T, format string) {
	t.Helper()
	if got != want {
		t.Errorf(format+", want %v", got, want)
	}
}

// ExpectValid checks that holds are valid.
func ExpectValid(t testing.TB, holds ...*lockkeeper.Hold) {
	t.Helper()
	for _, hold := range holds {
		if !hold.Valid() {
			t.Errorf("a hold is not valid: %v", hold.Err())
		}
	}
}

// ExpectRefused checks that a try of each lock ends with an error.
func ExpectRefused(t testing.TB, want error, locks ...*lockkeeper.Lock) {
	t.Helper()
	for _, l := range locks {
		_, err := l.TryAcquire(Within(t))
		IsError(t, err, want)
	}
}

// ExpectEnd checks that a request ends with an error.
func ExpectEnd(t testing.TB, granted <-chan Grant, want error) {
	t.Helper()
	if g := Await(t, "the refusal", granted); !errors.Is(g.Err, want) {
		t.Errorf("the request ended with %v, want %v", g.Err, want)
	}
}

// ForceRelease releases a lock by force, or only its holds of some owners, and checks whether it was held.
func ForceRelease(t testing.TB, l *lockkeeper.Lock, held bool, owners ...string) {
	t.Helper()
	if was, err := l.ForceRelease(Within(t), owners...); err != nil || was != held {
		t.Errorf("a forced release of %s, %v: held %v, %v, want held %v", l.Name(), owners, was, err, held)
	}
}

// ExpectGranted acquires and releases locks, one after another.
func ExpectGranted(t testing.TB, locks ...*lockkeeper.Lock) {
	t.Helper()
	for _, l := range locks {
		Release(t, Acquire(t, l))
	}
}

// Stop closes a System, and fails the test if Close returns an error.
func Stop(t testing.TB, s interface{ Close(context.Context) error }) {
	t.Helper()
	Check(t, s.Close(Within(t)))
}

// Ensure checks that a hold can be made to last for d.
func Ensure(t testing.TB, hold *lockkeeper.Hold, d time.Duration) {
	t.Helper()
	Check(t, hold.Ensure(Within(t), d))
}

// Extend checks that a hold can have a fixed lease of d.
func Extend(t testing.TB, hold *lockkeeper.Hold, d time.Duration) {
	t.Helper()
	Check(t, hold.Extend(Within(t), d))
}

// AwaitRenewals waits until renewals have moved the expiry by more than d.
func (k Key) AwaitRenewals(t testing.TB, d time.Duration) {
	t.Helper()
	began := k.Expiry(t)
	redistest.Eventually(t, "renewals", func() bool { return k.Expiry(t).Sub(began) > d })
}
