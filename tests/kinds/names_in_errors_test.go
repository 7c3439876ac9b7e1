package kinds_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/refusal"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A name may have any words of an error of Redis in it. A refusal that quotes the name is still permanent: every call
// ends at once.
func TestNames_InRefusalsAreNoCodes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	calls := map[string]func(ctx context.Context, s *locktest.Site, name string) error{
		"Semaphore.Acquire": func(ctx context.Context, s *locktest.Site, name string) error {
			return s.Semaphore(name).Acquire(ctx, 1)
		},
		"Semaphore.Release": func(ctx context.Context, s *locktest.Site, name string) error {
			return s.Semaphore(name).Release(ctx, 1)
		},
		"ExpirableSemaphore.Acquire": func(ctx context.Context, s *locktest.Site, name string) error {
			_, err := s.ExpirableSemaphore(name).Acquire(ctx)
			return err
		},
		"Latch.Wait":      func(ctx context.Context, s *locktest.Site, name string) error { return s.Latch(name).Wait(ctx) },
		"Latch.CountDown": func(ctx context.Context, s *locktest.Site, name string) error { return s.Latch(name).CountDown(ctx) },
	}
	keyOf := map[string]func(name string) string{}
	for kind, of := range locktest.Kinds {
		acquire := func(ctx context.Context, s *locktest.Site, name string) error {
			_, err := of(s, name).Acquire(ctx)
			return err
		}
		calls[kind] = acquire
		if kind == "fenced" {
			calls["tokens"], keyOf["tokens"] = acquire, keyspace.Token
		}
	}
	for _, words := range refusal.Phrases() {
		for _, prefix := range []string{"", words + ": ", "a: -" + words + " "} {
			t.Run(prefix+words, func(t *testing.T) {
				t.Parallel()
				s := locktest.Open(t, server.URL(), lockkeeper.Config{KeyPrefix: prefix})
				ctx := locktest.Within(t)
				for value, shows := range map[string]string{"007": `"007"`, "tiger": "WRONGTYPE"} {
					for what, call := range calls {
						name := fmt.Sprint(words, " ", what, value)
						key := prefix + name
						if of := keyOf[what]; of != nil {
							key = of(key)
						}
						server.Do(t, "SET", key, value)
						want := shows
						if locktest.Kinds[what] != nil {
							want = "WRONGTYPE"
						}
						err := call(ctx, s, name)
						if ctx.Err() != nil {
							t.Fatalf("%s of %q waited, and then: %v", what, name, err)
						}
						locktest.IsError(t, err, lockkeeper.ErrRejected, want)
					}
				}
			})
		}
	}
}
