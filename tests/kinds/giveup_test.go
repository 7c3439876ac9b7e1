package kinds_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A free member is kept for a MultiLock, which gives up: the next waiter of that member is granted it at once, in the
// same process and in another, in every way of waiting and giving up.
func TestMultiLock_GiveUpWakesNextWaiter(t *testing.T) {
	ways := map[string]func(t *testing.T, s *locktest.Site, x, y *messages.Lock) (giveUp func()){
		"a wait that is over": func(t *testing.T, s *locktest.Site, x, y *messages.Lock) func() {
			waits := locktest.AcquireSoon(t.Context(), multiOf(s, x, y), lockkeeper.WithWait(3*time.Second))
			return func() { locktest.Await(t, "the end of the wait", waits) }
		},
		"a cancel": func(t *testing.T, s *locktest.Site, x, y *messages.Lock) func() {
			ctx, cancel := context.WithCancel(t.Context())
			waits := locktest.AcquireSoon(ctx, multiOf(s, x, y))
			return func() { cancel(); locktest.Await(t, "the end of the wait", waits) }
		},
		"the death of an actor": func(t *testing.T, s *locktest.Site, x, y *messages.Lock) func() {
			p := s.Probe(t)
			p.Send(&messages.Acquire{Lock: multiMessage(x, y)})
			return p.Die
		},
		"Close": func(t *testing.T, s *locktest.Site, x, y *messages.Lock) func() {
			waits := locktest.AcquireSoon(t.Context(), multiOf(s, x, y))
			return func() { locktest.Stop(t, s); locktest.Await(t, "the end of the wait", waits) }
		},
	}
	for _, kind := range locktest.Words(locktest.HasWaitQueue) {
		for way, waits := range ways {
			for _, where := range []string{"in its process", "elsewhere"} {
				if way == "Close" && where == "in its process" {
					continue // it refuses that waiter, too
				}
				t.Run(kind+", "+way+", "+where, func(t *testing.T) {
					t.Parallel()
					s, other, k := locktest.NewTwo(t, locktest.NoPolling)
					x, y := locktest.KindMessage("plain", k.Name+" x"), locktest.KindMessage(kind, k.Name+" y")
					of := func(s *locktest.Site) *lockkeeper.Lock { return locktest.Blocker(kind)(s, y.Name) }
					entries := func(n int64) {
						redistest.Eventually(t, "the entries of the waiters", func() bool { return k.Number(t, "HLEN", locktest.WaitQueue(kind, y.Name)) == n })
					}
					locktest.Acquire(t, other.Lock(x.Name))
					hold := locktest.Acquire(t, of(other))
					giveUp := waits(t, s, x, y)
					entries(1)
					waiter := s
					if where == "elsewhere" {
						waiter = locktest.Open(t, k.Server.URL(), locktest.NoPolling)
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					granted := locktest.AcquireSoon(ctx, of(waiter))
					entries(2)
					locktest.Release(t, hold)
					redistest.Eventually(t, "the waiter to be refused since the lock is kept", func() bool { return refusedSinceKept(t, k, locktest.WaitQueue(kind, y.Name), waiter) })
					locktest.Pending(t, granted, "the MultiLock is first")
					giveUp()
					time.AfterFunc(locktest.Soon, cancel) // well before it would poll
					locktest.Release(t, locktest.Got(t, granted).Hold)
				})
			}
		}
	}
}

// refusedSinceKept reports whether a process was refused after the free lock was kept for a MultiLock. Before that,
// the message of the release would still wake it.
func refusedSinceKept(t *testing.T, k locktest.Key, queue string, waiter *locktest.Site) bool {
	t.Helper()
	entries := locktest.Must(k.Do(t, "HGETALL", queue).AsStrMap())(t)
	var kept, seen int
	for client, entry := range entries {
		words := strings.Fields(entry)
		if client == waiter.ID() {
			seen, _ = strconv.Atoi(words[1])
		} else if len(words) == 9 {
			kept, _ = strconv.Atoi(words[8])
		}
	}
	return kept > 0 && seen >= kept // equal if its own try found the lock free
}

// listens reports whether the process has tried since it subscribed. Until then it tries again by itself.
func listens(t *testing.T, k locktest.Key, s *locktest.Site) bool {
	t.Helper()
	entry, _ := k.Do(t, "HGET", keyspace.ReadWriteQueue(k.LockName), s.ID()).ToString()
	words := strings.Fields(entry)
	return len(words) > 7 && words[7] == "1"
}

// multiOf is a MultiLock of two locks.
func multiOf(s *locktest.Site, x, y *messages.Lock) *lockkeeper.Lock {
	of := func(m *messages.Lock) *lockkeeper.Lock {
		switch {
		case m.Kind == messages.Kind_KIND_FENCED:
			return s.FencedLock(m.Name)
		case m.Kind == messages.Kind_KIND_READ_WRITE && m.Mode == messages.Mode_MODE_SHARED:
			return s.ReadWriteLock(m.Name).Read()
		case m.Kind == messages.Kind_KIND_READ_WRITE:
			return s.ReadWriteLock(m.Name).Write()
		}
		return s.Lock(m.Name)
	}
	return lockkeeper.MultiLock(of(x), of(y))
}

// A waiting writer blocks a reader of its process while another process reads. When the writer gives up, that reader
// joins the other at once.
func TestReadWrite_WriterGiveUpWakesReaders(t *testing.T) {
	for way, waits := range map[string]func(t *testing.T, s *locktest.Site, write *messages.Lock) (giveUp func()){
		"a cancel": func(t *testing.T, s *locktest.Site, write *messages.Lock) func() {
			ctx, cancel := context.WithCancel(t.Context())
			locktest.AcquireSoon(ctx, s.ReadWriteLock(write.Name).Write())
			return cancel
		},
		"a wait that is over": func(t *testing.T, s *locktest.Site, write *messages.Lock) func() {
			locktest.AcquireSoon(t.Context(), s.ReadWriteLock(write.Name).Write(), lockkeeper.WithWait(2*time.Second))
			return func() {}
		},
		"the death of an actor": func(t *testing.T, s *locktest.Site, write *messages.Lock) func() {
			p := s.Probe(t)
			p.Send(&messages.Acquire{Lock: write})
			return p.Die
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s, other, k := locktest.NewTwo(t, locktest.NoPolling)
			locktest.Acquire(t, other.ReadWriteLock(k.LockName).Read())
			read := s.ReadWriteLock(k.LockName).Read()
			giveUp := waits(t, s, locktest.KindMessage("write", k.LockName))
			locktest.AwaitWaiters(t, read, 1)
			redistest.Eventually(t, "a try after the subscription", func() bool { return listens(t, k, s) })
			granted := locktest.AcquireSoon(locktest.Within(t), read)
			locktest.AwaitWaiters(t, read, 2)
			giveUp()
			locktest.Release(t, locktest.Got(t, granted).Hold)
		})
	}
}

