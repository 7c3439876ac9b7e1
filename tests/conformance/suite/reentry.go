package suite

import "errors"

// again asks for the lock once more. On a loaded machine there may be no answer in time.
func (t *trial) again(h Hold, r Request) (hold Hold, err error) {
	t.Helper()
	t.eventually("an answer to a re-entry", func() bool {
		hold, err = h.Reenter(t.ctx, r)
		return !errors.Is(err, ErrUnavailable)
	})
	return hold, err
}

// counts checks how often a holder has the lock.
func (t *trial) counts(h Hold, want int) {
	t.Helper()
	if n := h.Count(); n != want {
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

// reentry has a holder take the lock again and again, past somebody who waits.
func reentry(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	t.counts(hold, 1)
	waiter := t.soon(t.ctx, b, Request{})
	t.waiting(b, 1)
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
	t.release(t.reenter(hold, 2))
	t.isHeld(a, b)
	t.queued(a, 1)
	t.pending(waiter)
	t.release(hold)
	next := t.got(waiter)
	t.counts(next, 1)
	t.release(next)
	next = t.acquire(a, Request{})
	t.counts(next, 1)
	t.release(next)
}

// reentryRefused has a re-entry be refused at once, however long it would wait, since it
// would wait for itself.
func reentryRefused(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{Once: true})
	for _, r := range []Request{{Once: true}, {Once: true, Try: true}, {Once: true, Wait: 10 * Limit}} {
		if _, err := t.again(hold, r); !errors.Is(err, ErrReentry) {
			t.Fatalf("re-entry with %+v: error %v, want %v", r, err, ErrReentry)
		}
	}
	t.lasts(hold)
	t.isHeld(a, b)
	t.release(hold) // one release is enough
	t.passes(a, b)
}

// reentryOutOfOrder releases the first hold before its re-entry: the holder has the lock
// until both are released, and re-enters it by either.
func reentryOutOfOrder(t *trial) {
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
	a, b := t.two()
	hold := t.acquire(a, Request{Lease: t.traits.Lease})
	inner := t.reenter(hold, 2)
	t.isLost(hold)
	t.isLost(inner)
	next := t.acquire(b, Request{})
	t.notReleased(inner, ErrLost)
	t.notReleased(hold, ErrLost)
	t.isHeld(a)
	t.release(next)
}

// leaseOfAReentry has a re-entry never shorten the hold, nor seem to have a lease of its own.
func leaseOfAReentry(t *trial) {
	a, b := t.two()
	refused := func(h Hold) {
		t.Helper()
		if _, err := t.again(h, Request{Lease: t.traits.Lease}); !errors.Is(err, ErrInvalid) {
			t.Fatalf("re-entry with a lease of %v: error %v, want %v", t.traits.Lease, err, ErrInvalid)
		}
	}
	hold := t.acquire(a, Request{})
	refused(hold)
	t.stays(hold, b, 3*t.traits.Lease/2)
	t.release(hold) // one release is enough
	t.passes(b)
	hold = t.acquire(a, Request{Lease: t.traits.Lease})
	inner, err := t.again(hold, Request{Lease: 3 * t.traits.Lease})
	if err != nil {
		t.Fatalf("re-entry with a longer lease: %v", err)
	}
	refused(hold)
	t.release(inner)
	t.stays(hold, b, 3*t.traits.Lease/2) // it is prolonged, also beyond the re-entry
	t.release(hold)
	t.passes(b)
}

// grown checks that a hold has tokens, all higher than those before.
func (t *trial) grown(before []int64, hold Hold) (now []int64) {
	t.Helper()
	now = hold.Tokens()
	some := false
	for i, token := range now {
		some = some || token != 0
		if before != nil && (token < before[i] || token == before[i] && token != 0) {
			t.Errorf("the tokens %v come after %v", now, before)
		}
	}
	if !some {
		t.Errorf("the tokens are %v", now)
	}
	return now
}

func tokensGrow(t *trial) {
	a, b := t.two()
	var tokens []int64 // the lock guards it
	t.all([]Client{a, b}, func(c Client) error {
		hold, err := c.Acquire(t.ctx, t.lock, Request{})
		if err != nil {
			return err
		}
		tokens = t.grown(tokens, hold)
		return hold.Release(t.ctx)
	})
}

func tokensGrowAfterALoss(t *trial) {
	a, b := t.two()
	var tokens []int64
	next := func(c Client, r Request) Hold {
		t.Helper()
		hold := t.acquire(c, r)
		tokens = t.grown(tokens, hold)
		return hold
	}
	t.isLost(next(a, Request{Lease: t.traits.Lease}))
	hold := next(b, Request{})
	if t.can(Force) {
		t.force(a, true)
		t.isLost(hold)
		hold = next(a, Request{})
	}
	if t.can(Deletion) {
		t.adapter.Delete(t, t.lock)
		t.isLost(hold)
		hold = next(b, Request{})
	}
	t.release(hold)
	c := t.open()
	t.release(next(c, Request{}))
	if err := c.Close(t.ctx); err != nil {
		t.Fatal(err)
	}
	t.release(next(t.open(), Request{}))
}

func tokensOfAReentry(t *trial) {
	a, b := t.two()
	hold := t.acquire(a, Request{})
	tokens := t.grown(nil, hold)
	inner := t.reenter(hold, 2)
	for i, token := range inner.Tokens() {
		if token != tokens[i] {
			t.Errorf("the tokens of the re-entry are %v, and those of the hold %v", inner.Tokens(), tokens)
		}
	}
	t.release(inner)
	t.release(hold)
	next := t.acquire(b, Request{})
	t.grown(tokens, next)
	t.release(next)
}
