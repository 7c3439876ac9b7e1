package conformance_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// account is protected by the lock: a number that is read, and written a little later.
type account struct {
	inside  atomic.Int32
	balance atomic.Int64
	visits  atomic.Int64
}

// visit increments the account under the lock.
func (a *account) visit(t *trial) {
	if n := a.inside.Add(1); n != 1 {
		t.Errorf("%d hold the lock at once", n)
	}
	seen := a.balance.Load()
	time.Sleep(time.Millisecond) // for another visit to lose an update, if the lock lets it in
	a.balance.Store(seen + 1)
	a.inside.Add(-1)
	a.visits.Add(1)
}

const crowd, rounds = 4, 10

// crowded lets many goroutines in each of two processes visit an account, so many times each. A request may also end
// with one of the errors.
func (t *trial) crowded(a, b *process, ask func() (context.Context, context.CancelFunc, request), may ...error) (visits int64) {
	t.Helper()
	var shared account
	t.all([]*process{a, b}, func(p *process) error {
		ctx, cancel, r := ask()
		defer cancel()
		hold, err := p.acquire(ctx, t.lock, r)
		for _, each := range may {
			if errors.Is(err, each) {
				return nil
			}
		}
		if err != nil {
			return err
		}
		shared.visit(t)
		return hold.release(t.ctx)
	})
	if sum, visits := shared.balance.Load(), shared.visits.Load(); sum != visits {
		t.Errorf("%d visits made a sum of %d", visits, sum)
	}
	t.passes(a, b)
	return shared.visits.Load()
}

