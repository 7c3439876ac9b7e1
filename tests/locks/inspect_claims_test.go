package locks_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

// An inspection claims no name and writes no key: the name can be used as any kind right after it. A name in use as another kind is
// refused, and the error names that kind.
func TestInspect_ClaimsNoName(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	calls := map[string]func(name string) error{
		"semaphore": func(name string) error {
			_, err := s.Semaphore(name).Available(locktest.Within(t))
			if errors.Is(err, lockkeeper.ErrNoPermits) {
				return nil // an error of Redis, not a refusal
			}
			return err
		},
		"latch": func(name string) error { _, err := s.Latch(name).Count(locktest.Within(t)); return err },
	}
	for _, kind := range []string{"plain", "fenced", "fair", "write"} {
		calls[kind] = func(name string) error {
			_, err := locktest.Kinds[kind](s, name).Inspect(locktest.Within(t))
			return err
		}
	}
	for kind, inspect := range calls {
		name := k.LockName + kind
		for other, again := range calls {
			if err := inspect(name); err != nil {
				t.Fatalf("inspected as a %s: %v", kind, err)
			}
			if err := again(name); err != nil {
				t.Errorf("inspected as a %s after a %s: %v", other, kind, err)
			}
		}
		if keys, err := k.Do(t, "KEYS", "*"+name+"*").AsStrSlice(); err != nil || len(keys) > 0 {
			t.Errorf("the inspections as a %s have left the keys %q, %v", kind, keys, err)
		}
		if kind == "latch" {
			locktest.Release(t, locktest.Acquire(t, s.Lock(name)))
		} else if _, err := s.Latch(name).TrySetCount(locktest.Within(t), 1); err != nil {
			t.Errorf("a latch after an inspection as a %s: %v", kind, err)
		}
	}
	locktest.Acquire(t, s.FairLock(k.LockName))
	for kind, inspect := range calls {
		err := inspect(k.LockName)
		if kind == "fair" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		locktest.IsError(t, err, lockkeeper.ErrInvalid)
		if !strings.Contains(err.Error(), "as a fair lock") {
			t.Errorf("inspected as a %s: %v", kind, err)
		}
	}
}
