package lockkeeper_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

const (
	boundWatchdog = 5 * time.Second
	boundAnswer   = time.Second            // CallTimeout
	boundLate     = 250 * time.Millisecond // for a reply that is late
	boundShort    = 200 * time.Millisecond // of WithWait, and of contexts that end
	boundSlack    = 700 * time.Millisecond // for a busy machine
)

// bounded is a call, and how long it may take while Redis does not answer, if its context
// never ends.
type bounded struct {
	what  string
	bound time.Duration
	call  func(ctx context.Context)
}

// calls are all calls of the API about locks of some kind, on locks of their own.
func (s *site) calls(t *testing.T, lock func() *lockkeeper.Lock) []bounded {
	hold := func(l *lockkeeper.Lock, ctx context.Context) *lockkeeper.Hold {
		h, err := l.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	free, tried, inspected, forced, outer, pending := lock(), lock(), lock(), lock(), lock(), lock()
	released, ensured, unconfirmed := hold(lock(), within(t)), hold(lock(), within(t)), hold(pending, within(t))
	first := hold(outer, within(t))
	second := hold(outer, first.Context())
	reentered := lock()
	tree := hold(reentered, within(t)).Context()
	inTree := func(ctx context.Context) (context.Context, context.CancelFunc) {
		in := context.WithoutCancel(tree)
		if end, ok := ctx.Deadline(); ok {
			return context.WithDeadline(in, end)
		}
		return in, func() {}
	}
	return []bounded{
		{"Acquire with a wait", boundShort, func(ctx context.Context) { _, _ = free.Acquire(ctx, lockkeeper.WithWait(boundShort)) }},
		{"TryAcquire", boundAnswer + boundLate, func(ctx context.Context) { _, _ = tried.TryAcquire(ctx) }},
		{"TryAcquire behind a release", boundAnswer + boundLate, func(ctx context.Context) {
			go func() { _ = unconfirmed.Release(context.Background()) }()
			_, _ = pending.TryAcquire(ctx)
		}},
		{"Acquire of a re-entry with a wait", boundShort, func(ctx context.Context) {
			ctx, cancel := inTree(ctx)
			defer cancel()
			_, _ = reentered.Acquire(ctx, lockkeeper.WithWait(boundShort))
		}},
		{"TryAcquire of a re-entry", boundAnswer + boundLate, func(ctx context.Context) {
			ctx, cancel := inTree(ctx)
			defer cancel()
			_, _ = reentered.TryAcquire(ctx)
		}},
		{"Release", boundWatchdog, func(ctx context.Context) { _ = released.Release(ctx) }},
		{"Release of a re-entry", boundWatchdog, func(ctx context.Context) { _ = second.Release(ctx) }},
		{"Ensure", boundAnswer + boundLate, func(ctx context.Context) { _ = ensured.Ensure(ctx, boundWatchdog*9/10) }},
		{"Inspect", boundAnswer + boundLate, func(ctx context.Context) { _, _ = inspected.Inspect(ctx) }},
		{"ForceRelease", boundAnswer + boundLate, func(ctx context.Context) { _, _ = forced.ForceRelease(ctx) }},
	}
}

// Every call ends with its context, with its wait, or after a documented time, also while
// Redis does not answer: right after it has stopped, and when connections have broken.
func TestCallsAreBounded(t *testing.T) {
	for what, kind := range map[string]func(s *site) *lockkeeper.Lock{
		"plain": func(s *site) *lockkeeper.Lock { return s.Lock(redistest.Name(t)) },
		"fair":  func(s *site) *lockkeeper.Lock { return s.FairLock(redistest.Name(t)) },
		"write": func(s *site) *lockkeeper.Lock { return s.ReadWriteLock(redistest.Name(t)).Write() },
		"MultiLock": func(s *site) *lockkeeper.Lock {
			return lockkeeper.MultiLock(s.Lock(redistest.Name(t)), s.Lock(redistest.Name(t)))
		},
	} {
		for when, after := range map[string]time.Duration{"just stopped": 0, "connections broken": 2*boundAnswer + boundLate} {
			t.Run(what+", "+when, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				s := open(t, server.URL(), lockkeeper.Config{Watchdog: boundWatchdog, CallTimeout: boundAnswer})
				s.lame = true
				lock := func() *lockkeeper.Lock { return kind(s) }
				endless, ending := s.calls(t, lock), s.calls(t, lock)
				server.Pause(t)
				defer server.Resume(t)
				time.Sleep(after)
				var all sync.WaitGroup
				check := func(ctx context.Context, what string, bound time.Duration, call func(context.Context)) {
					all.Go(func() {
						began := time.Now()
						call(ctx)
						if took := time.Since(began); took > bound+boundSlack {
							t.Errorf("%s took %v, and its bound is %v", what, took, bound)
						}
					})
				}
				short, cancel := context.WithTimeout(context.Background(), boundShort)
				defer cancel()
				for _, c := range endless {
					check(context.Background(), c.what, c.bound, c.call)
				}
				for _, c := range ending {
					check(short, c.what+" with a context that ends", boundShort, c.call)
				}
				all.Wait()
				check(short, "Close", 0, func(ctx context.Context) { _ = s.Close(ctx) })
				all.Wait()
			})
		}
	}
}
