package locks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// branches is the call tree of the test below: the index of the hold with whose context each was acquired, or -1.
var branches = []int{-1, 0, 1, 0}

// TestCallTree_IsCorrectInEveryOrder releases some holds of a call tree in every order, and loses the others. Before and after
// the loss, every hold reports its true state. An acquire with the context of one re-enters the lock if any hold of
// the tree is left, and never waits for itself.
func TestCallTree_IsCorrectInEveryOrder(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	for _, order := range arrangements(len(branches)) {
		c := newCallTree(t, s)
		for _, i := range order {
			locktest.Release(t, c.holds[i])
			c.released[i] = true
		}
		c.check(t, fmt.Sprintf("after the releases %v", order))
		if len(order) < len(branches) {
			locktest.ForceRelease(t, s.Lock(c.key.LockName), true)
			c.lost = true
			c.check(t, fmt.Sprintf("after the releases %v and the loss", order))
		}
		for i, hold := range c.holds {
			if !c.released[i] {
				locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
			}
		}
		c.key.IsFree(t)
	}
}

// arrangements are all sequences of different numbers below n.
func arrangements(n int) [][]int {
	all := [][]int{nil}
	for i := 0; i < len(all); i++ { // all grows meanwhile
		for next := range n {
			if !slices.Contains(all[i], next) {
				all = append(all, append(slices.Clone(all[i]), next))
			}
		}
	}
	return all
}

type callTree struct {
	key      locktest.Key
	lock     *lockkeeper.Lock
	holds    []*lockkeeper.Hold
	contexts []context.Context
	released []bool
	lost     bool // the holds that were not released
}

func newCallTree(t *testing.T, s *locktest.Site) *callTree {
	t.Helper()
	c := &callTree{key: locktest.NewKey(t, redistest.Shared(t)), released: make([]bool, len(branches))}
	c.lock = s.Lock(c.key.LockName)
	for i, outer := range branches {
		ctx := t.Context()
		if outer >= 0 {
			ctx = c.contexts[outer]
		}
		hold := locktest.AcquireIn(t, ctx, c.lock)
		if hold.Count() != i+1 {
			t.Fatalf("hold %d has count %d", i, hold.Count())
		}
		c.holds, c.contexts = append(c.holds, hold), append(c.contexts, hold.Context())
	}
	return c
}

// lasts reports whether a hold, or a hold that was acquired with its context, is not released.
func (c *callTree) lasts(outer int) bool {
	for i := range c.holds {
		for within := i; within >= 0 && !c.released[i]; within = branches[within] {
			if within == outer {
				return true
			}
		}
	}
	return false
}

func (c *callTree) check(t *testing.T, when string) {
	t.Helper()
	held := 0
	for i := range c.holds {
		if !c.released[i] && !c.lost {
			held++
		}
	}
	for i, hold := range c.holds {
		var over, ended error // of the hold, and of its context
		if c.lost {
			over, ended = lockkeeper.ErrLost, lockkeeper.ErrLost
		}
		if c.released[i] {
			over = lockkeeper.ErrNotHeld
		}
		if !c.lasts(i) {
			ended = lockkeeper.ErrNotHeld
		}
		if err := hold.Err(); !errors.Is(err, over) || hold.Valid() != (over == nil) {
			t.Fatalf("%s: hold %d has ended because of %v, want %v, and valid: %v", when, i, err, over, hold.Valid())
		}
		if err := hold.Ensure(locktest.Within(t), 0); !errors.Is(err, over) {
			t.Fatalf("%s: hold %d is ensured: %v, want %v", when, i, err, over)
		}
		if cause := context.Cause(c.contexts[i]); !errors.Is(cause, ended) {
			t.Fatalf("%s: the context of hold %d has ended because of %v, want %v", when, i, cause, ended)
		}
		for _, ctx := range []context.Context{c.contexts[i], context.WithoutCancel(c.contexts[i])} {
			want := context.Cause(ctx)
			inner, err := c.lock.Acquire(ctx, lockkeeper.WithWait(redistest.Limit))
			if !errors.Is(err, want) {
				t.Fatalf("%s: an acquire with the context of hold %d: error %v, want %v", when, i, err, want)
			}
			if err != nil {
				continue
			}
			if inner.Count() != held+1 {
				t.Fatalf("%s: a re-entry of hold %d has count %d, and %d are held", when, i, inner.Count(), held)
			}
			if hold.Valid() != (over == nil) {
				t.Fatalf("%s: hold %d is valid while another is held: %v", when, i, hold.Valid())
			}
			locktest.Release(t, inner)
		}
	}
}

