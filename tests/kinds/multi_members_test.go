package kinds_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A MultiLock that has one key of one Redis twice is refused: its release could not free the key twice.
func TestMultiLock_RefusesOneKeyTwice(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	open := func(prefix string) *locktest.Site {
		return locktest.Open(t, server.URL(), lockkeeper.Config{KeyPrefix: prefix})
	}
	a, b, prefixed := open(""), open(""), open("a:")
	for what, locks := range map[string][]*lockkeeper.Lock{
		"two systems":      {a.Lock("x"), b.Lock("x")},
		"two prefixes":     {a.Lock("a:y"), prefixed.Lock("y")},
		"fair":             {a.FairLock("f"), b.FairLock("f")},
		"two writers":      {a.ReadWriteLock("w").Write(), b.ReadWriteLock("w").Write()},
		"a reader first":   {a.ReadWriteLock("v").Read(), b.ReadWriteLock("v").Write()},
		"two readers":      {a.ReadWriteLock("r").Read(), b.ReadWriteLock("r").Read()},
		"plain and fenced": {a.Lock("p"), b.FencedLock("p")},
		"with others":      {a.Lock("1"), b.Lock("2"), a.Lock("s"), b.Lock("s"), prefixed.Lock("s")},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			locktest.Fails(lockkeeper.MultiLock(locks...).Acquire(locktest.Within(t)))(t, lockkeeper.ErrRejected)
			for _, l := range locks { // all are free
				locktest.ExpectGranted(t, l)
			}
		})
	}
	t.Run("one system", func(t *testing.T) {
		locktest.Fails(lockkeeper.MultiLock(a.Lock("o"), a.FencedLock("o")).Acquire(locktest.Within(t)))(t, lockkeeper.ErrInvalid)
	})
}

// The same, with a RedLock and a lock on one of its servers.
func TestMultiLock_RefusesARedLockAndItsKey(t *testing.T) {
	t.Parallel()
	var systems []*lockkeeper.System
	var other *locktest.Site
	for i := range 3 {
		server := redistest.Start(t)
		systems = append(systems, locktest.Open(t, server.URL(), lockkeeper.Config{Watchdog: 2 * time.Second}).System)
		if i == 1 {
			other = locktest.Open(t, server.URL(), lockkeeper.Config{Watchdog: 2 * time.Second})
		}
	}
	red := locktest.Must(lockkeeper.NewRedLock(systems...))(t)
	locktest.ExpectGranted(t, red.Lock("before")) // then each server has a vote
	for _, system := range systems {
		locktest.Fails(lockkeeper.MultiLock(red.Lock("x"), system.Lock("x")).Acquire(locktest.Within(t)))(t, lockkeeper.ErrInvalid)
	}
	for _, locks := range [][]*lockkeeper.Lock{
		{red.Lock("y"), other.Lock("y")}, {other.Lock("z"), red.Lock("z")},
	} {
		locktest.Fails(lockkeeper.MultiLock(locks...).Acquire(locktest.Within(t)))(t, lockkeeper.ErrRejected)
	}
	locktest.Release(t, locktest.Acquire(t, lockkeeper.MultiLock(red.Lock("x"), other.Lock("y"))))
}

// Locks of one name on several servers are other keys, also if one of the servers does not say so.
func TestMultiLock_TakesOneNameOnSeveralServers(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Watchdog: 2 * time.Second}
	open := func() *locktest.Site { return locktest.Open(t, redistest.Start(t).URL(), cfg) }
	down := redistest.Start(t)
	a, b, lame := open(), open(), locktest.Open(t, down.URL(), cfg)
	lame.SkipCloseCheck = true // its server is down when it closes
	red := locktest.Must(lockkeeper.NewRedLock(open().System, open().System, lame.System))(t)
	locktest.ExpectGranted(t, red.Lock("before")) // then each server has a vote
	down.Kill(t)
	for _, multi := range map[string]*lockkeeper.Lock{
		"plain":   lockkeeper.MultiLock(a.Lock("x"), b.Lock("x")),
		"RedLock": lockkeeper.MultiLock(a.Lock("x"), red.Lock("x")),
	} {
		hold := locktest.Acquire(t, multi)
		next := locktest.AcquireSoon(locktest.Within(t), multi, lockkeeper.WithLease(time.Second)) // for which the lease is set in Redis
		locktest.AwaitWaiters(t, multi, 1)
		locktest.Release(t, hold)
		locktest.Release(t, locktest.Got(t, next).Hold)
	}
}

