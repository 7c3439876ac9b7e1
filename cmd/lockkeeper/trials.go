//go:build unix

package main

import (
	"context"
	"maps"
	"slices"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
)

// multiKind is the word for a MultiLock.
const multiKind = "multi"

// trialKinds returns the words of all trials, in the order in which they are made.
func trialKinds() []string {
	_, synchronizers := kinds.Words()
	return slices.Concat(slices.Sorted(maps.Keys(kinds.Forms)), []string{multiKind}, synchronizers)
}

// trials returns the trials of the kinds that were chosen.
func (d *doctor) trials(here, there *lockkeeper.System) (all []trial) {
	for _, kind := range d.kinds {
		name := "lockkeeper_doctor:" + here.ID() + ":" + kind
		form, isLock := kinds.Forms[kind] // for a MultiLock, the form of its members, which are plain
		var t trial
		switch row := kinds.Of(form.Kind); {
		case kind == multiKind:
			several := func(s *lockkeeper.System) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+" 2"))
			}
			t = ofLock(several(here), several(there), there.Lock(name))
			t.keys = append(remain(row, d.prefix+name), remain(row, d.prefix+name+" 2")...)
		case isLock:
			held := form
			if other, shares := map[string]string{"write": "read", "read": "write"}[kind]; shares { // or the waiter would share the lock
				held = kinds.Forms[other]
			}
			t = ofLock(here.LockOf(held.Of(name)), there.LockOf(form.Of(name)), there.LockOf(form.Of(name)))
			if t.keys = remain(row, d.prefix+name); row.Fenced {
				t.lasting = []string{keyspace.Token(d.prefix + name)}
			}
		default:
			t = d.ofSynchronizer(kind, name, here, there)
		}
		t.kind = kind
		all = append(all, t)
	}
	return all
}

// remain returns the keys of a lock that may remain.
func remain(row *kinds.Row, key string) (keys []string) {
	for _, of := range row.Remain {
		keys = append(keys, of(key))
	}
	return keys
}

// ofSynchronizer returns the trial of a synchronizer.
func (d *doctor) ofSynchronizer(kind, name string, here, there *lockkeeper.System) (t trial) {
	key := d.prefix + name
	channel := keyspace.PermitsChannel(key)
	switch kind {
	case inspect.KindSemaphore:
		t = ofSemaphore(here.Semaphore(name), there.Semaphore(name))
	case inspect.KindExpirableSemaphore:
		t = ofExpirableSemaphore(here.ExpirableSemaphore(name), there.ExpirableSemaphore(name))
	case inspect.KindLatch:
		t, channel = ofLatch(here.Latch(name), there.Latch(name)), keyspace.LatchChannel(key)
	}
	t.waits = func(ctx context.Context) bool {
		return inspect.Inspector{Client: d.client}.Listeners(ctx, []string{channel})[channel].N > 0
	}
	t.lasting = []string{key}
	t.keys = []string{keyspace.Calls(key) + ":" + here.ID(), keyspace.Calls(key) + ":" + there.ID()}
	return t
}

// ofLock returns the trial of a lock. looked is the lock whose subscribers are read, since a MultiLock has none.
func ofLock(here, there, looked *lockkeeper.Lock) trial {
	return trial{
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

func ofExpirableSemaphore(here, there *lockkeeper.ExpirableSemaphore) trial {
	return trial{
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
		acquire: func(ctx context.Context) (func(context.Context) error, error) {
			_, err := here.TrySetCount(ctx, 1)
			return here.CountDown, err
		},
		wait: func(ctx context.Context) error { return there.Wait(ctx) },
	}
}