// The entry of a process leaves the queue as soon as all its waiters have given up. If it stayed, each later entry
// would cost a transfer and its return.
func TestWaitQueue_EntryLeavesWithItsWaiters(t *testing.T) {
	t.Parallel()
	for _, kind := range locktest.Words(locktest.HasWaitQueue) {
		s, k := locktest.New(t, locktest.NoPolling)
		lock := func(s *locktest.Site) *lockkeeper.Lock { return locktest.Kinds[kind](s, k.LockName) }
		locktest.Acquire(t, locktest.Blocker(kind)(s, k.LockName))
		ctx, cancel := context.WithCancel(t.Context())
		const others = 5
		var ends []<-chan locktest.Grant
		for range others {
			ends = append(ends, locktest.AcquireSoon(ctx, lock(locktest.Open(t, k.Server.URL(), locktest.NoPolling))))
		}
		entries := func(want int64) func() bool {
			return func() bool { return k.Number(t, "HLEN", locktest.WaitQueue(kind, k.LockName)) == want }
		}
		redistest.Eventually(t, "all entries in the queue of "+kind, entries(others))
		cancel()
		for _, end := range ends {
			locktest.Await(t, "the end of a wait", end)
		}
		redistest.Eventually(t, "the queue of "+kind+" to be empty", entries(0))
	}
}
