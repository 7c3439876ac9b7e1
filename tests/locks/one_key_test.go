package locks_test

// One lock actor owns one key in Redis, for plain and fenced locks, by call and by message. Locks that share a key
// without sharing the actor, such as MultiLocks, are notified of forced releases.

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestOneKey_PlainAndFencedExcludeEachOther(t *testing.T) {
	t.Parallel()
	for in, other := range map[string]string{"fenced": "plain", "plain": "fenced"} {
		s, k := locktest.New(t, lockkeeper.Config{})
		first, second := locktest.Kinds[in](s, k.LockName), locktest.Kinds[other](s, k.LockName)
		hold := locktest.Acquire(t, first)
		locktest.ExpectRefused(t, lockkeeper.ErrHeld, second)
		locktest.ExpectRefusal(t, s.Probe(t), &messages.Acquire{Lock: locktest.KindMessage(other, k.LockName), Wait: durationpb.New(0)}, messages.Reason_REASON_HELD)
		next := locktest.AcquireSoon(locktest.Within(t), second)
		s.AwaitWaiters(t, k, 1)
		locktest.ExpectValid(t, hold)
		locktest.Release(t, hold)
		locktest.Release(t, locktest.Got(t, next).Hold)

		// A hold may be released by its id as either kind.
		p := s.Probe(t)
		granted := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: locktest.KindMessage(in, k.LockName)})
		locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: locktest.KindMessage(other, k.LockName), HoldId: granted.HoldId})
	}
}

// A refusal says as what the name is in use.
func TestOneKey_IsOfOneKind(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	use := func(as string, wanted *lockkeeper.Lock) {
		t.Helper()
		locktest.Fails(wanted.TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrInvalid, "in use in this system as "+as)
	}
	hold := locktest.Acquire(t, s.FairLock(k.LockName))
	use("a fair lock, and cannot be a plain or fenced lock at the same time", s.Lock(k.LockName))
	locktest.Fails(s.ExpirableSemaphore(k.LockName).Acquire(locktest.Within(t)))(t, lockkeeper.ErrInvalid, "cannot be an expirable semaphore")
	locktest.Release(t, hold)
	locktest.OK(t, s.ExpirableSemaphore(k.LockName).SetPermits(locktest.Within(t), 1))
	permit, err := s.ExpirableSemaphore(k.LockName).Acquire(locktest.Within(t))
	locktest.OK(t, err)
	use("an expirable semaphore, and cannot be a plain or fenced lock", s.Lock(k.LockName))
	locktest.OK(t, permit.Release(locktest.Within(t)))
}

func TestForceRelease_NotifiesRelatedLocksAtOnce(t *testing.T) {
	t.Parallel()
	plain := func(s *locktest.Site, name string) *lockkeeper.Lock { return s.Lock(name) }
	pair := func(s *locktest.Site, name string) *lockkeeper.Lock {
		return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+"b"))
	}
	for what, test := range map[string]struct {
		hold, release func(s *locktest.Site, name string) *lockkeeper.Lock
		// far: another System holds a member, and releases it.
		far bool
	}{
		"a member of a MultiLock":       {pair, plain, false},
		"the MultiLock of a plain lock": {plain, pair, false},
		"a fenced hold as a plain lock": {locktest.Kinds["fenced"], plain, false},
		"a MultiLock of another": {pair, func(s *locktest.Site, name string) *lockkeeper.Lock {
			return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+"c"))
		}, false},
		"a member on another System": {nil, plain, true},
	} {
		// The next renewal would come after a minute.
		config := lockkeeper.Config{Watchdog: 3 * time.Minute}
		s, k := locktest.New(t, config)
		releaser := s
		if test.far {
			releaser = locktest.Open(t, k.Server.URL(), config)
			test.hold = func(s *locktest.Site, name string) *lockkeeper.Lock {
				return lockkeeper.MultiLock(s.Lock(name+"a"), releaser.Lock(name))
			}
		}
		hold := locktest.Acquire(t, test.hold(s, k.LockName))
		locktest.ForceRelease(t, test.release(releaser, k.LockName), true)
		locktest.Await(t, "the loss by "+what, hold.Context().Done())
		locktest.IsError(t, hold.Err(), lockkeeper.ErrLost)
	}
}

// Tokens grow although their counter has lost some, as in a failover. A waiter gets its token by a transfer.
func TestTokens_GrowAfterTheirCounterIsLost(t *testing.T) {
	t.Parallel()
	s, other, k := locktest.NewTwo(t, lockkeeper.Config{})
	last := map[*locktest.Site]int64{}
	grown := func(site *locktest.Site, hold *lockkeeper.Hold) {
		t.Helper()
		if hold.Token() <= last[site] {
			t.Errorf("token %d comes after %d", hold.Token(), last[site])
		}
		last[site] = hold.Token()
		k.Do(t, "DEL", keyspace.Token(k.LockName))
		locktest.Release(t, hold)
	}
	for range 3 {
		hold := locktest.Acquire(t, s.FencedLock(k.LockName))
		next := locktest.AcquireSoon(locktest.Within(t), other.FencedLock(k.LockName))
		other.AwaitWaiters(t, k, 1)
		grown(s, hold)
		grown(other, locktest.Got(t, next).Hold)
	}
}
