package conformance

import "testing"

// tokensOf are those of a hold; the case is skipped if it has none.
func (t *trial) tokensOf(h Hold) []int64 {
	t.Helper()
	tokens := can[Tokened](t, h).Tokens()
	for _, token := range tokens {
		if token != 0 {
			return tokens
		}
	}
	t.Fatalf("the tokens are %v", tokens)
	return nil
}

// grown checks that the tokens of a later hold are all higher.
func grown(t testing.TB, before, after []int64) {
	t.Helper()
	for i := range after {
		if before != nil && (after[i] < before[i] || after[i] == before[i] && after[i] != 0 || after[i] == 0 && before[i] != 0) {
			t.Errorf("the tokens %v come after %v", after, before)
		}
	}
}

func tokensGrow(t *trial) {
	a, b := t.two()
	first := t.acquire(a, Request{})
	before := t.tokensOf(first)
	t.release(first)
	t.crowd([]Client{a, b}, rounds, func(c Client) error {
		hold, err := c.Acquire(t.ctx, t.lock, Request{})
		if err != nil {
			return err
		}
		now := hold.(Tokened).Tokens()
		grown(t, before, now)
		before = now // the lock guards it
		return hold.Release(t.ctx)
	})
}

func tokensGrowAfterALoss(t *trial) {
	a, b := t.two()
	before := []int64(nil)
	next := func(c Client, r Request) Hold {
		t.Helper()
		hold := t.acquire(c, r)
		now := t.tokensOf(hold)
		grown(t, before, now)
		before = now
		return hold
	}
	t.isLost(next(a, Request{Lease: t.traits.Lease}))
	hold := next(b, Request{})
	if forcer, ok := a.(ForceReleaser); ok {
		if _, err := forcer.ForceRelease(t.ctx, t.lock); err != nil {
			t.Fatal(err)
		}
		t.isLost(hold)
		hold = next(a, Request{})
	}
	if deleter, ok := t.adapter.(Deleter); ok {
		deleter.Delete(t, t.lock)
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
	tokens := t.tokensOf(hold)
	if t.traits.RefusesReentry {
		t.Skip("a re-entry is refused")
	}
	inner := t.reenter(hold, 2)
	for i, token := range t.tokensOf(inner) {
		if token != tokens[i] {
			t.Errorf("the tokens of the re-entry are %v, and those of the hold %v", t.tokensOf(inner), tokens)
			break
		}
	}
	t.release(inner)
	t.release(hold)
	next := t.acquire(b, Request{})
	grown(t, tokens, t.tokensOf(next))
	t.release(next)
}
