package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

const (
	BoundWatchdog = 5 * time.Second
	BoundAnswer   = time.Second            // CallTimeout
	BoundLate     = 250 * time.Millisecond // for a reply that is late
	BoundShort    = 200 * time.Millisecond // of WithWait, and of contexts that end
	BoundSlack    = 700 * time.Millisecond // for a busy machine
)

// bounded is a call, and how long it may take while Redis does not answer, if its context
// never ends.
type bounded struct {
	What  string
	Bound time.Duration
	Call  func(ctx context.Context)
}

// Calls are all calls of the API about locks of some kind, on locks of their own.
func (s *Site) Calls(t *testing.T, lock func() *lockkeeper.Lock) []bounded {
	hold := func(l *lockkeeper.Lock, ctx context.Context) *lockkeeper.Hold {
		h, err := l.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	free, tried, inspected, forced, outer, pending := lock(), lock(), lock(), lock(), lock(), lock()
	released, ensured, unconfirmed := hold(lock(), Within(t)), hold(lock(), Within(t)), hold(pending, Within(t))
	first := hold(outer, Within(t))
	second := hold(outer, first.Context())
	reentered := lock()
	tree := hold(reentered, Within(t)).Context()
	inTree := func(ctx context.Context) (context.Context, context.CancelFunc) {
		in := context.WithoutCancel(tree)
		if end, ok := ctx.Deadline(); ok {
			return context.WithDeadline(in, end)
		}
		return in, func() {}
	}
	return []bounded{
		{"Acquire with a wait", BoundShort, func(ctx context.Context) { _, _ = free.Acquire(ctx, lockkeeper.WithWait(BoundShort)) }},
		{"TryAcquire", BoundAnswer + BoundLate, func(ctx context.Context) { _, _ = tried.TryAcquire(ctx) }},
		{"TryAcquire behind a release", BoundAnswer + BoundLate, func(ctx context.Context) {
			go func() { _ = unconfirmed.Release(context.Background()) }()
			_, _ = pending.TryAcquire(ctx)
		}},
		{"Acquire of a re-entry with a wait", BoundShort, func(ctx context.Context) {
			ctx, cancel := inTree(ctx)
			defer cancel()
			_, _ = reentered.Acquire(ctx, lockkeeper.WithWait(BoundShort))
		}},
		{"TryAcquire of a re-entry", BoundAnswer + BoundLate, func(ctx context.Context) {
			ctx, cancel := inTree(ctx)
			defer cancel()
			_, _ = reentered.TryAcquire(ctx)
		}},
		{"Release", BoundWatchdog + BoundAnswer + BoundLate, func(ctx context.Context) { _ = released.Release(ctx) }},
		{"Release of a re-entry", BoundWatchdog + BoundAnswer + BoundLate, func(ctx context.Context) { _ = second.Release(ctx) }},
		{"Ensure", BoundAnswer + BoundLate, func(ctx context.Context) { _ = ensured.Ensure(ctx, BoundWatchdog*9/10) }},
		{"Inspect", BoundAnswer + BoundLate, func(ctx context.Context) { _, _ = inspected.Inspect(ctx) }},
		{"ForceRelease", BoundAnswer + BoundLate, func(ctx context.Context) { _, _ = forced.ForceRelease(ctx) }},
	}
}
