package conformance

import (
	"context"
	"errors"
	"time"
)

func try(t *trial) {
	a, b := t.two()
	hold := t.got(t.ask(a, Request{Try: true}))
	for range 3 {
		t.isHeld(a, b)
	}
	t.waiting(b, 0)
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
	}
	t.waiting(a, 0)
	t.waiting(b, 0)
	t.lasts(hold)
	t.release(hold)
	t.passes(b, a)
}

func waitRewarded(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	waiter := t.soon(t.ctx, b, Request{Wait: Limit})
	t.waiting(b, 1)
	t.release(hold)
	t.release(t.got(waiter))
	// A wait that is as long as can be is no shorter for it.
	hold = t.acquire(a, Request{})
	waiter = t.soon(t.ctx, b, Request{Wait: 1<<63 - 1})
	t.waiting(b, 1)
	t.release(hold)
	t.release(t.got(waiter))
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

func cancelledWhileWaiting(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	for _, c := range []Client{a, b} {
		ctx, cancel := context.WithCancel(t.ctx)
		first, second := t.soon(ctx, c, Request{}), t.soon(ctx, c, Request{Wait: Limit})
		t.waiting(c, 2)
		stays := t.soon(t.ctx, c, Request{})
		t.waiting(c, 3)
		cancel()
		t.refused(first, context.Canceled)
		t.refused(second, context.Canceled)
		t.waiting(c, 1)
		t.lasts(hold)
		t.release(hold)
		hold = t.got(stays) // who stays gets what those before it do not want any more
	}
	t.release(hold)
	t.passes(a, b)
}

// cancelledWhenGranted has a request be cancelled and granted at the same time, so that
// it ends either way; the lock must not stay with somebody who has gone.
func cancelledWhenGranted(t *trial) {
	a, b := t.two()
	for i := range 40 {
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
	t.release(hold)
	for range waiters {
		hold, waiters = t.oneOf(waiters)
		t.isHeld(a)
		t.lasts(hold)
		t.release(hold)
	}
	t.passes(a)
}

// oneOf waits for the first of several grants, and gives the others.
func (t *trial) oneOf(all []<-chan grant) (hold Hold, others []<-chan grant) {
	t.Helper()
	t.eventually("one of several requests to be granted", func() bool {
		for i, granted := range all {
			select {
			case g := <-granted:
				if g.err != nil {
					t.Fatalf("acquire: %v", g.err)
				}
				hold, others = g.hold, append(append(others, all[:i]...), all[i+1:]...)
				return true
			default:
			}
		}
		return false
	})
	return hold, others
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
	t.release(hold)
	for range waiters {
		hold, waiters = t.oneOf(waiters)
		t.isHeld(a, b, c)
		t.lasts(hold)
		t.release(hold)
	}
	t.passes(c, a, b)
}

func order(t *trial) {
	if t.traits.Unordered {
		t.Skip("no order is promised")
	}
	clients := []Client{t.open()}
	can[Inspector](t, clients[0])
	if t.traits.Ordered {
		clients = append(clients, t.open(), t.open())
	}
	hold := t.acquire(clients[0], Request{})
	var waiters []<-chan grant
	for i := range 9 {
		c := clients[i%len(clients)]
		waiters = append(waiters, t.soon(t.ctx, c, Request{}))
		t.waiting(c, i/len(clients)+1)
		if t.traits.Ordered {
			t.eventually("the request to stand in line", func() bool {
				status, err := c.(Inspector).Inspect(t.ctx, t.lock)
				return err == nil && status.Queue == i+1
			})
		}
	}
	t.release(hold)
	for i, waiter := range waiters {
		hold := t.got(waiter)
		for _, other := range waiters[i+1:] {
			select {
			case g := <-other:
				t.Fatalf("somebody was granted the lock out of turn: %v", g.err)
			default:
			}
		}
		t.release(hold)
	}
}
