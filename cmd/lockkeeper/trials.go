//go:build unix

package main

import (
	"cmp"
	"context"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
)

// trials returns the trials of all kinds, in the order in which they are reported.
func (d *doctor) trials(here, there *lockkeeper.System) (all []trial) {
	name := func(kind string) string { return "lockkeeper_doctor:" + here.ID() + ":" + kind }
	held := map[string]string{"write": "read", "read": "write"} // so that the waiter does not share the lock
	for _, kind := range []string{defaultKind, fencedKind, "fair", "write", "read"} {
		name := name(kind)
		t := ofLock(kind+" lock", kinds[cmp.Or(held[kind], kind)](here, name), kinds[kind](there, name), kinds[kind](there, name))
		t.keys = []string{keyspace.WaitQueue(d.prefix + name), keyspace.WaitOrder(d.prefix + name)}
		if held[kind] != "" {
			t.keys = []string{keyspace.ReadWriteQueue(d.prefix + name), keyspace.ReadWriteOrder(d.prefix + name)}
		} else if kind == fencedKind {
			t.lasting = []string{keyspace.Token(d.prefix + name)}
		}
		all = append(all, t)
	}
	several := func(s *lockkeeper.System) *lockkeeper.Lock {
		return lockkeeper.MultiLock(s.Lock(name("multi")), s.Lock(name("multi 2")))
	}
	multi := ofLock("MultiLock", several(here), several(there), there.Lock(name("multi")))
	for _, part := range []string{name("multi"), name("multi 2")} {
		multi.keys = append(multi.keys, keyspace.WaitQueue(d.prefix+part), keyspace.WaitOrder(d.prefix+part))
	}
	all = append(all, multi)
	for _, t := range []trial{
		ofSemaphore(here.Semaphore(name("semaphore")), there.Semaphore(name("semaphore"))),
		ofPermits(here.ExpirableSemaphore(name("permits")), there.ExpirableSemaphore(name("permits"))),
		ofLatch(here.Latch(name("latch")), there.Latch(name("latch"))),
	} {
		name := name(t.kind)
		key := d.prefix + name
		t.waits = func(ctx context.Context) bool {
			c, err := inspect.Inspector{Client: d.client, Prefix: d.prefix}.Counter(ctx, name)
			return err == nil && c != nil && c.Waiters.N > 0
		}
		t.lasting = append(t.lasting, key)
		t.keys = append(t.keys, keyspace.Calls(key)+":"+here.ID(), keyspace.Calls(key)+":"+there.ID())
		all = append(all, t)
	}
	return all
}

// ofLock returns the trial of a lock. looked is the lock whose subscribers are read, since a MultiLock has none.
func ofLock(kind string, here, there, looked *lockkeeper.Lock) trial {
	return trial{
		kind: kind,
		acquire: func(ctx context.Context) (func(context.Context) error, error) {
			hold, err := here.TryAcquire(ctx)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error {
				ensured := hold.Ensure(ctx, trialLease*4/5)
				if err := hold.Release(ctx); err != nil {
					return err
				}
				return ensured
			}, nil
		},
		wait: func(ctx context.Context) error {
			hold, err := there.Acquire(ctx)
			if err != nil {
				return err
			}
			return hold.Release(context.WithoutCancel(ctx))
		},
		waits: func(ctx context.Context) bool {
			status, err := looked.Inspect(ctx)
			return err == nil && status.Subscribers > 0
		},
	}
}

func ofSemaphore(here, there *lockkeeper.Semaphore) trial {
	release := func(s *lockkeeper.Semaphore) func(context.Context) error {
		return func(ctx context.Context) error { return s.Release(ctx, 1) }
	}
	return trial{
		kind: "semaphore",
		acquire: func(ctx context.Context) (func(context.Context) error, error) {
			if _, err := here.TrySetPermits(ctx, 1, trialLease); err != nil {
				return nil, err
			}
			return release(here), here.TryAcquire(ctx, 1)
		},
		wait: func(ctx context.Context) error {
			if err := there.Acquire(ctx, 1); err != nil {
				return err
			}
			return release(there)(ctx)
		},
	}
}

func ofPermits(here, there *lockkeeper.ExpirableSemaphore) trial {
	return trial{
		kind: "permits",
		acquire: func(ctx context.Context) (func(context.Context) error, error) {
			if _, err := here.TrySetPermits(ctx, 1); err != nil {
				return nil, err
			}
			permit, err := here.TryAcquire(ctx)
			if err != nil {
				return nil, err
			}
			return permit.Release, nil
		},
		wait: func(ctx context.Context) error {
			permit, err := there.Acquire(ctx)
			if err != nil {
				return err
			}
			return permit.Release(ctx)
		},
	}
}

func ofLatch(here, there *lockkeeper.Latch) trial {
	return trial{
		kind: "latch",
		acquire: func(ctx context.Context) (func(context.Context) error, error) {
			_, err := here.TrySetCount(ctx, 1)
			return here.CountDown, err
		},
		wait: func(ctx context.Context) error { return there.Wait(ctx) },
	}
}
