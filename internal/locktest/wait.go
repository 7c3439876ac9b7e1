package locktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Within is a context that only a test that fails sees end.
func Within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
	t.Cleanup(cancel)
	return ctx
}

// Await is what comes through a channel; the test ends if nothing does.
func Await[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(redistest.Limit + time.Second):
		t.Fatalf("not within %v: %s", redistest.Limit, what)
		panic("not reached")
	}
}

// Limited is for calls that nothing else would end.
func Limited[T any](t testing.TB, what string, call func() T) T {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- call() }()
	return Await(t, what, done)
}

// InTime fails a test whose action takes longer than is bearable for an error.
func InTime(t *testing.T, what string, action func()) {
	t.Helper()
	began := time.Now()
	action()
	if took := time.Since(began); took > Soon {
		t.Errorf("%s took %v", what, took)
	}
}

// IsError checks what an error is, and that it says all of these words, and gives its reason.
func IsError(t testing.TB, err, want error, words ...string) messages.Reason {
	t.Helper()
	var as *lockkeeper.Error
	if !errors.Is(err, want) || !errors.As(err, &as) {
		t.Fatalf("error %v, want one that is %v", err, want)
	}
	ExpectWords(t, err.Error(), words...)
	return as.Reason
}

// lossOf is why a lock was lost, 0 for an error that is no loss.
func lossOf(err error) messages.Reason {
	var why *lockkeeper.Error
	if errors.Is(err, lockkeeper.ErrLost) && errors.As(err, &why) {
		return why.Reason
	}
	return 0
}

// Says checks that a text has all of these words.
func ExpectWords(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}
