package lockkeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// WithDrain ends the context of the work d before the lock may be lost, unless its lease is renewed by then. So the
// work has the time d to stop, while no other process can hold the lock. The cause of the context wraps ErrLost, but
// the lock is still held, and is released when the work has returned. By default the context ends when the lock is
// lost; another process may already hold the lock by then. That may happen despite a drain when the key was deleted or
// released by force.
//
// If less than d is left at the grant, as after a late answer or a transfer by another process, and the lease cannot be
// renewed, the work is not called: Do, Spawn and Respond fail, usually with ErrUnavailable.
//
// Elect, Lead and LeaderProps treat a term that has been drained, or could not be, as lost: this process waits for the
// lock again. With a hold of Acquire, look at Hold.Left instead.
//
// d must be positive, and short enough that one renewal may fail: less than Watchdog − Renewal − CallTimeout (instead
// of CallTimeout a quarter of Watchdog if that is shorter), minus 1 % of Watchdog and 2 ms for clocks that differ;
// 17.698 s by default. With a fixed lease d must instead be less than the lease minus 1 % and 2 ms; with a max hold
// also less than the max hold.
//
// The work may still overlap with the work of another process if it does not return within d, or if the process or its
// machine stops meanwhile. Only a fencing token keeps out what the work writes then.
func WithDrain(d time.Duration) WorkOption {
	return workOption(func(r *acquireOptions) { r.drain = &d })
}

// checkDrain returns an error if the drain cannot be kept.
func (r *acquireOptions) checkDrain(c *machine.Config) error {
	if r.drain == nil {
		return nil
	}
	const margin = ", less a margin for clocks that differ"
	limit, of := longestDrain(c), "Watchdog − Renewal − CallTimeout"+margin
	switch {
	case r.lease != nil:
		limit, of = *r.lease-machine.Margin(*r.lease), "the lease"+margin
	case r.maxHold != nil && *r.maxHold < limit:
		limit, of = *r.maxHold, "the max hold"
	}
	if d := *r.drain; d <= 0 || d >= limit {
		return fmt.Errorf("the drain is %v, and must be more than 0 and less than %v: %s", d, limit, of)
	}
	return nil
}

// longestDrain returns the time that is left of a lease when one renewal has failed.
func longestDrain(c *machine.Config) time.Duration {
	return c.Watchdog - machine.Margin(c.Watchdog) - c.Renewal - min(c.CallTimeout, c.Watchdog/4)
}

// drain returns the drain of the hold; 0 if it has none.
func (h *Hold) drain() time.Duration {
	if h.rare == nil {
		return 0
	}
	return h.rare.drain
}

// watchDrain ends the hold's context when the drain begins, until stop is called. The error says why the drain cannot
// be kept from the beginning.
func (h *Hold) watchDrain(ctx context.Context) (stop func(), err error) {
	d := h.drain()
	if d == 0 {
		return func() {}, nil
	}
	// A lock that another process has transferred has a short lease at first.
	if err := h.Ensure(ctx, d); err != nil {
		if left := h.Left(); errors.Is(err, ErrInvalid) && h.count == 1 { // the options allow the drain
			detail := fmt.Sprintf("Redis has answered so late that %v of the lease are left, less than the drain of %v", left, d)
			err = &Error{Op: "hold", Lock: h.lock.Name(), Reason: messages.Reason_REASON_UNAVAILABLE, Detail: detail, Err: ErrUnavailable}
		}
		h.root.mu.Lock()
		defer h.root.mu.Unlock()
		h.rare.drained = mayPass(err)
		return nil, err
	}
	stopped := make(chan struct{})
	go func() {
		timer := time.NewTimer(h.Left() - d)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
			case <-h.rare.endChanged:
			case <-stopped:
				return
			}
			left := h.Left()
			if left <= d {
				h.beginDrain(left)
				return
			}
			timer.Reset(left - d)
		}
	}()
	return func() { close(stopped) }, nil
}

// beginDrain ends the context of the hold, unless the hold has ended.
func (h *Hold) beginDrain(left time.Duration) {
	h.root.mu.Lock()
	defer h.root.mu.Unlock()
	if h.ended == nil && h.cause == nil {
		h.rare.drained = true
		detail := fmt.Sprintf("its lease was not renewed; the work has %v to stop before it may be lost", left)
		h.cancelWith(&Error{Op: "hold", Lock: h.lock.Name(), Reason: messages.Reason_REASON_EXPIRED, Detail: detail, Err: ErrLost})
	}
}

// drained reports whether the drain has begun, or could not be kept from the beginning.
func (h *Hold) drained() bool {
	if h.drain() == 0 {
		return false
	}
	h.root.mu.Lock()
	defer h.root.mu.Unlock()
	return h.rare.drained
}
