package locktest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Within is a context that ends only when a test fails.
func Within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
	t.Cleanup(cancel)
	return ctx
}

// Await receives from a channel; the test fails if nothing comes in time.
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

// Go makes a call on a goroutine, and returns where its result comes.
func Go[T any](call func() T) <-chan T {
	done := make(chan T, 1)
	go func() { done <- call() }()
	return done
}

// Limited makes a call on a goroutine, and fails the test if it does not return in time.
func Limited[T any](t testing.TB, what string, call func() T) T {
	t.Helper()
	return Await(t, what, Go(call))
}

// Stopwatch begins to measure time until the test ends. It counts steps of 10 ms, so it stands still while a busy
// machine does not run this process.
func Stopwatch(t testing.TB) (read func() time.Duration) {
	const step = 10 * time.Millisecond
	var steps atomic.Int64
	var over atomic.Bool
	var work sync.WaitGroup
	t.Cleanup(func() { over.Store(true); work.Wait() })
	work.Go(func() {
		for !over.Load() {
			time.Sleep(step)
			steps.Add(1)
		}
	})
	return func() time.Duration { return time.Duration(steps.Load()) * step }
}

// InTime fails the test if an action takes longer than Soon.
func InTime(t *testing.T, what string, action func()) {
	t.Helper()
	took := Stopwatch(t)
	action()
	if took() > Soon {
		t.Errorf("%s took %v", what, took())
	}
}

// IsError checks that err is want and contains all of the words, and returns its reason.
func IsError(t testing.TB, err, want error, words ...string) messages.Reason {
	t.Helper()
	var as *lockkeeper.Error
	if !errors.Is(err, want) || !errors.As(err, &as) {
		t.Fatalf("error %v, want one that is %v", err, want)
	}
	ExpectWords(t, err.Error(), words...)
	return as.Reason
}

// lossOf is the reason of a loss, 0 for any other error.
func lossOf(err error) messages.Reason {
	var why *lockkeeper.Error
	if errors.Is(err, lockkeeper.ErrLost) && errors.As(err, &why) {
		return why.Reason
	}
	return 0
}

// ExpectWords checks that a text contains all of the words.
func ExpectWords(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not contain %q", text, word)
		}
	}
}
