package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

const (
	ttl   = 8 * time.Second         // the TTL after the last renewal; a busy machine renews in time
	lease = 1700 * time.Millisecond // a fixed lease
)

// trial is one run of one case: its own lock, and the processes that it opens.
type trial struct {
	*testing.T
	kind
	lock string
	ctx  context.Context
}

func (t *trial) open() *process {
	t.Helper()
	return t.kind.open(t.T)
}

// grant is the end of an acquire.
type grant struct {
	hold *hold
	err  error
}

// soon acquires on a goroutine. On a loaded machine the answer of Redis may come too late for a fixed lease: then it asks
// again.
func (t *trial) soon(ctx context.Context, p *process, r request) <-chan grant {
	granted := make(chan grant, 1)
	go func() {
		h, err := p.acquire(ctx, t.lock, r)
		for locktest.IsLateReply(err) {
			h, err = p.acquire(ctx, t.lock, r)
		}
		granted <- grant{h, err}
	}()
	return granted
}

// settled waits for the end of a request.
func (t *trial) settled(granted <-chan grant) grant {
	t.Helper()
	return locktest.Await(t, "the answer to a request", granted)
}

func (t *trial) got(granted <-chan grant) *hold {
	t.Helper()
	g := t.settled(granted)
	if g.err != nil {
		t.Fatalf("acquire: %v", g.err)
	}
	return g.hold
}

func (t *trial) acquire(p *process, r request) *hold {
	t.Helper()
	return t.got(t.soon(t.ctx, p, r))
}

// refused checks that a request ends with an error.
func (t *trial) refused(granted <-chan grant, want error) {
	t.Helper()
	if g := t.settled(granted); !errors.Is(g.err, want) {
		t.Fatalf("error %v, want %v", g.err, want)
	}
}

// pending checks that a request has no answer yet.
func (t *trial) pending(granted ...<-chan grant) {
	t.Helper()
	for _, each := range granted {
		select {
		case g := <-each:
			t.Fatalf("a request was granted the lock out of turn: %v", g.err)
		default:
		}
	}
}

// answered makes a request that does not wait long, and repeats it if a loaded machine gives no answer in that time.
func (t *trial) answered(ask func() (*hold, error)) (h *hold, err error) {
	t.Helper()
	redistest.Eventually(t, "an answer of Redis", func() bool {
		h, err = ask()
		return !errors.Is(err, lockkeeper.ErrUnavailable)
	})
	return h, err
}

func (t *trial) ask(p *process, r request) <-chan grant {
	t.Helper()
	answer := make(chan grant, 1)
	h, err := t.answered(func() (*hold, error) {
		g := t.settled(t.soon(t.ctx, p, r))
		return g.hold, g.err
	})
	answer <- grant{h, err}
	return answer
}

// isHeld checks that no other process gets the lock.
func (t *trial) isHeld(processes ...*process) {
	t.Helper()
	for _, p := range processes {
		t.refused(t.ask(p, request{try: true}), lockkeeper.ErrHeld)
	}
}

// isFree checks that each process gets the lock at once. Keys that several releases have left on a minority of
// servers each, for background releases to delete, may together block a majority.
func (t *trial) isFree(processes ...*process) {
	t.Helper()
	for _, p := range processes {
		if len(t.servers) == 3 {
			redistest.Eventually(t, "all servers to be free", func() bool { return t.left(t, t.lock) == 0 })
		}
		t.release(t.got(t.ask(p, request{try: true})))
	}
}

// passes checks that each process gets the lock, which is free or about to be.
func (t *trial) passes(processes ...*process) {
	t.Helper()
	for _, p := range processes {
		t.release(t.acquire(p, request{}))
	}
}

// released is the outcome of a release.
func (t *trial) released(h *hold) error {
	t.Helper()
	return locktest.Limited(t, "the answer to a release", func() error { return h.release(t.ctx) })
}

// release releases a hold. On a loaded machine Redis may confirm late; the release then continues in the background.
func (t *trial) release(h *hold) {
	t.Helper()
	switch err := t.released(h); {
	case errors.Is(err, lockkeeper.ErrUnavailable):
		time.Sleep(ttl) // the lease is over then, whether or not a repeated release was confirmed before
	case err != nil:
		t.Fatalf("release: %v", err)
	}
}

// notReleased checks that a hold cannot be released, for one of these reasons.
func (t *trial) notReleased(h *hold, want ...error) {
	t.Helper()
	if err := t.released(h); !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		t.Fatalf("release of an ended hold: error %v, want %v", err, want)
	}
}

// isLost waits until the holder is notified of its loss.
func (t *trial) isLost(h *hold) {
	t.Helper()
	locktest.Await(t, "the notification of a loss", h.lost)
}

// lasts checks that the holder was not notified of a loss.
func (t *trial) lasts(h *hold) {
	t.Helper()
	select {
	case <-h.lost:
		t.Fatal("the hold was lost")
	default:
	}
}

// stays checks that a hold lasts for d, and that no other process gets the lock.
func (t *trial) stays(h *hold, other *process, d time.Duration) {
	t.Helper()
	// No event says that nothing happens, so time has to pass.
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(ttl / 10) {
		t.lasts(h)
		t.isHeld(other)
	}
	t.lasts(h)
}

// waiting waits until n requests of a process wait.
func (t *trial) waiting(p *process, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d requests wait", n), func() bool {
		s, err := p.inspect(t.ctx, t.lock)
		return err == nil && s.waiters == n
	})
}

// queued waits until the wait queue has n entries, over all processes, if the lock is ordered.
func (t *trial) queued(p *process, n int) {
	t.Helper()
	if t.ordered {
		redistest.Eventually(t, fmt.Sprintf("%d requests in the wait queue", n), func() bool {
			s, err := p.inspect(t.ctx, t.lock)
			return err == nil && s.queue == n
		})
	}
}
