package conformance

import "errors"

// again asks for the lock once more.
func (t *trial) again(h Hold, r Request) (Hold, error) {
	t.Helper()
	entry := can[Reenterer](t, h)
	granted := make(chan grant, 1)
	go func() {
		hold, err := entry.Reenter(t.ctx, r)
		granted <- grant{hold, err}
	}()
	g := t.settled(granted)
	return g.hold, g.err
}

// counts checks how often a holder has the lock.
func (t *trial) counts(h Hold, want int) {
	t.Helper()
	if n := can[Reenterer](t, h).Count(); n != want {
		t.Fatalf("the hold count is %d, want %d", n, want)
	}
}

func (t *trial) reenter(h Hold, count int) Hold {
	t.Helper()
	inner, err := t.again(h, Request{})
	if err != nil {
		t.Fatalf("re-entry: %v", err)
	}
	t.counts(inner, count)
	return inner
}

func reentry(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	t.counts(hold, 1)
	if t.traits.RefusesReentry {
		// At once, however long it would wait, since it would wait for itself.
		for _, r := range []Request{{}, {Try: true}, {Wait: 10 * Limit}} {
			if _, err := t.again(hold, r); !errors.Is(err, ErrReentry) {
				t.Fatalf("re-entry with %+v: error %v, want %v", r, err, ErrReentry)
			}
		}
		t.lasts(hold)
		t.isHeld(a, b)
		t.release(hold) // one release is enough
		t.passes(a, b)
		return
	}
	second := t.reenter(hold, 2)
	third, err := t.again(second, Request{Try: true})
	if err != nil {
		t.Fatalf("re-entry that tries: %v", err)
	}
	t.counts(third, 3)
	for _, h := range []Hold{third, second} {
		t.release(h)
		t.isHeld(a, b)
	}
	second = t.reenter(hold, 2)
	t.release(second)
	t.isHeld(a, b)
	t.release(hold)
	for _, c := range []Client{a, b} {
		h := t.got(t.ask(c, Request{Try: true}))
		t.counts(h, 1)
		t.release(h)
	}
}

// reentryOutOfOrder releases the first hold before its re-entry: the holder has the lock
// until both are released, and re-enters it by either.
func reentryOutOfOrder(t *trial) {
	if t.traits.RefusesReentry {
		t.Skip("a re-entry is refused")
	}
	a, b := t.two()
	hold := t.acquire(a, Request{})
	inner := t.reenter(hold, 2)
	t.release(hold)
	for _, h := range []Hold{hold, inner} {
		t.release(t.reenter(h, 2))
		t.isHeld(a, b)
	}
	t.lasts(inner)
	t.release(inner)
	t.passes(a, b)
}

// reentryToTheEnd has every re-entry told of the loss of them all.
func reentryToTheEnd(t *trial) {
	if t.traits.RefusesReentry {
		t.Skip("a re-entry is refused")
	}
	a, b := t.two()
	hold := t.acquire(a, Request{Lease: t.traits.Lease})
	inner := t.reenter(hold, 2)
	t.isLost(hold)
	t.isLost(inner)
	next := t.acquire(b, Request{})
	for _, h := range []Hold{inner, hold} {
		if err := t.released(h); !errors.Is(err, ErrLost) {
			t.Errorf("release after the loss: error %v, want %v", err, ErrLost)
		}
	}
	t.isHeld(a)
	t.release(next)
}

// leaseOfAReentry has a re-entry never shorten the hold, nor seem to have a lease of its own.
func leaseOfAReentry(t *trial) {
	if t.traits.RefusesReentry {
		t.Skip("a re-entry is refused")
	}
	a, b := t.two()
	refused := func(h Hold) {
		t.Helper()
		if _, err := t.again(h, Request{Lease: t.traits.Lease}); !errors.Is(err, ErrInvalid) {
			t.Fatalf("re-entry with a lease of %v: error %v, want %v", t.traits.Lease, err, ErrInvalid)
		}
	}
	hold := t.acquire(a, Request{})
	refused(hold)
	t.stays(hold, b, 2*t.traits.Lease)
	t.release(hold) // one release is enough
	t.passes(b)
	hold = t.acquire(a, Request{Lease: t.traits.Lease})
	inner, err := t.again(hold, Request{Lease: 3 * t.traits.Lease})
	if err != nil {
		t.Fatalf("re-entry with a longer lease: %v", err)
	}
	refused(hold)
	t.release(inner)
	t.stays(hold, b, 2*t.traits.Lease) // it is prolonged, also beyond the re-entry
	t.release(hold)
	t.passes(b)
}

func inspection(t *trial) {
	a, b := t.two()
	can[Inspector](t, a)
	look := func(c Client) Status {
		t.Helper()
		status, err := c.(Inspector).Inspect(t.ctx, t.lock)
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	is := func(c Client, want Status) {
		t.Helper()
		if got := look(c); got.Locked != want.Locked || got.HeldHere != want.HeldHere || got.Count != want.Count || got.Waiters != want.Waiters {
			t.Errorf("the state is %+v, want %+v", got, want)
		}
	}
	is(a, Status{})
	hold := t.acquire(a, Request{})
	is(a, Status{Locked: true, HeldHere: true, Count: 1})
	is(b, Status{Locked: true, Count: 1})
	if _, ok := hold.(Reenterer); ok && !t.traits.RefusesReentry {
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
