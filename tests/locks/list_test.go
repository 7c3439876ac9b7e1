package locks_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// listed returns the one lock of that name on the site's list. Its times must belong to a lock that was taken, and to
// waiters that came, after began.
func listed(t *testing.T, s *locktest.Site, name string, began time.Time) lockkeeper.LockInfo {
	t.Helper()
	all := locktest.Must(s.Locks(locktest.Within(t)))(t)
	var found []lockkeeper.LockInfo
	for _, one := range all {
		if one.Name == name {
			found = append(found, one)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%q is listed %d times: %+v", name, len(found), all)
	}
	one := found[0]
	for what, d := range map[string]time.Duration{"age": one.Age, "wait": one.Waiting} {
		if is := what == "age" && one.Held || what == "wait" && one.Waiters > 0; d > time.Since(began) || is != (d > 0) {
			t.Errorf("%s has an %s of %v, %v after the test began", name, what, d, time.Since(began))
		}
	}
	one.Age, one.Waiting = 0, 0
	return one
}

// The list of a System agrees with Redis, for each kind and each way of taking the lock.
func TestLocks_ListsTheStateInRedis(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s, other, k := locktest.NewTwo(t, lockkeeper.Config{})
	expect := func(name string, want lockkeeper.LockInfo) {
		t.Helper()
		got := listed(t, s, name, began)
		lease := got.Lease
		got.Lease, want.Name = 0, name
		if got != want || (lease > 0) != want.Held || lease > 30*time.Second {
			t.Errorf("listed %+v with a lease of %v, want %+v", got, lease, want)
		}
	}

	hold := s.Acquire(t, k)
	again := s.AcquireIn(t, hold.Context(), k)
	waits := s.AcquireSoon(t, k)
	s.AwaitWaiters(t, k, 1)
	count, _ := strconv.Atoi(k.Owners(t)[k.HeldBy(t, s, "2")])
	expect(k.LockName, lockkeeper.LockInfo{Held: true, Holders: 1, Count: count, Waiters: 1})
	if one := listed(t, s, k.LockName, began); one.Lease > k.TTL(t)+time.Second {
		t.Errorf("the lease is listed as %v, and in Redis it is %v", one.Lease, k.TTL(t))
	}

	fenced := redistest.Name(t)
	k.Do(t, "SET", "redisson_lock_token:{"+fenced+"}", "41")
	locktest.AcquireIn(t, locktest.Within(t), s.FencedLock(fenced))
	expect(fenced, lockkeeper.LockInfo{Kind: messages.Kind_KIND_FENCED, Held: true, Holders: 1, Count: 1, Token: 42})

	read := redistest.Name(t)
	for range 2 {
		locktest.AcquireIn(t, locktest.Within(t), s.ReadWriteLock(read).Read())
	}
	expect(read, lockkeeper.LockInfo{Kind: messages.Kind_KIND_READ_WRITE, Held: true, Shared: true, Holders: 2, Count: 1})

	multi := lockkeeper.MultiLock(s.Lock(read+"a"), s.Lock(read+"b"))
	locktest.AcquireIn(t, locktest.Within(t), multi)
	expect(multi.Name(), lockkeeper.LockInfo{Kind: messages.Kind_KIND_MULTI, Held: true, Holders: 1, Count: 1})

	probe, fair := s.Probe(t), redistest.Name(t)
	locktest.AcquireIn(t, locktest.Within(t), other.FairLock(fair))
	probe.Send(&messages.Acquire{Lock: &messages.Lock{Name: fair, Kind: messages.Kind_KIND_FAIR}})
	locktest.AwaitWaiters(t, s.FairLock(fair), 1)
	expect(fair, lockkeeper.LockInfo{Kind: messages.Kind_KIND_FAIR, Waiters: 1})
	began = time.Now() // so that each hold has its own age
	s.Release(t, again)
	s.Release(t, hold)
	second := locktest.Got(t, waits)
	expect(k.LockName, lockkeeper.LockInfo{Held: true, Holders: 1, Count: 1})
	s.Release(t, second.Hold)
	if all, err := other.Locks(locktest.Within(t)); err != nil || len(all) != 1 || all[0].Name != fair {
		t.Errorf("the other lists %+v, %v", all, err)
	}
}

// Any number of locks is listed, until the caller's context ends.
func TestLocks_ListsManyLocks(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	const n = 600
	for i := range n {
		locktest.AcquireIn(t, locktest.Within(t), s.Lock(fmt.Sprintf("%s/%03d", k.LockName, i)))
	}
	all, err := s.Locks(locktest.Within(t))
	if err != nil || len(all) != n || all[7].Name != k.LockName+"/007" {
		t.Fatalf("%d locks, %v", len(all), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Locks(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	locktest.Stop(t, s.System)
	if _, err := s.Locks(locktest.Within(t)); !errors.Is(err, lockkeeper.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// An inspection claims no name and writes no key: the name can be used as any kind right after it. A name in use as another kind is
// refused, and the error names that kind.
func TestInspect_ClaimsNoName(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	available := func(_ int, err error) error {
		if errors.Is(err, lockkeeper.ErrNoPermits) {
			return nil // an error of Redis, not a refusal
		}
		return err
	}
	calls := map[string]func(name string) error{
		"semaphore":           func(name string) error { return available(s.Semaphore(name).Available(locktest.Within(t))) },
		"expirable_semaphore": func(name string) error { return available(s.ExpirableSemaphore(name).Available(locktest.Within(t))) },
		"latch":               func(name string) error { _, err := s.Latch(name).Count(locktest.Within(t)); return err },
	}
	if _, synchronizers := kinds.Words(); len(calls) != len(synchronizers) {
		t.Errorf("%d synchronizers are inspected, of %v", len(calls), synchronizers)
	}
	for _, kind := range locktest.Words() {
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
			locktest.ExpectGranted(t, s.Lock(name))
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
