package conformance_test

import (
	"errors"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// again acquires the lock once more.
func (t *trial) again(h *hold, r request) (*hold, error) {
	t.Helper()
	return t.answered(func() (*hold, error) { return h.reenter(t.ctx, r) })
}

// counts checks the hold count.
func (t *trial) counts(h *hold, want int) {
	t.Helper()
	if n := h.count; n != want {
		t.Fatalf("the hold count is %d, want %d", n, want)
	}
}

func (t *trial) reenter(h *hold, count int) *hold {
	t.Helper()
	inner, err := t.again(h, request{})
	if err != nil {
		t.Fatalf("re-entry: %v", err)
	}
	t.counts(inner, count)
	return inner
}

// reentry lets a holder re-enter the lock several times while another request waits.
func reentry(t *trial, a, b *process) {
	first := t.acquire(a, request{})
	t.counts(first, 1)
	waiter := t.soon(t.ctx, b, request{})
	t.waiting(b, 1)
	second := t.reenter(first, 2)
	third, err := t.again(second, request{try: true})
	if err != nil {
		t.Fatalf("re-entry by TryAcquire: %v", err)
	}
	t.counts(third, 3)
	for _, h := range []*hold{third, second} {
		t.release(h)
		t.isHeld(a, b)
	}
	t.release(t.reenter(first, 2))
	t.isHeld(a, b)
	t.queued(a, 1)
	t.pending(waiter)
	t.release(first)
	next := t.got(waiter)
	t.counts(next, 1)
	t.release(next)
	next = t.acquire(a, request{})
	t.counts(next, 1)
	t.release(next)
}

// reentryRefused checks that without re-entry a second request is refused at once, whatever its wait: it would wait
// for itself.
func reentryRefused(t *trial, a, b *process) {
	hold := t.acquire(a, request{once: true})
	for _, r := range []request{{once: true}, {once: true, try: true}, {once: true, wait: 10 * redistest.Limit}} {
		if _, err := t.again(hold, r); !errors.Is(err, lockkeeper.ErrReentry) {
			t.Fatalf("re-entry with %+v: error %v, want %v", r, err, lockkeeper.ErrReentry)
		}
	}
	t.lasts(hold)
	t.isHeld(a, b)
	t.release(hold) // one release is enough
	t.passes(a, b)
}

// reentryOutOfOrder releases the first hold before its re-entry: the holder has the lock until both are released, and
// re-enters it by either.
func reentryOutOfOrder(t *trial, a, b *process) {
	first := t.acquire(a, request{})
	inner := t.reenter(first, 2)
	t.release(first)
	for _, h := range []*hold{first, inner} {
		t.release(t.reenter(h, 2))
		t.isHeld(a, b)
	}
	t.lasts(inner)
	t.release(inner)
	t.passes(a, b)
}

// reentryToTheEnd checks that every re-entry is notified of the loss.
func reentryToTheEnd(t *trial, a, b *process) {
	hold := t.acquire(a, request{lease: ttl})
	inner := t.reenter(hold, 2)
	t.isLost(hold)
	t.isLost(inner)
	next := t.acquire(b, request{})
	t.notReleased(inner, lockkeeper.ErrLost)
	t.notReleased(hold, lockkeeper.ErrLost)
	t.isHeld(a)
	t.release(next)
}

// leaseOfAReentry checks that a re-entry never shortens the hold, and has no lease of its own.
func leaseOfAReentry(t *trial, a, b *process) {
	refused := func(h *hold) {
		t.Helper()
		if _, err := t.again(h, request{lease: lease}); !errors.Is(err, lockkeeper.ErrInvalid) {
			t.Fatalf("re-entry with a lease of %v: error %v, want %v", lease, err, lockkeeper.ErrInvalid)
		}
	}
	hold := t.acquire(a, request{})
	refused(hold)
	t.stays(hold, b, 3*lease/2)
	t.release(hold) // one release is enough
	t.passes(b)
	hold = t.acquire(a, request{lease: ttl})
	inner, err := t.again(hold, request{lease: 3 * ttl})
	if err != nil {
		t.Fatalf("re-entry with a longer lease: %v", err)
	}
	refused(hold)
	t.release(inner)
	t.stays(hold, b, 3*ttl/2) // the hold is prolonged, also after the end of the re-entry
	t.release(hold)
	t.passes(b)
}

// grown checks that a hold has tokens, all higher than the ones before.
func (t *trial) grown(before []int64, hold *hold) (now []int64) {
	t.Helper()
	now = hold.tokens
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

func tokensGrow(t *trial, a, b *process) {
	var tokens []int64 // guarded by the lock
	t.all([]*process{a, b}, func(p *process) error {
		hold, err := p.acquire(t.ctx, t.lock, request{})
		if err != nil {
			return err
		}
		tokens = t.grown(tokens, hold)
		return hold.release(t.ctx)
	})
}

func tokensGrowAfterALoss(t *trial, a, b *process) {
	var tokens []int64
	next := func(p *process, r request) *hold {
		t.Helper()
		hold := t.acquire(p, r)
		tokens = t.grown(tokens, hold)
		return hold
	}
	t.isLost(next(a, request{lease: lease}))
	hold := next(b, request{})
	t.force(a, true)
	t.isLost(hold)
	hold = next(a, request{})
	t.delete(t, t.lock)
	t.isLost(hold)
	hold = next(b, request{})
	t.release(hold)
	c := t.open()
	t.release(next(c, request{}))
	locktest.OK(t, c.close(t.ctx))
	t.release(next(t.open(), request{}))
}

func tokensOfAReentry(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	tokens := t.grown(nil, hold)
	inner := t.reenter(hold, 2)
	for i, token := range inner.tokens {
		if token != tokens[i] {
			t.Errorf("the tokens of the re-entry are %v, and those of the hold %v", inner.tokens, tokens)
		}
	}
	t.release(inner)
	t.release(hold)
	next := t.acquire(b, request{})
	t.grown(tokens, next)
	t.release(next)
}