// A MultiLock that waits for a fair lock has no entry in its queue. It tries as soon as the lock is free and the
// queue is empty. Its other locks are not kept for it meanwhile.
func TestMultiLock_WakesOnFairMember(t *testing.T) {
	queued := func(t *testing.T, k locktest.Key) {
		redistest.Eventually(t, "a waiter in the queue", func() bool { return k.Number(t, "LLEN", keyspace.Queue(k.Name)) == 1 })
	}
	ends := map[string]func(t *testing.T, s *locktest.Site, k locktest.Key, hold *lockkeeper.Hold){
		"a release": func(t *testing.T, _ *locktest.Site, _ locktest.Key, hold *lockkeeper.Hold) { locktest.Release(t, hold) },
		"a forced release": func(t *testing.T, s *locktest.Site, k locktest.Key, _ *lockkeeper.Hold) {
			locktest.ForceRelease(t, s.FairLock(k.LockName), true)
		},
		"the release of the next": func(t *testing.T, s *locktest.Site, k locktest.Key, hold *lockkeeper.Hold) {
			next := locktest.AcquireSoon(t.Context(), s.FairLock(k.LockName))
			queued(t, k)
			locktest.Release(t, hold)
			locktest.Release(t, locktest.Got(t, next).Hold)
		},
		"a release behind a waiter that gives up": func(t *testing.T, s *locktest.Site, k locktest.Key, hold *lockkeeper.Hold) {
			ctx, cancel := context.WithCancel(t.Context())
			abandoned := locktest.AcquireSoon(ctx, s.FairLock(k.LockName))
			queued(t, k)
			cancel()
			locktest.Await(t, "the end of the wait", abandoned)
			locktest.Release(t, hold)
		},
	}
	for where, isFar := range map[string]bool{"on one server": false, "on two servers": true} {
		for how, end := range ends {
			t.Run(how+", "+where, func(t *testing.T) {
				t.Parallel()
				a, k := locktest.New(t, locktest.NoPolling)
				b, c := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
				other := b
				if isFar {
					other = locktest.Open(t, redistest.Start(t).URL(), locktest.NoPolling)
				}
				hold := locktest.Acquire(t, a.FairLock(k.LockName))
				multi := lockkeeper.MultiLock(b.FairLock(k.LockName), other.Lock(k.LockName+" too"))
				granted := locktest.AcquireSoon(t.Context(), multi)
				locktest.AwaitWaiters(t, multi, 1)
				k.Server.AwaitSubscribers(t, keyspace.Channel(k.Name), 1)
				end(t, c, k, hold)
				locktest.Release(t, locktest.Got(t, granted).Hold) // well before it would poll
			})
		}
	}
}

