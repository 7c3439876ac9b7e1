package locks_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// lingering is the configuration of a process in which locks linger for longer than any test may last.
var lingering = lockkeeper.Config{Watchdog: time.Hour, Linger: 20 * time.Minute, Poll: 10 * time.Minute}

// openLingering opens a system in which locks linger. Before its subscription is confirmed they do not.
func openLingering(t *testing.T, k locktest.Key) *locktest.Site {
	t.Helper()
	s := locktest.Open(t, k.Server.URL(), lingering)
	redistest.Eventually(t, "the subscription", func() bool { return k.Server.Subscribers(t, keyspace.AskedChannel(s.ID())) > 0 })
	return s
}

// linger makes a lock linger in a process. A lease that began with a transfer does not.
func linger(t *testing.T, k locktest.Key, l *lockkeeper.Lock) {
	t.Helper()
	redistest.Eventually(t, "the lingering", func() bool {
		locktest.Release(t, locktest.Acquire(t, l))
		return k.Exists(t)
	})
}

// A lock that lingers is acquired and released without a command. It is released by Close.
func TestLinger_NeedsNoCommands(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Start(t))
	s := openLingering(t, k)
	linger(t, k, s.Lock(k.LockName))
	k.Server.ResetStats(t)
	for range 100 {
		locktest.Release(t, locktest.Acquire(t, s.Lock(k.LockName)))
		locktest.Release(t, locktest.Acquire(t, s.Lock(k.LockName), lockkeeper.WithWait(0)))
	}
	calls := k.Server.Calls(t)
	if scripts := calls["evalsha"] + calls["eval"]; scripts > 2 { // the record of the process
		t.Errorf("%d scripts for 200 holds", scripts)
	}
	status := locktest.Must(s.Lock(k.LockName).Inspect(locktest.Within(t)))(t)
	if !status.Locked || status.HeldHere || status.HeldFor != 0 {
		t.Errorf("without a holder the lock is %+v", status)
	}
	locktest.Stop(t, s)
	k.IsFree(t)
}

// Another process gets a lock that lingers at once, whether locks linger in it or not: if it waits, if it tries again, and as a
// part of a MultiLock.
func TestLinger_IsAskedFor(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Shared(t))
	s, other := openLingering(t, k), openLingering(t, k)
	never := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: time.Hour, Poll: 10 * time.Minute})
	for _, l := range []*lockkeeper.Lock{
		never.Lock(k.LockName), never.FencedLock(k.LockName), lockkeeper.MultiLock(never.Lock(k.LockName), never.Lock(redistest.Name(t))),
		other.Lock(k.LockName), lockkeeper.MultiLock(other.Lock(k.LockName), other.Lock(redistest.Name(t))),
	} {
		linger(t, k, s.Lock(k.LockName))
		locktest.Release(t, locktest.Acquire(t, l))
		linger(t, k, s.Lock(k.LockName))
		tries := 0
		redistest.Eventually(t, "a try is granted", func() bool {
			hold, err := l.Acquire(locktest.Within(t), lockkeeper.WithWait(0))
			if tries++; err == nil {
				locktest.Release(t, hold)
			}
			return err == nil
		})
		if tries == 1 {
			t.Error("the lock did not linger")
		}
	}
}

// A forced release from another process ends the lingering, whatever the kind of its handle: the next hold begins in Redis.
func TestLinger_EndsByForce(t *testing.T) {
	t.Parallel()
	servers := []*redistest.Server{redistest.Shared(t), redistest.Start(t), redistest.Start(t)}
	force := map[string]func(t *testing.T, name string){"red": func(t *testing.T, name string) {
		var systems []*lockkeeper.System
		for _, server := range servers {
			systems = append(systems, locktest.Open(t, server.URL(), locktest.NoPolling).System)
		}
		red := locktest.Must(lockkeeper.NewRedLock(systems...))(t)
		locktest.ForceRelease(t, red.Lock(name), false) // no majority holds it
	}}
	for kind, of := range locktest.Kinds {
		force[kind] = func(t *testing.T, name string) {
			locktest.ForceRelease(t, of(locktest.Open(t, servers[0].URL(), locktest.NoPolling), name), true)
		}
	}
	for kind, force := range force {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := locktest.NewKey(t, servers[0])
			s, other := openLingering(t, k), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
			linger(t, k, s.Lock(k.LockName))
			force(t, k.LockName)
			hold := locktest.Acquire(t, other.Lock(k.LockName))
			redistest.Eventually(t, "the end of the lingering", func() bool {
				hold, err := s.Lock(k.LockName).Acquire(locktest.Within(t), lockkeeper.WithWait(0))
				if err == nil { // the release may be the first to find that the lease is gone
					if err := hold.Release(locktest.Within(t)); err != nil && !errors.Is(err, lockkeeper.ErrLost) {
						t.Errorf("Release: %v, want nil or ErrLost", err)
					}
				}
				return err != nil
			})
			locktest.ExpectRefused(t, lockkeeper.ErrHeld, s.Lock(k.LockName))
			locktest.ExpectValid(t, hold)
			locktest.Release(t, hold)
		})
	}
}

// The lock of a MultiLock does not linger, even if it is the only lock: no process could ask for it.
func TestLinger_NotInAMultiLock(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Shared(t))
	s := openLingering(t, k)
	for _, of := range []func(string) *lockkeeper.Lock{s.Lock, s.FencedLock} {
		locktest.Release(t, locktest.Acquire(t, lockkeeper.MultiLock(of(k.LockName))))
		k.IsFree(t)
	}
}
