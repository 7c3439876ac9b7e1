package suite

import (
	"context"
	"time"
)

// afterLoss checks that a hold is over, and that its late release harms nobody.
func (t *trial) afterLoss(lost Hold, clients ...Client) {
	t.Helper()
	t.isLost(lost)
	for _, c := range clients {
		next := t.acquire(c, Request{})
		t.notReleased(lost, ErrLost, ErrNotHeld)
		t.isHeld(clients...)
		t.lasts(next)
		t.release(next)
	}
}

// stays checks that a hold lasts for that long, and that nobody else gets the lock.
func (t *trial) stays(hold Hold, other Client, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(t.traits.TTL / 10) {
		t.lasts(hold)
		t.isHeld(other)
	}
	t.lasts(hold)
}

// leaseEnds has the lease of a hold end, then that of one that was passed on here, and of
// one elsewhere.
func leaseEnds(t *trial) {
	a, b := t.two()
	leased := Request{Lease: t.traits.Lease}
	hold := t.acquire(a, leased)
	for _, c := range []Client{a, b} {
		next := t.soon(t.ctx, c, leased)
		t.isLost(hold)
		t.notReleased(hold, ErrLost)
		hold = t.got(next)
	}
	waiter := t.soon(t.ctx, a, Request{})
	t.isLost(hold)
	t.release(t.got(waiter))
	t.passes(b, a)
}

// leaseReleased has the next hold neither end with the lease of the one before, nor have it.
func leaseReleased(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{Lease: t.traits.TTL})
	t.release(hold)
	t.lasts(hold)
	next := t.acquire(a, Request{})
	t.stays(next, b, 3*t.traits.TTL/2)
	t.release(next)
	t.passes(b)
}

func keptAlive(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	t.stays(hold, b, 2*t.traits.TTL)
	t.release(hold)
	t.passes(b)
}

// keptAliveForTheNext has nothing that the holders before left behind end the hold of
// the next one, nor keep it alive when it is over.
func keptAliveForTheNext(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	if t.can(Reentry) {
		t.release(t.reenter(hold, 2))
	}
	waiter := t.soon(t.ctx, a, Request{})
	t.waiting(a, 1)
	t.release(hold)
	next := t.got(waiter)
	t.stays(next, b, 3*t.traits.TTL/2)
	t.release(next)
	t.isFree(b)
}

func deleted(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	t.adapter.Delete(t, t.lock)
	t.afterLoss(hold, b, a)
}

func lateRelease(t *trial) {
	a, b := t.two()
	t.afterLoss(t.acquire(a, Request{Lease: t.traits.Lease}), b, a)
}

func secondRelease(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	t.release(hold)
	for _, c := range []Client{a, b} {
		next := t.acquire(c, Request{})
		t.notReleased(hold, ErrNotHeld)
		t.isHeld(a, b)
		t.release(next)
	}
}

func deathOfAHolder(t *trial) {
	a, b := t.two()
	for _, next := range []Client{a, b} {
		death := make(chan struct{})
		hold := t.acquire(a, Request{Death: death})
		if t.can(Reentry) {
			t.reenter(hold, 2) // its death ends both
		}
		waiter := t.soon(t.ctx, next, Request{})
		t.waiting(next, 1)
		close(death)
		t.release(t.got(waiter))
	}
	death := make(chan struct{})
	t.acquire(b, Request{Death: death})
	close(death) // with nobody waiting
	t.passes(a, b)
}

func deathOfAWaiter(t *trial) {
	a, b := t.two()
	for _, c := range []Client{a, b} {
		hold := t.acquire(a, Request{})
		death := make(chan struct{})
		t.soon(t.ctx, c, Request{Death: death})
		t.waiting(c, 1)
		stays := t.soon(t.ctx, c, Request{})
		t.waiting(c, 2)
		t.queued(c, 2)
		close(death)
		t.waiting(c, 1)
		t.queued(c, 1)
		t.lasts(hold)
		t.release(hold)
		t.release(t.got(stays))
	}
}

func crash(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	holds := []Hold{hold}
	if t.can(Reentry) {
		holds = append(holds, t.reenter(hold, 2))
	}
	waiters := []<-chan grant{t.soon(t.ctx, a, Request{}), t.soon(t.ctx, a, Request{})}
	t.waiting(a, 2)
	for name, crash := range a.Crashes(t.lock) {
		crash(t)
		t.Logf("crashed: %s", name)
		t.waiting(a, 2)
		t.lasts(hold)
		t.isHeld(b)
	}
	t.stays(hold, b, 3*t.traits.TTL/2) // what was under way goes on
	for ; len(holds) > 1; holds = holds[:len(holds)-1] {
		t.release(holds[len(holds)-1])
		t.isHeld(b)
	}
	t.oneByOne(hold, waiters, b, a)
}

// force frees the lock by force.
func (t *trial) force(c Client, want bool) {
	t.Helper()
	wasHeld, err := c.ForceRelease(t.ctx, t.lock)
	if err != nil {
		t.Fatal(err)
	}
	if wasHeld != want {
		t.Errorf("a forced release told that the lock was held: %v", wasHeld)
	}
}

func forcedHere(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	t.force(a, true)
	t.afterLoss(hold, b, a)
}

func forcedElsewhere(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	waiter := t.soon(t.ctx, b, Request{})
	t.waiting(b, 1)
	t.force(b, true)
	t.release(t.got(waiter))
	t.afterLoss(hold, b, a)
}

func forcedFree(t *trial) {
	a, b := t.two()
	t.force(a, false)
	t.passes(b)
	t.force(a, false)
	t.passes(a, b)
}

func closed(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	waiter := t.soon(t.ctx, a, Request{})
	t.waiting(a, 1)
	t.queued(b, 1)
	if err := a.Close(t.ctx); err != nil {
		t.Fatalf("close: %v", err)
	}
	t.isLost(hold)
	t.refused(waiter, ErrClosed)
	t.queued(b, 0)
	next := t.got(t.ask(b, Request{Try: true})) // it was released, and not left to expire
	t.refused(t.soon(t.ctx, a, Request{}), ErrClosed)
	t.notReleased(hold, ErrLost, ErrClosed)
	if err := a.Close(t.ctx); err != nil {
		t.Errorf("second close: %v", err)
	}
	t.lasts(next)
	t.release(next)
}

func killed(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	waiter := t.soon(t.ctx, b, Request{})
	t.waiting(b, 1)
	a.Kill()
	next := t.got(waiter)
	t.isLost(hold)
	t.lasts(next)
	t.release(next)
	t.passes(b)
}

func waiterKilled(t *trial) {
	a, b := t.two()
	c := t.open()
	hold := t.acquire(a, Request{})
	ctx, cancel := context.WithCancel(t.ctx)
	dead := t.soon(ctx, b, Request{})
	t.waiting(b, 1)
	stays := t.soon(t.ctx, c, Request{})
	t.waiting(c, 1)
	b.Kill()
	t.lasts(hold)
	t.release(hold)
	t.release(t.got(stays))
	cancel()
	if g := t.settled(dead); g.err == nil {
		t.Error("a dead client was granted the lock")
	}
	t.passes(a, c)
}
