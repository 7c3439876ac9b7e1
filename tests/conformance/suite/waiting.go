package suite

import (
	"context"
	"errors"
	"math/rand/v2"
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
	time.Sleep(time.Millisecond)
	a.balance.Store(seen + 1)
	a.inside.Add(-1)
	a.visits.Add(1)
}

const crowd, rounds = 4, 10

// crowded has a crowd of goroutines in each of two clients visit an account, so many times
// each. A request may end with one of the errors instead.
func (t *trial) crowded(request func() (context.Context, context.CancelFunc, Request), may ...error) (visits int64) {
	t.Helper()
	a, b := t.two()
	var shared account
	t.all([]Client{a, b}, func(c Client) error {
		ctx, cancel, r := request()
		defer cancel()
		hold, err := c.Acquire(ctx, t.lock, r)
		for _, each := range may {
			if errors.Is(err, each) {
				return nil
			}
		}
		if err != nil {
			return err
		}
		shared.visit(t)
		return hold.Release(t.ctx)
	})
	if sum, visits := shared.balance.Load(), shared.visits.Load(); sum != visits {
		t.Errorf("%d visits made a sum of %d", visits, sum)
	}
	t.passes(a, b)
	return shared.visits.Load()
}

// all runs f for a crowd of goroutines of each client, in rounds.
func (t *trial) all(clients []Client, f func(c Client) error) {
	t.Helper()
	var running sync.WaitGroup
	for _, c := range clients {
		for range crowd {
			running.Go(func() {
				for range rounds {
					if err := f(c); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	running.Wait()
}

func mutualExclusion(t *trial) {
	visits := t.crowded(func() (context.Context, context.CancelFunc, Request) { return t.ctx, func() {}, Request{} })
	if want := int64(2 * crowd * rounds); visits != want && !t.Failed() {
		t.Errorf("%d visits, want %d", visits, want)
	}
}

func mutualExclusionByTries(t *trial) {
	t.crowded(func() (context.Context, context.CancelFunc, Request) {
		r := Request{Try: true}
		if rand.N(2) == 0 {
			r = Request{Wait: 1 + rand.N(30*time.Millisecond)}
		}
		return t.ctx, func() {}, r
	}, ErrHeld, ErrTimeout, ErrUnavailable)
}

func cancelledAtRandom(t *trial) {
	t.crowded(func() (context.Context, context.CancelFunc, Request) {
		ctx, cancel := context.WithTimeout(t.ctx, 1+rand.N(30*time.Millisecond))
		return ctx, cancel, Request{}
	}, context.DeadlineExceeded)
}

func try(t *trial) {
	a, b := t.two()
	hold := t.got(t.ask(a, Request{Try: true}))
	for range 3 {
		t.isHeld(a, b)
	}
	t.waiting(b, 0)
	t.queued(b, 0)
	t.lasts(hold)
	t.release(hold)
	t.isFree(b, a)
}

func waitOver(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	wait := t.traits.TTL / 5
	for _, c := range []Client{a, b} {
		began := time.Now()
		t.refused(t.ask(c, Request{Wait: wait}), ErrTimeout)
		if took := time.Since(began); took < wait {
			t.Errorf("a wait of %v was over after %v", wait, took)
		}
		t.waiting(c, 0)
		t.queued(c, 0)
	}
	t.lasts(hold)
	t.release(hold)
	t.passes(b, a)
}

func waitRewarded(t *trial) {
	a, b := t.two()
	for _, wait := range []time.Duration{Limit, 1<<63 - 1} { // as long as can be
		hold := t.acquire(a, Request{})
		waiter := t.soon(t.ctx, b, Request{Wait: wait})
		t.waiting(b, 1)
		t.release(hold)
		t.release(t.got(waiter))
	}
}

func cancelledBefore(t *trial) {
	a, b := t.two()
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	t.refused(t.soon(ctx, a, Request{}), context.Canceled)
	hold := t.got(t.ask(b, Request{Try: true}))
	t.refused(t.soon(ctx, a, Request{}), context.Canceled)
	t.release(hold)
	t.passes(a)
}

// cancelledWhileWaiting has requests go from the head of the line and from its middle; who
// stays gets the lock.
func cancelledWhileWaiting(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	for _, c := range []Client{a, b} {
		ctx, cancel := context.WithCancel(t.ctx)
		head := t.soon(ctx, c, Request{})
		t.waiting(c, 1)
		t.queued(c, 1)
		stays := t.soon(t.ctx, c, Request{})
		t.waiting(c, 2)
		t.queued(c, 2)
		behind := t.soon(ctx, c, Request{Wait: Limit})
		t.waiting(c, 3)
		t.queued(c, 3)
		cancel()
		t.refused(head, context.Canceled)
		t.refused(behind, context.Canceled)
		t.waiting(c, 1)
		t.queued(c, 1)
		t.lasts(hold)
		t.release(hold)
		hold = t.got(stays)
	}
	t.release(hold)
	t.passes(a, b)
}

// cancelledWhenGranted has a request be cancelled and granted at the same time, so that
// it ends either way; the lock must not stay with somebody who has gone.
func cancelledWhenGranted(t *trial) {
	a, b := t.two()
	for i := range 24 {
		hold := t.acquire(a, Request{})
		waiting := []Client{a, b}[i%2]
		ctx, cancel := context.WithCancel(t.ctx)
		waiter := t.soon(ctx, waiting, Request{})
		t.waiting(waiting, 1)
		go cancel()
		t.release(hold)
		if g := t.settled(waiter); g.err == nil {
			t.release(g.hold)
		} else if !errors.Is(g.err, context.Canceled) {
			t.Fatal(g.err)
		}
	}
	t.passes(a, b)
}

// oneByOne releases a hold, after which each waiter gets the lock, alone.
func (t *trial) oneByOne(hold Hold, waiters []<-chan grant, clients ...Client) {
	t.Helper()
	for t.release(hold); len(waiters) > 0; t.release(hold) {
		t.eventually("one of several requests to be granted", func() bool {
			for i, granted := range waiters {
				select {
				case g := <-granted:
					if g.err != nil {
						t.Fatalf("acquire: %v", g.err)
					}
					hold, waiters = g.hold, append(waiters[:i:i], waiters[i+1:]...)
					return true
				default:
				}
			}
			return false
		})
		t.isHeld(clients...)
		t.lasts(hold)
	}
	t.passes(clients...)
}

func passedOn(t *trial) {
	a := t.open()
	hold := t.acquire(a, Request{})
	var waiters []<-chan grant
	for i := range 5 {
		r := Request{}
		if i == 2 {
			r.Lease = t.traits.TTL // with a lease of its own
		}
		waiters = append(waiters, t.soon(t.ctx, a, r))
		t.waiting(a, i+1)
	}
	t.oneByOne(hold, waiters, a)
}

func passedOnElsewhere(t *trial) {
	a, b := t.two()
	c := t.open()
	hold := t.acquire(a, Request{})
	var waiters []<-chan grant
	for _, client := range []Client{b, c, a} {
		for i := range 2 {
			waiters = append(waiters, t.soon(t.ctx, client, Request{}))
			t.waiting(client, i+1)
		}
	}
	t.oneByOne(hold, waiters, c, a, b)
}

func order(t *trial) {
	clients := []Client{t.open()}
	if t.traits.Ordered {
		clients = append(clients, t.open(), t.open())
	}
	hold := t.acquire(clients[0], Request{})
	var waiters []<-chan grant
	for i := range 9 {
		c := clients[i%len(clients)]
		waiters = append(waiters, t.soon(t.ctx, c, Request{}))
		t.waiting(c, i/len(clients)+1)
		t.queued(c, i+1)
	}
	t.release(hold)
	for i, waiter := range waiters {
		hold := t.got(waiter)
		t.pending(waiters[i+1:]...)
		t.release(hold)
	}
}

func inspection(t *trial) {
	a, b := t.two()
	is := func(c Client, want Status) {
		t.Helper()
		got, err := c.Inspect(t.ctx, t.lock)
		if got.Queue = 0; err != nil || got != want {
			t.Errorf("the state is %+v, want %+v (%v)", got, want, err)
		}
	}
	is(a, Status{})
	hold := t.acquire(a, Request{})
	is(a, Status{Locked: true, HeldHere: true, Count: 1})
	is(b, Status{Locked: true, Count: 1})
	if t.can(Reentry) {
		inner := t.reenter(hold, 2)
		is(a, Status{Locked: true, HeldHere: true, Count: 2})
		is(b, Status{Locked: true, Count: 2})
		t.release(inner)
		is(b, Status{Locked: true, Count: 1})
	}
	waiter := t.soon(t.ctx, b, Request{})
	t.waiting(b, 1)
	is(a, Status{Locked: true, HeldHere: true, Count: 1})
	is(b, Status{Locked: true, Count: 1, Waiters: 1})
	t.release(hold)
	next := t.got(waiter)
	is(a, Status{Locked: true, Count: 1})
	is(b, Status{Locked: true, HeldHere: true, Count: 1})
	t.release(next)
	is(a, Status{})
	is(b, Status{})
}
