package locks_test

// The counters of fencing tokens: losses, and their end.

import (
	"strconv"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
)

// lastToken is the last token that Lua can distinguish from the next.
const lastToken = 1<<53 - 1

// No token is issued twice. At the end of the tokens, every request for a token is refused with a text that says why,
// whether it takes the free lock or gets it by a transfer. The lock is free then.
func TestTokens_AreNeverIssuedTwice(t *testing.T) {
	t.Parallel()
	s, other, k := locktest.NewTwo(t, locktest.NoPolling)
	counter := keyspace.Token(k.LockName)
	k.Do(t, "SET", counter, strconv.FormatInt(lastToken-3, 10))
	for want := int64(lastToken - 2); want <= lastToken; want++ {
		hold := locktest.Acquire(t, s.FencedLock(k.LockName))
		if hold.Token() != want {
			t.Errorf("token %d, want %d", hold.Token(), want)
		}
		locktest.Release(t, hold)
	}
	refused := func(err error) {
		t.Helper()
		locktest.IsError(t, err, lockkeeper.ErrRejected)
		if err != nil && (!strings.Contains(err.Error(), counter) || !strings.Contains(err.Error(), strconv.FormatInt(lastToken, 10))) {
			t.Errorf("the error does not name the counter and its value: %v", err)
		}
	}
	_, err := s.FencedLock(k.LockName).Acquire(locktest.Within(t))
	refused(err)
	_, err = lockkeeper.MultiLock(s.FencedLock(k.LockName), s.Lock(k.LockName+"b")).Acquire(locktest.Within(t))
	refused(err)

	// Waiters that get the lock by a transfer, in a row, and then a waiter that needs no token.
	hold := s.Acquire(t, k)
	fenced := locktest.AcquireSoon(locktest.Within(t), other.FencedLock(k.LockName))
	other.AwaitWaiters(t, k, 1)
	again := locktest.AcquireSoon(locktest.Within(t), other.FencedLock(k.LockName))
	other.AwaitWaiters(t, k, 2)
	plain := other.AcquireSoon(t, k)
	other.AwaitWaiters(t, k, 3)
	locktest.Release(t, hold)
	refused((<-fenced).Err)
	refused((<-again).Err)
	locktest.Release(t, locktest.Got(t, plain).Hold)
	if n := k.Number(t, "EXISTS", k.Name); n != 0 {
		t.Error("the lock is still held")
	}
	locktest.Equal(t, k.Number(t, "GET", counter), lastToken, "the counter is %d")

	// The operator sets the counter back, for a process that has had none of the high tokens.
	k.Do(t, "SET", counter, "41")
	if hold := locktest.Acquire(t, other.FencedLock(k.LockName)); hold.Token() != 42 {
		t.Errorf("token %d, want 42", hold.Token())
	}
}

// The tokens that one System gets for a fenced lock grow although Redis loses the counter, whichever of the System's
// locks draws them: the lock itself, or one of several MultiLocks of which it is a member.
func TestTokens_OfOneSystemGrowAcrossItsLocks(t *testing.T) {
	t.Parallel()
	locks := map[string]func(s *locktest.Site, name string) *lockkeeper.Lock{
		"fenced": func(s *locktest.Site, name string) *lockkeeper.Lock { return s.FencedLock(name) },
		"multi": func(s *locktest.Site, name string) *lockkeeper.Lock {
			return lockkeeper.MultiLock(s.FencedLock(name), s.Lock(name+"b"))
		},
		"other multi": func(s *locktest.Site, name string) *lockkeeper.Lock {
			return lockkeeper.MultiLock(s.Lock(name+"a"), s.FencedLock(name))
		},
		"fenced multi": func(s *locktest.Site, name string) *lockkeeper.Lock {
			return lockkeeper.MultiLock(s.FencedLock(name), s.FencedLock(name+"c"))
		},
	}
	draw := func(t *testing.T, l *lockkeeper.Lock, member int) int64 {
		t.Helper()
		hold := locktest.Acquire(t, l)
		defer locktest.Release(t, hold)
		if tokens := hold.MemberTokens(); tokens != nil {
			return tokens[member]
		}
		return hold.Token()
	}
	at := map[string]int{"other multi": 1}
	for first, makeFirst := range locks {
		for second, makeSecond := range locks {
			t.Run(first+", then "+second, func(t *testing.T) {
				s, k := locktest.New(t, locktest.NoPolling)
				var last int64
				for range 3 {
					last = draw(t, makeFirst(s, k.LockName), at[first])
				}
				k.Do(t, "DEL", keyspace.Token(k.LockName))
				if next := draw(t, makeSecond(s, k.LockName), at[second]); next <= last {
					t.Errorf("token %d, and the System had %d before", next, last)
				}
			})
		}
	}
}

// A hold whose key was deleted has drawn tokens for the next local ones. If a MultiLock of the System has drawn since,
// these are too low.
func TestTokens_DrawnBeforeALossAreNotUsed(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	fenced := s.FencedLock(k.LockName)
	before := locktest.Acquire(t, fenced)
	first := locktest.AcquireSoon(t.Context(), fenced)
	s.AwaitWaiters(t, k, 1)
	second := locktest.AcquireSoon(t.Context(), fenced)
	s.AwaitWaiters(t, k, 2)
	locktest.Release(t, before)
	hold := locktest.Got(t, first).Hold
	k.Do(t, "DEL", k.Name)
	multi := locktest.Acquire(t, lockkeeper.MultiLock(fenced, s.Lock(k.LockName+" too")))
	last := multi.MemberTokens()[0]
	locktest.Release(t, multi)
	_ = hold.Release(locktest.Within(t)) // it may be lost
	next := locktest.Got(t, second).Hold
	if next.Token() <= last {
		t.Errorf("token %d, after %d", next.Token(), last)
	}
	_ = next.Release(locktest.Within(t))
}

// However often the counters are lost, they exceed the last known value only by the number of tokens drawn.
func TestTokens_GrowLinearlyWhenCountersAreLost(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	a, b := keyspace.Token(k.LockName), keyspace.Token(k.LockName+"b")
	other := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	k.Do(t, "SET", a, "1000000")
	const losses = 40
	for range losses {
		for _, site := range []*locktest.Site{s, other} {
			f, g := site.FencedLock(k.LockName), site.FencedLock(k.LockName+"b")
			locktest.ExpectGranted(t, f)
			locktest.ExpectGranted(t, lockkeeper.MultiLock(f, g))
		}
		k.Do(t, "DEL", a, b)
	}
	for counter, begun := range map[string]int64{k.LockName: 1000000, k.LockName + "b": 0} {
		last := locktest.Acquire(t, s.FencedLock(counter)).Token()
		if last > begun+20*losses {
			t.Errorf("the counter has grown from %d to %d in %d losses", begun, last, losses)
		}
	}
}
