package conformance

import (
	"context"
	"errors"
	"time"
)

// afterLoss checks that a hold is over, and that its late release harms nobody.
func (t *trial) afterLoss(lost Hold, clients ...Client) {
	t.Helper()
	for _, c := range clients {
		next := t.acquire(c, Request{})
		if err := t.released(lost); !errors.Is(err, ErrLost) && !errors.Is(err, ErrNotHeld) {
			t.Fatalf("release after the loss: error %v, want %v", err, ErrLost)
		}
		t.isHeld(clients...)
		t.lasts(next)
		t.release(next)
	}
}

func leaseEnds(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{Lease: t.traits.Lease})
	waiter := t.soon(t.ctx, b, Request{})
	t.isLost(hold)
	t.release(t.got(waiter))
	if err := t.released(hold); !errors.Is(err, ErrLost) {
		t.Errorf("release after the loss: error %v, want %v", err, ErrLost)
	}
	// To the next in the same client too, whose request came before the end.
	hold = t.acquire(a, Request{Lease: t.traits.Lease})
	waiter = t.soon(t.ctx, a, Request{})
	t.isLost(hold)
	t.release(t.got(waiter))
	t.passes(b, a)
}

func leaseReleased(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{Lease: t.traits.TTL})
	t.release(hold)
	t.lasts(hold)
	// The next hold is not over when the lease of the one before would have been, nor
	// has it that lease.
	next := t.acquire(a, Request{})
	t.stays(next, b, 2*t.traits.TTL)
	t.release(next)
	t.passes(b)
}

// stays checks that a hold lasts for that long, and that nobody else gets the lock.
func (t *trial) stays(hold Hold, other Client, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(t.traits.TTL / 20) {
		t.lasts(hold)
		t.isHeld(other)
	}
	t.lasts(hold)
}

func keptAlive(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	t.stays(hold, b, 5*t.traits.TTL/2)
	t.release(hold)
	t.passes(b)
}

// keptAliveForTheNext has nothing that the holders before left behind end the hold of
// the next one, nor keep it alive when it is over.
func keptAliveForTheNext(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	if _, ok := hold.(Reenterer); ok && !t.traits.RefusesReentry {
		t.release(t.reenter(hold, 2))
	}
	waiter := t.soon(t.ctx, a, Request{})
	t.waiting(a, 1)
	t.release(hold)
	next := t.got(waiter)
	t.stays(next, b, 2*t.traits.TTL)
	t.release(next)
	t.isFree(b)
}

func deleted(t *trial) {
	deleter := can[Deleter](t, t.adapter)
	a, b := t.two()
	hold := t.acquire(a, Request{})
	deleter.Delete(t, t.lock)
	t.isLost(hold)
	t.afterLoss(hold, b, a)
}

func lateRelease(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{Lease: t.traits.Lease})
	t.isLost(hold)
	t.afterLoss(hold, b, a)
}

func secondRelease(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	t.release(hold)
	for _, c := range []Client{a, b} {
		next := t.acquire(c, Request{})
		if err := t.released(hold); !errors.Is(err, ErrNotHeld) {
			t.Fatalf("second release: error %v, want %v", err, ErrNotHeld)
		}
		t.isHeld(a, b)
		t.release(next)
	}
}

// mortal acquires for a holder that dies with the function that is given back.
func (t *trial) mortal(c Client) (granted <-chan grant, die func()) {
	t.Helper()
	host := can[Mortal](t, c)
	death, answer := make(chan struct{}), make(chan grant, 1)
	go func() {
		hold, err := host.AcquireUntil(t.ctx, death, t.lock, Request{})
		answer <- grant{hold, err}
	}()
	return answer, func() { close(death) }
}

