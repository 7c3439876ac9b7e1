package turns_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// oddNames are names with every byte, and with text that a script or a message might interpret.
func oddNames(t *testing.T) map[string]string {
	var every []rune // with each byte of UTF-8
	for r := rune(0); r < 0xc0; r++ {
		every = append(every, r)
	}
	for r := rune(0xc0); r < 0x800; r += 0x40 {
		every = append(every, r)
	}
	for r := rune(0x800); r < 0x10000; r += 0x1000 {
		every = append(every, r)
	}
	for r := rune(0x10000); r <= 0x10ffff; r += 0x40000 {
		every = append(every, r)
	}
	names := map[string]string{"every byte": string(every)}
	for _, odd := range []string{
		"\x00", "a\x00b", "{", "}", "{}", "a{b}c", " ", " 1 2 3", "a b", ":", "a:b:", "\n", "\r\n", "%", "%s%d%z", "^$()%.[]*+-?", `"\`, "é",
	} {
		names[fmt.Sprintf("%q", odd)] = odd
	}
	for label, name := range names {
		names[label] = name + redistest.Name(t)
	}
	return names
}

// A release wakes the waiter of another process at once, whatever bytes the name has.
func TestNames_OfEveryByteWakeWaiters(t *testing.T) {
	t.Parallel()
	a, b, k := locktest.NewTwo(t, locktest.NoPolling)
	for label, name := range oddNames(t) {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			for kind, of := range locktest.Kinds {
				t.Run(kind, func(t *testing.T) { releaseWakes(t, k, a, b, kind, name+kind, of) })
			}
			permitsWake(t, a, b, name)
		})
	}
}

// Every kind refuses a name that is not UTF-8.
func TestNames_RefuseInvalidUTF8(t *testing.T) {
	t.Parallel()
	a, _ := locktest.New(t, locktest.NoPolling)
	for _, of := range locktest.Kinds {
		locktest.ExpectRefused(t, lockkeeper.ErrInvalid, of(a, "\xff\xfe"), of(a, "\xc3("))
	}
}

// releaseWakes checks that a release of one process wakes the waiter of another.
func releaseWakes(t *testing.T, k locktest.Key, a, b *locktest.Site, kind, name string, of func(*locktest.Site, string) *lockkeeper.Lock) {
	t.Helper()
	hold := locktest.Acquire(t, locktest.Blocker(kind)(a, name))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	granted := locktest.AcquireSoon(ctx, of(b, name))
	queue := locktest.WaitQueue(kind, name)
	if kind == "fair" {
		queue = keyspace.Queue(name)
	}
	redistest.Eventually(t, "a subscribed entry in the wait queue", func() bool {
		if kind == "fair" || kind == "multi" { // their entries have a longer name
			return k.Number(t, "EXISTS", queue) == 1
		}
		entry, _ := k.Do(t, "HGET", queue, b.ID()).ToString()
		return strings.HasSuffix(entry, " 1")
	})
	time.AfterFunc(locktest.Soon, cancel) // well before it would poll
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, granted).Hold)
}

// permitsWake checks that a permit that one process gives back, or its count-down, wakes the waiter of another.
func permitsWake(t *testing.T, a, b *locktest.Site, name string) {
	t.Helper()
	ctx := locktest.Within(t)
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	wakes := func(what string, wait, wake func() error) {
		t.Helper()
		done := locktest.Go(wait)
		must(what, wake())
		must(what, locktest.Await(t, what, done))
	}

	semaphore, elsewhere := a.Semaphore(name+"s"), b.Semaphore(name+"s")
	_, err := semaphore.TrySetPermits(ctx, 1, 0)
	must("set", err)
	must("acquire", semaphore.Acquire(ctx, 1))
	wakes("the semaphore", func() error { return elsewhere.Acquire(ctx, 1) }, func() error { return semaphore.Release(ctx, 1) })

	expirable, beyond := a.ExpirableSemaphore(name+"p"), b.ExpirableSemaphore(name+"p")
	_, err = expirable.TrySetPermits(ctx, 1)
	must("set", err)
	permit, err := expirable.Acquire(ctx)
	must("acquire", err)
	wakes("the expirable semaphore", func() error {
		permit, err := beyond.Acquire(ctx)
		if err != nil {
			return err
		}
		return permit.Release(ctx)
	}, func() error { return permit.Release(ctx) })

	latch := a.Latch(name + "l")
	_, err = latch.TrySetCount(ctx, 1)
	must("set", err)
	wakes("the latch", func() error { return b.Latch(name + "l").Wait(ctx) }, func() error { return latch.CountDown(ctx) })
}
