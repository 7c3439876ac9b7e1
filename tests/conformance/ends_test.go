package conformance_test

import (
	"context"
	"errors"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// afterLoss checks that a hold has ended, and that its late release frees nothing.
func (t *trial) afterLoss(lost *hold, processes ...*process) {
	t.Helper()
	t.isLost(lost)
	for _, p := range processes {
		next := t.acquire(p, request{})
		t.notReleased(lost, lockkeeper.ErrLost, lockkeeper.ErrNotHeld)
		t.isHeld(processes...)
		t.lasts(next)
		t.release(next)
	}
}

// leaseEnds ends the lease of a hold, then of a hold that was handed off in the process, and of a hold that was
// transferred to another process.
func leaseEnds(t *trial, a, b *process) {
	leased := request{lease: lease}
	hold := t.acquire(a, leased)
	for _, p := range []*process{a, b} {
		next := t.soon(t.ctx, p, leased)
		t.isLost(hold)
		t.notReleased(hold, lockkeeper.ErrLost)
		hold = t.got(next)
	}
	waiter := t.soon(t.ctx, a, request{})
	t.isLost(hold)
	t.release(t.got(waiter))
	t.passes(b, a)
}

// leaseReleased checks that the next hold neither ends with the lease of the previous one nor inherits it.
func leaseReleased(t *trial, a, b *process) {
	hold := t.acquire(a, request{lease: ttl})
	t.release(hold)
	t.lasts(hold)
	next := t.acquire(a, request{})
	t.stays(next, b, 3*ttl/2)
	t.release(next)
	t.passes(b)
}

// extended leaves the hold of a fixed lease to the watchdog, and gives it, by a re-entry if it can, a fixed one again. Each
// extension is about the whole call tree.
func extended(t *trial, a, b *process) {
	hold := t.acquire(a, request{lease: ttl})
	t.extend(hold, 0)
	inner := hold
	if t.isLock() {
		inner = t.reenter(hold, 2)
	}
	t.stays(hold, b, 3*ttl/2)
	t.extend(inner, lease)
	t.isLost(hold)
	t.isLost(inner)
	if err := hold.extend(t.ctx, lease); !errors.Is(err, lockkeeper.ErrLost) {
		t.Fatalf("the lease of a lost hold: error %v", err)
	}
	t.notReleased(hold, lockkeeper.ErrLost, lockkeeper.ErrNotHeld)
	t.passes(b, a)
}

// extend gives a hold another lease. On a loaded machine Redis may confirm late; a shorter one counts nevertheless.
func (t *trial) extend(h *hold, lease time.Duration) {
	t.Helper()
	redistest.Eventually(t, "an answer of Redis", func() bool {
		err := h.extend(t.ctx, lease)
		if err != nil && !errors.Is(err, lockkeeper.ErrUnavailable) {
			t.Fatalf("extend: %v", err)
		}
		return err == nil || lease != 0
	})
}

func keptAlive(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	t.stays(hold, b, 2*ttl)
	t.release(hold)
	t.passes(b)
}

// keptAliveForTheNext checks that the remains of earlier holders neither end the hold of the next one nor renew it
// after its end.
func keptAliveForTheNext(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	t.release(t.reenter(hold, 2))
	waiter := t.soon(t.ctx, a, request{})
	t.waiting(a, 1)
	t.release(hold)
	next := t.got(waiter)
	t.stays(next, b, 3*ttl/2)
	t.release(next)
	t.isFree(b)
}

func deleted(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	t.delete(t, t.lock)
	t.afterLoss(hold, b, a)
}

func lateRelease(t *trial, a, b *process) {
	t.afterLoss(t.acquire(a, request{lease: lease}), b, a)
}

func secondRelease(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	t.release(hold)
	for _, p := range []*process{a, b} {
		next := t.acquire(p, request{})
		t.notReleased(hold, lockkeeper.ErrNotHeld)
		t.isHeld(a, b)
		t.release(next)
	}
}

func deathOfAHolder(t *trial, a, b *process) {
	for _, next := range []*process{a, b} {
		death := make(chan struct{})
		hold := t.acquire(a, request{death: death})
		if t.isLock() {
			t.reenter(hold, 2) // the death ends both
		}
		waiter := t.soon(t.ctx, next, request{})
		t.waiting(next, 1)
		close(death)
		t.release(t.got(waiter))
	}
	death := make(chan struct{})
	t.acquire(b, request{death: death})
	close(death) // without a waiter
	t.passes(a, b)
}

func deathOfAWaiter(t *trial, a, b *process) {
	for _, p := range []*process{a, b} {
		hold := t.acquire(a, request{})
		death := make(chan struct{})
		t.soon(t.ctx, p, request{death: death})
		t.waiting(p, 1)
		stays := t.soon(t.ctx, p, request{})
		t.waiting(p, 2)
		t.queued(p, 2)
		close(death)
		t.waiting(p, 1)
		t.queued(p, 1)
		t.lasts(hold)
		t.release(hold)
		t.release(t.got(stays))
	}
}

func crash(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	inner := t.reenter(hold, 2)
	waiters := []<-chan grant{t.soon(t.ctx, a, request{}), t.soon(t.ctx, a, request{})}
	t.waiting(a, 2)
	provoked := map[string]func(){
		"actors.wakeUp": func() {}, // ticks and replies come with the next renewal
		"*kinds.Reply":  func() {},
		"*request.Call": func() { _, _ = a.lockNamed(t.lock).Inspect(context.Background()) },
	}
	if a.message != nil {
		provoked["*messages.Inspect"] = func() { a.actors.Root.Send(a.guardian(), &messages.Inspect{Lock: a.message(t.lock)}) }
	}
	for message, provoke := range provoked {
		a.crash(t, message, provoke)
		t.waiting(a, 2)
		t.lasts(hold)
		t.isHeld(b)
	}
	t.stays(hold, b, 3*ttl/2) // it is still renewed
	t.release(inner)
	t.isHeld(b)
	t.oneByOne(hold, waiters, b, a)
}

// force frees the lock by force.
func (t *trial) force(p *process, held bool) {
	t.Helper()
	was, err := p.forceRelease(t.ctx, t.lock)
	for errors.Is(err, lockkeeper.ErrUnavailable) { // on a loaded machine; it may have taken effect
		_, err = p.forceRelease(t.ctx, t.lock)
		was = held
	}
	if err != nil || was != held {
		t.Errorf("a forced release: held %v, %v, want held %v", was, err, held)
	}
}

func forcedHere(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	t.force(a, true)
	t.afterLoss(hold, b, a)
}

func forcedElsewhere(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	waiter := t.soon(t.ctx, b, request{})
	t.waiting(b, 1)
	t.force(b, true)
	t.release(t.got(waiter))
	t.afterLoss(hold, b, a)
}

func forcedFree(t *trial, a, b *process) {
	t.force(a, false)
	t.passes(b)
	t.force(a, false)
	t.passes(a, b)
}

func closed(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	waiter := t.soon(t.ctx, a, request{})
	t.waiting(a, 1)
	t.queued(b, 1)
	if err := a.close(t.ctx); err != nil {
		t.Fatalf("close: %v", err)
	}
	t.isLost(hold)
	t.refused(waiter, lockkeeper.ErrClosed)
	t.queued(b, 0)
	next := t.got(t.ask(b, request{try: true})) // the key was deleted and did not expire
	t.refused(t.soon(t.ctx, a, request{}), lockkeeper.ErrClosed)
	t.notReleased(hold, lockkeeper.ErrLost, lockkeeper.ErrClosed)
	if err := a.close(t.ctx); err != nil {
		t.Errorf("second close: %v", err)
	}
	t.lasts(next)
	t.release(next)
}

func killed(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	waiter := t.soon(t.ctx, b, request{})
	t.waiting(b, 1)
	a.kill(t)
	next := t.got(waiter)
	t.isLost(hold)
	t.lasts(next)
	t.release(next)
	t.passes(b)
}

func waiterKilled(t *trial, a, b *process) {
	c := t.open()
	hold := t.acquire(a, request{})
	ctx, cancel := context.WithCancel(t.ctx)
	dead := t.soon(ctx, b, request{})
	t.waiting(b, 1)
	stays := t.soon(t.ctx, c, request{})
	t.waiting(c, 1)
	b.kill(t)
	t.lasts(hold)
	t.release(hold)
	t.release(t.got(stays))
	cancel()
	if g := t.settled(dead); g.err == nil {
		t.Error("a dead client was granted the lock")
	}
	t.passes(a, c)
}
