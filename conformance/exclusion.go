package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// account is what the lock protects: a number that is read, and written later on.
type account struct {
	inside  atomic.Int32
	balance atomic.Int64
	visits  atomic.Int64
}

// visit is a visit under the lock.
func (a *account) visit(t *trial) {
	if n := a.inside.Add(1); n != 1 {
		t.Errorf("%d hold the lock at once", n)
	}
	seen := a.balance.Load()
	runtime.Gosched()
	a.balance.Store(seen + 1)
	a.inside.Add(-1)
	a.visits.Add(1)
}

func (a *account) check(t *trial) {
	if sum, visits := a.balance.Load(), a.visits.Load(); sum != visits {
		t.Errorf("%d visits made a sum of %d", visits, sum)
	}
}

// crowd runs f for 4 goroutines of each client, so many times each.
func (t *trial) crowd(clients []Client, rounds int, f func(c Client) error) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range clients {
		for range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range rounds {
					if err := f(c); err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
	}
	wg.Wait()
}

const rounds = 15

func mutualExclusion(t *trial) {
	a, b := t.two()
	var shared account
	t.crowd([]Client{a, b}, rounds, func(c Client) error {
		hold, err := c.Acquire(t.ctx, t.lock, Request{})
		if err != nil {
			return err
		}
		shared.visit(t)
		return hold.Release(t.ctx)
	})
	if n := shared.visits.Load(); n != 8*rounds && !t.Failed() {
		t.Errorf("%d visits, want %d", n, 8*rounds)
	}
	shared.check(t)
}

func mutualExclusionByTries(t *trial) {
	a, b := t.two()
	var shared account
	t.crowd([]Client{a, b}, rounds, func(c Client) error {
		r := Request{Try: true}
		if rand.N(2) == 0 {
			r = Request{Wait: 1 + rand.N(30*time.Millisecond)}
		}
		hold, err := c.Acquire(t.ctx, t.lock, r)
		if errors.Is(err, ErrHeld) || errors.Is(err, ErrTimeout) || errors.Is(err, ErrUnavailable) {
			return nil
		}
		if err != nil {
			return err
		}
		shared.visit(t)
		return hold.Release(t.ctx)
	})
	shared.check(t)
	t.passes(a, b)
}

func cancelledAtRandom(t *trial) {
	a, b := t.two()
	var shared account
	t.crowd([]Client{a, b}, rounds, func(c Client) error {
		ctx, cancel := context.WithTimeout(t.ctx, 1+rand.N(30*time.Millisecond))
		defer cancel()
		hold, err := c.Acquire(ctx, t.lock, Request{})
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		shared.visit(t)
		return hold.Release(t.ctx)
	})
	shared.check(t)
	t.passes(a, b)
}