// Work under a lock ends when an outer lock is lost, in any System, and continues when the outer lock is released.
func TestLoss_EndsContextsOfInnerHolds(t *testing.T) {
	t.Parallel()
	for _, lose := range []bool{true, false} {
		s, k := locktest.New(t, lockkeeper.Config{})
		other, within := locktest.New(t, lockkeeper.Config{})
		outer := s.Acquire(t, k)
		middle := other.AcquireIn(t, outer.Context(), within)
		around, cancel := context.WithCancel(middle.Context())
		innermost := locktest.NewKey(t, k.Server)
		inner := s.AcquireIn(t, around, innermost)
		cancel()
		work := inner.Context()
		locktest.Release(t, middle)
		if lose {
			locktest.ForceRelease(t, s.Lock(k.LockName), true)
			locktest.Await(t, "the end of the work", work.Done())
			locktest.IsError(t, context.Cause(work), lockkeeper.ErrLost, k.LockName)
			locktest.ExpectValid(t, inner)
			locktest.Release(t, inner)
		} else {
			locktest.Release(t, outer)
			locktest.Release(t, inner) // the work lasts until here
			locktest.IsError(t, context.Cause(work), lockkeeper.ErrNotHeld, innermost.LockName)
		}
	}
}

// A release that finds its lock lost ends the contexts of the holds within it, for all kinds of locks.
func TestLoss_FoundByAReleaseEndsInnerContexts(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	name := k.LockName
	permits := s.ExpirableSemaphore(name + "permits")
	locktest.OK(t, permits.SetPermits(locktest.Within(t), 1))
	type hold interface {
		Context() context.Context
		Release(ctx context.Context) error
	}
	for lost, acquire := range map[string]func() hold{
		name + "plain":  func() hold { return locktest.Acquire(t, s.Lock(name+"plain")) },
		name + "fenced": func() hold { return locktest.Acquire(t, s.FencedLock(name+"fenced")) },
		name + "fair":   func() hold { return locktest.Acquire(t, s.FairLock(name+"fair")) },
		name + "reader": func() hold { return locktest.Acquire(t, s.ReadWriteLock(name+"reader").Read()) },
		name + "writer": func() hold { return locktest.Acquire(t, s.ReadWriteLock(name+"writer").Write()) },
		name + "member": func() hold {
			return locktest.Acquire(t, lockkeeper.MultiLock(s.Lock(name+"member"), s.FairLock(name+"other")))
		},
		"{" + name + "permits}:timeout": func() hold {
			permit := locktest.Must(permits.Acquire(locktest.Within(t)))(t)
			return permit
		},
	} {
		outer := acquire()
		inner := locktest.AcquireIn(t, outer.Context(), s.Lock(name+"inner"))
		late := locktest.AcquireIn(t, inner.Context(), s.ReadWriteLock(name+"late").Read())
		k.Do(t, "DEL", lost)
		locktest.IsError(t, outer.Release(locktest.Within(t)), lockkeeper.ErrLost)
		for what, each := range map[string]*lockkeeper.Hold{"made before": inner, "made later": late} {
			redistest.Eventually(t, "the end of the context "+what+" within "+lost, func() bool { return each.Context().Err() != nil })
			locktest.IsError(t, context.Cause(each.Context()), lockkeeper.ErrLost, name)
			locktest.ExpectValid(t, each)
		}
		locktest.Release(t, late)
		locktest.Release(t, inner)
	}
}

// A context that is made after the loss of an outer lock is cancelled at once, with that loss as its cause, for all
// kinds of locks, and with any number of locks between them.
func TestLoss_EndsInnerContextsMadeLater(t *testing.T) {
	t.Parallel()
	s, other, k := locktest.NewTwo(t, lockkeeper.Config{})
	locks := func(at *locktest.Site, name string) map[string]*lockkeeper.Lock {
		name = k.LockName + name
		return map[string]*lockkeeper.Lock{
			"plain": at.Lock(name), "fair": at.FairLock(name + "f"), "reader": at.ReadWriteLock(name + "rw").Read(), "writer": at.ReadWriteLock(name + "w").Write(),
			"multi": lockkeeper.MultiLock(at.Lock(name+"1"), at.ReadWriteLock(name+"2").Read()),
		}
	}
	for kind, outer := range locks(s, "outer") {
		for within, inner := range locks(other, "inner "+kind) {
			around := locktest.Acquire(t, outer)
			again := locktest.AcquireIn(t, around.Context(), outer)
			middle := locktest.AcquireIn(t, again.Context(), s.Lock(k.LockName+"middle"))
			hold := locktest.AcquireIn(t, middle.Context(), inner)
			late := locktest.AcquireIn(t, hold.Context(), s.Lock(k.LockName+"late"))
			deep := locktest.AcquireIn(t, context.WithoutCancel(late.Context()), other.Lock(k.LockName+"deep"))
			locktest.ForceRelease(t, outer, true)
			locktest.Await(t, "the loss", around.Context().Done())
			if cause := context.Cause(deep.Context()); !errors.Is(cause, lockkeeper.ErrLost) || !strings.Contains(cause.Error(), outer.Name()) {
				t.Errorf("within %s within %s: the cause is %v", within, kind, cause)
			}
			for _, each := range []*lockkeeper.Hold{deep, late, hold, middle} {
				locktest.Release(t, each)
			}
		}
	}
}
