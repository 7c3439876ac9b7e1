package locks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// The call tree of the test below: which hold's context each was acquired with, -1 for none.
var branches = []int{-1, 0, 1, 0}

// lossOfAll stands for the loss of all that is held, beside the numbers of the holds to release.
const lossOfAll = -1

// TestCallTreeInEveryOrder releases the holds of a call tree, and loses them, in every
// order. After each step every hold tells the truth, and whoever acquires the lock with
// the context of one re-enters it if anything of the tree is still held, and never waits
// for itself.
func TestCallTreeInEveryOrder(t *testing.T) {
	s := locktest.Open(t, redistest.Shared(t).URL(), lockkeeper.Config{})
	for _, order := range orders([]int{lossOfAll, 0, 1, 2, 3}) {
		tree := newCallTree(t, s)
		for i, what := range order {
			tree.do(what)
			if err := tree.check(); err != nil {
				t.Fatalf("after %v, where %d is the loss of all: %v", order[:i+1], lossOfAll, err)
			}
			if what == lossOfAll {
				break // what is released afterwards was lost before
			}
		}
		tree.end()
	}
}

func orders(of []int) (all [][]int) {
	if len(of) == 0 {
		return [][]int{nil}
	}
	for i := range of {
		rest := append(append([]int{}, of[:i]...), of[i+1:]...)
		for _, order := range orders(rest) {
			all = append(all, append([]int{of[i]}, order...))
		}
	}
	return all
}

type callTree struct {
	t        *testing.T
	key      locktest.Key
	lock     *lockkeeper.Lock
	holds    []*lockkeeper.Hold
	contexts []context.Context
	// What the test knows: which holds were released, whether the rest was lost, and with
	// what cause each context must have ended; nil if it must not.
	released []bool
	lost     bool
	causes   []error
}

func newCallTree(t *testing.T, s *locktest.Site) *callTree {
	c := &callTree{t: t, key: locktest.NewKey(t, redistest.Shared(t)), released: make([]bool, len(branches)), causes: make([]error, len(branches))}
	c.lock = s.Lock(c.key.LockName)
	for i, outer := range branches {
		ctx := context.Background()
		if outer >= 0 {
			ctx = c.contexts[outer]
		}
		hold, err := c.lock.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if hold.Count() != i+1 {
			t.Fatalf("hold %d has count %d", i, hold.Count())
		}
		c.holds, c.contexts = append(c.holds, hold), append(c.contexts, hold.Context())
	}
	return c
}

func (c *callTree) do(what int) {
	c.t.Helper()
	if what != lossOfAll {
		locktest.Release(c.t, c.holds[what])
		c.released[what] = true
		for i := range c.holds {
			if c.causes[i] == nil && c.released[i] && !c.lasts(i) {
				c.causes[i] = lockkeeper.ErrNotHeld
			}
		}
		return
	}
	if _, err := c.lock.ForceRelease(locktest.Within(c.t)); err != nil {
		c.t.Fatal(err)
	}
	if c.active() == 0 {
		return // there was nothing to lose
	}
	c.lost = true
	for i := range c.holds {
		if c.causes[i] == nil {
			c.causes[i] = lockkeeper.ErrLost
		}
	}
}

// lasts reports whether a hold, or one that was acquired beneath it, is not released.
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

func (c *callTree) active() (n int) {
	for i := range c.holds {
		if !c.released[i] && !c.lost {
			n++
		}
	}
	return n
}

func (c *callTree) check() error {
	for i, hold := range c.holds {
		var want error
		switch {
		case c.released[i]:
			want = lockkeeper.ErrNotHeld
		case c.lost:
			want = lockkeeper.ErrLost
		}
		if err := hold.Err(); !errors.Is(err, want) {
			return fmt.Errorf("hold %d is over because of %v, want %v", i, err, want)
		}
		if hold.Valid() != (want == nil) {
			return fmt.Errorf("hold %d is valid: %v", i, hold.Valid())
		}
		if cause := context.Cause(c.contexts[i]); !errors.Is(cause, c.causes[i]) {
			return fmt.Errorf("the context of hold %d has ended because of %v, want %v", i, cause, c.causes[i])
		}
		for what, ctx := range map[string]context.Context{"the context": c.contexts[i], "the context, without its end,": context.WithoutCancel(c.contexts[i])} {
			if err := c.acquire(ctx); err != nil {
				return fmt.Errorf("an acquire with %s of hold %d: %w", what, i, err)
			}
		}
	}
	return nil
}

// acquire acquires the lock once more with a context that may be over.
func (c *callTree) acquire(ctx context.Context) error {
	over := context.Cause(ctx)
	hold, err := c.lock.Acquire(ctx, lockkeeper.WithWait(redistest.Limit))
	if over != nil {
		if !errors.Is(err, over) {
			return fmt.Errorf("error %v, want %v", err, over)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if n := c.active(); hold.Count() != n+1 {
		return fmt.Errorf("it has count %d, and %d are held", hold.Count(), n)
	}
	return hold.Release(locktest.Within(c.t))
}

func (c *callTree) end() {
	c.t.Helper()
	for i, hold := range c.holds {
		if !c.released[i] {
			locktest.IsError(c.t, hold.Release(locktest.Within(c.t)), lockkeeper.ErrLost)
		}
	}
	c.key.IsFree(c.t)
}

// Contexts that are made only after the end have the same cause.
func TestContextOfAHoldThatIsOver(t *testing.T) {
	s := locktest.Open(t, redistest.Shared(t).URL(), lockkeeper.Config{})
	k := locktest.NewKey(t, redistest.Shared(t))
	outer := s.Acquire(t, k)
	inner := s.AcquireIn(t, outer.Context(), k)
	again := s.AcquireIn(t, outer.Context(), k)
	locktest.Release(t, inner)
	if _, err := s.Lock(k.LockName).ForceRelease(locktest.Within(t)); err != nil {
		t.Fatal(err)
	}
	for hold, want := range map[*lockkeeper.Hold]string{inner: "released", again: "force-released", outer: "force-released"} {
		if cause := context.Cause(hold.Context()); cause == nil || !strings.Contains(cause.Error(), want) {
			t.Errorf("the cause is %v, want that it was %s", cause, want)
		}
	}
}

// A release that finds the lock gone says so, and so does the context.
func TestReleaseOfALockThatIsGoneIsALoss(t *testing.T) {
	s := locktest.Open(t, redistest.Shared(t).URL(), lockkeeper.Config{})
	k := locktest.NewKey(t, redistest.Shared(t))
	hold := s.Acquire(t, k)
	ctx := hold.Context()
	k.Do(t, "DEL", k.Name)
	locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
	for _, err := range []error{context.Cause(ctx), hold.Err()} {
		locktest.IsError(t, err, lockkeeper.ErrLost)
	}
}