// A MultiLock that reads one of its locks joins other readers as soon as no writer keeps it from that, and keeps no
// reader from joining them.
func TestMultiLock_ReaderJoinsReaders(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]func(t *testing.T, x string, other, third *locktest.Site, waits func() <-chan locktest.Grant) <-chan locktest.Grant{
		"a writer gives up": func(t *testing.T, x string, other, third *locktest.Site, waits func() <-chan locktest.Grant) <-chan locktest.Grant {
			locktest.Acquire(t, other.ReadWriteLock(x).Read())
			ctx, cancel := context.WithCancel(t.Context())
			locktest.AcquireSoon(ctx, third.ReadWriteLock(x).Write())
			multi := waits()
			cancel()
			return multi
		},
		"a writer passes the lock to readers": func(t *testing.T, x string, other, third *locktest.Site, waits func() <-chan locktest.Grant) <-chan locktest.Grant {
			writing := locktest.Acquire(t, other.ReadWriteLock(x).Write())
			reader := locktest.AcquireSoon(locktest.Within(t), third.ReadWriteLock(x).Read())
			multi := waits()
			locktest.Release(t, writing)
			locktest.Got(t, reader)
			return multi
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, other, k := locktest.NewTwo(t, locktest.NoPolling)
			third := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
			x, queue := k.LockName+" x", keyspace.ReadWriteQueue(k.Name+" x")
			entered := func(n int) {
				redistest.Eventually(t, "entries that listen", func() bool {
					entries := locktest.Must(k.Do(t, "HVALS", queue).AsStrSlice())(t)
					return len(slices.DeleteFunc(entries, func(entry string) bool { return strings.Fields(entry)[7] == "0" })) == n
				})
			}
			multi := scene(t, x, other, third, func() <-chan locktest.Grant {
				entered(1)
				granted := locktest.AcquireSoon(locktest.Within(t), lockkeeper.MultiLock(s.ReadWriteLock(x).Read(), s.Lock(k.LockName+" y")))
				entered(2)
				return granted
			})
			locktest.Release(t, locktest.Got(t, multi).Hold)
		})
	}
	t.Run("a MultiLock before it takes the free lock", func(t *testing.T) {
		t.Parallel()
		s, other, k := locktest.NewTwo(t, locktest.NoPolling)
		first := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
		x, queue := k.LockName+" x", keyspace.ReadWriteQueue(k.Name+" x")
		entries := func() []string { return locktest.Must(k.Do(t, "HVALS", queue).AsStrSlice())(t) }
		entered := func(n int) {
			redistest.Eventually(t, "entries that listen", func() bool {
				return len(slices.DeleteFunc(entries(), func(entry string) bool { return strings.Fields(entry)[7] == "0" })) == n
			})
		}
		writing, busy := locktest.Acquire(t, other.ReadWriteLock(x).Write()), locktest.Acquire(t, other.Lock(k.LockName+" y"))
		multis := make([]<-chan locktest.Grant, 2)
		multis[0] = locktest.AcquireSoon(locktest.Within(t), lockkeeper.MultiLock(first.ReadWriteLock(x).Read(), first.Lock(k.LockName+" y")))
		entered(1)
		multis[1] = locktest.AcquireSoon(locktest.Within(t), lockkeeper.MultiLock(s.ReadWriteLock(x).Read(), s.Lock(k.LockName+" z")))
		entered(2)
		before := entries()
		locktest.Release(t, writing)
		redistest.Eventually(t, "both to be refused, since the lock is kept for the first", func() bool {
			return !slices.ContainsFunc(entries(), func(entry string) bool { return slices.Contains(before, entry) })
		})
		locktest.Release(t, busy)
		hold := locktest.Got(t, multis[0]).Hold
		locktest.Release(t, locktest.Got(t, multis[1]).Hold) // alongside the first
		locktest.Release(t, hold)
	})
	t.Run("the MultiLock waits for another lock", func(t *testing.T) {
		t.Parallel()
		s, other, k := locktest.NewTwo(t, locktest.NoPolling)
		x, queue := k.LockName+" x", keyspace.ReadWriteQueue(k.Name+" x")
		locktest.Acquire(t, other.ReadWriteLock(x).Read())
		busy := locktest.Acquire(t, other.Lock(k.LockName+" y"))
		multi := locktest.AcquireSoon(locktest.Within(t), lockkeeper.MultiLock(s.ReadWriteLock(x).Read(), s.Lock(k.LockName+" y")))
		redistest.Eventually(t, "the entry of the MultiLock", func() bool { return k.Number(t, "HLEN", queue) == 1 })
		third := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
		locktest.Release(t, locktest.Acquire(t, third.ReadWriteLock(x).Read()))
		locktest.Release(t, busy)
		locktest.Release(t, locktest.Got(t, multi).Hold)
	})
}