func deathOfAHolder(t *trial) {
	a, b := t.two()
	for _, next := range []Client{a, b} {
		granted, die := t.mortal(a)
		hold := t.got(granted)
		if _, ok := hold.(Reenterer); ok && !t.traits.RefusesReentry {
			t.reenter(hold, 2) // its death ends both
		}
		waiter := t.soon(t.ctx, next, Request{})
		t.waiting(next, 1)
		die()
		t.release(t.got(waiter))
	}
	granted, die := t.mortal(b)
	t.got(granted)
	die() // with nobody waiting
	t.passes(a, b)
}

func deathOfAWaiter(t *trial) {
	a, b := t.two()
	for _, c := range []Client{a, b} {
		hold := t.acquire(a, Request{})
		_, die := t.mortal(c)
		t.waiting(c, 1)
		stays := t.soon(t.ctx, c, Request{})
		t.waiting(c, 2)
		die()
		t.waiting(c, 1)
		t.lasts(hold)
		t.release(hold)
		t.release(t.got(stays))
	}
}

func crash(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	crashes := can[Crasher](t, a).Crashes(t.lock)
	holds := []Hold{hold}
	if _, ok := hold.(Reenterer); ok && !t.traits.RefusesReentry {
		holds = append(holds, t.reenter(hold, 2))
	}
	waiters := []<-chan grant{t.soon(t.ctx, a, Request{}), t.soon(t.ctx, a, Request{})}
	t.waiting(a, 2)
	for name, crash := range crashes {
		crash(t)
		t.Logf("crashed: %s", name)
		t.waiting(a, 2)
		t.lasts(hold)
		t.isHeld(b)
	}
	t.stays(hold, b, 3*t.traits.TTL/2) // what was under way goes on
	for len(holds) > 0 {
		t.isHeld(b)
		t.release(holds[len(holds)-1])
		holds = holds[:len(holds)-1]
	}
	for range waiters {
		hold, waiters = t.oneOf(waiters)
		t.release(hold)
	}
	t.passes(b, a)
}

// force frees the lock by force.
func (t *trial) force(c Client, want bool) {
	t.Helper()
	wasHeld, err := can[ForceReleaser](t, c).ForceRelease(t.ctx, t.lock)
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
	t.isLost(hold)
	t.afterLoss(hold, b, a)
}

func forcedElsewhere(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	waiter := t.soon(t.ctx, b, Request{})
	t.waiting(b, 1)
	t.force(b, true)
	t.release(t.got(waiter))
	t.isLost(hold)
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
	if err := a.Close(t.ctx); err != nil {
		t.Fatalf("close: %v", err)
	}
	t.isLost(hold)
	t.refused(waiter, ErrClosed)
	next := t.got(t.ask(b, Request{Try: true})) // it was released, and not left to expire
	t.refused(t.soon(t.ctx, a, Request{}), ErrClosed)
	if err := t.released(hold); !errors.Is(err, ErrLost) && !errors.Is(err, ErrClosed) {
		t.Errorf("release after the close: error %v, want %v", err, ErrLost)
	}
	if err := a.Close(t.ctx); err != nil {
		t.Errorf("second close: %v", err)
	}
	t.lasts(next)
	t.release(next)
}

func killed(t *trial) {
	a, b := t.two()
	killer := can[Killer](t, a)
	hold := t.acquire(a, Request{})
	waiter := t.soon(t.ctx, b, Request{})
	t.waiting(b, 1)
	killer.Kill()
	next := t.got(waiter)
	t.isLost(hold)
	t.lasts(next)
	t.release(next)
	t.passes(b)
}

func waiterKilled(t *trial) {
	a, b := t.two()
	c := t.open()
	killer := can[Killer](t, b)
	hold := t.acquire(a, Request{})
	ctx, cancel := context.WithCancel(t.ctx)
	dead := t.soon(ctx, b, Request{})
	t.waiting(b, 1)
	stays := t.soon(t.ctx, c, Request{})
	t.waiting(c, 1)
	killer.Kill()
	t.lasts(hold)
	t.release(hold)
	t.release(t.got(stays))
	cancel()
	if g := t.settled(dead); g.err == nil {
		t.Error("a dead client was granted the lock")
	}
	t.passes(a, c)
}