// all runs f on many goroutines of each process, in rounds.
func (t *trial) all(processes []*process, f func(p *process) error) {
	t.Helper()
	var running sync.WaitGroup
	for _, p := range processes {
		for range crowd {
			running.Go(func() {
				for range rounds {
					if err := f(p); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	running.Wait()
}

func mutualExclusion(t *trial, a, b *process) {
	visits := t.crowded(a, b, func() (context.Context, context.CancelFunc, request) { return t.ctx, func() {}, request{} })
	if want := int64(2 * crowd * rounds); visits != want && !t.Failed() {
		t.Errorf("%d visits, want %d", visits, want)
	}
}

func mutualExclusionByTries(t *trial, a, b *process) {
	t.crowded(a, b, func() (context.Context, context.CancelFunc, request) {
		r := request{try: true}
		if rand.N(2) == 0 {
			r = request{wait: 1 + rand.N(30*time.Millisecond)}
		}
		return t.ctx, func() {}, r
	}, lockkeeper.ErrHeld, lockkeeper.ErrTimeout, lockkeeper.ErrUnavailable)
}

func cancelledAtRandom(t *trial, a, b *process) {
	t.crowded(a, b, func() (context.Context, context.CancelFunc, request) {
		ctx, cancel := context.WithTimeout(t.ctx, 1+rand.N(30*time.Millisecond))
		return ctx, cancel, request{}
	}, context.DeadlineExceeded)
}

func try(t *trial, a, b *process) {
	hold := t.got(t.ask(a, request{try: true}))
	for range 3 {
		t.isHeld(a, b)
	}
	t.waiting(b, 0)
	t.queued(b, 0)
	t.lasts(hold)
	t.release(hold)
	t.isFree(b, a)
}

func waitTimesOut(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	wait := ttl / 5
	for _, p := range []*process{a, b} {
		began := time.Now()
		t.refused(t.ask(p, request{wait: wait}), lockkeeper.ErrTimeout)
		if took := time.Since(began); took < wait {
			t.Errorf("a wait of %v ended after %v", wait, took)
		}
		t.waiting(p, 0)
		t.queued(p, 0)
	}
	t.lasts(hold)
	t.release(hold)
	t.passes(b, a)
}

func waitGranted(t *trial, a, b *process) {
	for _, wait := range []time.Duration{redistest.Limit, 1<<63 - 1} { // up to the longest Duration
		hold := t.acquire(a, request{})
		waiter := t.soon(t.ctx, b, request{wait: wait})
		t.waiting(b, 1)
		t.release(hold)
		t.release(t.got(waiter))
	}
}

func cancelledBefore(t *trial, a, b *process) {
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	t.refused(t.soon(ctx, a, request{}), context.Canceled)
	hold := t.got(t.ask(b, request{try: true}))
	t.refused(t.soon(ctx, a, request{}), context.Canceled)
	t.release(hold)
	t.passes(a)
}

// cancelledWhileWaiting cancels requests at the head of the wait queue and in its middle; the other ones get the
// lock.
func cancelledWhileWaiting(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	for _, p := range []*process{a, b} {
		ctx, cancel := context.WithCancel(t.ctx)
		head := t.soon(ctx, p, request{})
		t.waiting(p, 1)
		t.queued(p, 1)
		stays := t.soon(t.ctx, p, request{})
		t.waiting(p, 2)
		t.queued(p, 2)
		behind := t.soon(ctx, p, request{wait: redistest.Limit})
		t.waiting(p, 3)
		t.queued(p, 3)
		cancel()
		t.refused(head, context.Canceled)
		t.refused(behind, context.Canceled)
		t.waiting(p, 1)
		t.queued(p, 1)
		t.lasts(hold)
		t.release(hold)
		hold = t.got(stays)
	}
	t.release(hold)
	t.passes(a, b)
}

// cancelledWhenGranted cancels and grants a request at the same time. It may end either way, but a cancelled request
// must not keep the lock.
func cancelledWhenGranted(t *trial, a, b *process) {
	for i := range 24 {
		hold := t.acquire(a, request{})
		waiting := []*process{a, b}[i%2]
		ctx, cancel := context.WithCancel(t.ctx)
		waiter := t.soon(ctx, waiting, request{})
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

// oneByOne releases a hold, and checks that the waiters get the lock one at a time.
func (t *trial) oneByOne(hold *hold, waiters []<-chan grant, processes ...*process) {
	t.Helper()
	for t.release(hold); len(waiters) > 0; t.release(hold) {
		redistest.Eventually(t, "one of several requests to be granted", func() bool {
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
		t.isHeld(processes...)
		t.lasts(hold)
	}
	t.passes(processes...)
}

func transferred(t *trial, a, _ *process) {
	hold := t.acquire(a, request{})
	var waiters []<-chan grant
	for i := range 5 {
		r := request{}
		if i == 2 {
			r.lease = ttl // with its own lease
		}
		waiters = append(waiters, t.soon(t.ctx, a, r))
		t.waiting(a, i+1)
	}
	t.oneByOne(hold, waiters, a)
}

func transferredElsewhere(t *trial, a, b *process) {
	c := t.open()
	hold := t.acquire(a, request{})
	var waiters []<-chan grant
	for _, client := range []*process{b, c, a} {
		for i := range 2 {
			waiters = append(waiters, t.soon(t.ctx, client, request{}))
			t.waiting(client, i+1)
		}
	}
	t.oneByOne(hold, waiters, c, a, b)
}

func order(t *trial, a, b *process) {
	processes := []*process{a}
	if t.ordered {
		processes = append(processes, b, t.open())
	}
	hold := t.acquire(processes[0], request{})
	var waiters []<-chan grant
	for i := range 9 {
		p := processes[i%len(processes)]
		waiters = append(waiters, t.soon(t.ctx, p, request{}))
		t.waiting(p, i/len(processes)+1)
		t.queued(p, i+1)
	}
	t.release(hold)
	for i, waiter := range waiters {
		hold := t.got(waiter)
		t.pending(waiters[i+1:]...)
		t.release(hold)
	}
}

func inspection(t *trial, a, b *process) {
	is := func(p *process, want state) {
		t.Helper()
		got, err := p.inspect(t.ctx, t.lock)
		if got.queue = 0; err != nil || got != want {
			t.Errorf("the state is %+v, want %+v (%v)", got, want, err)
		}
	}
	is(a, state{})
	hold := t.acquire(a, request{})
	is(a, state{locked: true, heldHere: true, count: 1})
	is(b, state{locked: true, count: 1})
	inner := t.reenter(hold, 2)
	is(a, state{locked: true, heldHere: true, count: 2})
	is(b, state{locked: true, count: 2})
	t.release(inner)
	is(b, state{locked: true, count: 1})
	waiter := t.soon(t.ctx, b, request{})
	t.waiting(b, 1)
	is(a, state{locked: true, heldHere: true, count: 1})
	is(b, state{locked: true, count: 1, waiters: 1})
	t.release(hold)
	next := t.got(waiter)
	is(a, state{locked: true, count: 1})
	is(b, state{locked: true, heldHere: true, count: 1})
	t.release(next)
	is(a, state{})
	is(b, state{})
}
