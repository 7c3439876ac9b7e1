package traffic

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

const (
	// look is how often a holder checks whether its hold is valid, and note how often that
	// is recorded while nothing changes.
	look = time.Millisecond
	note = 20 * time.Millisecond
	// lossLimit is how long a holder waits for the notification of a loss after its hold
	// became invalid.
	lossLimit = 4 * time.Second
	// askFor bounds the calls of a holder about its lock.
	askFor = 100 * time.Millisecond
	// reentryWait bounds the wait for a re-entry.
	reentryWait = 2 * time.Second
	// deepest is the depth of re-entries.
	deepest = 3
)

// held is a hold of a worker.
type held struct {
	w    *worker
	id   int
	lock choice
	hold holding
	// inner: the hold is a re-entry, valid as long as the outer hold, which is checked.
	inner bool
	// over: the hold was released.
	over bool
	// uncertain: the hold count in Redis is not certain.
	uncertain bool
	// certain: the outcome of the release must be known.
	certain bool
	// since is the first time at which the hold was valid.
	since time.Duration
	// last is the last time at which the hold was valid.
	last time.Duration
	// noted is the end of the recorded validity.
	noted   time.Duration
	invalid bool
}

// look checks whether the hold is valid.
func (h *held) look() {
	if h.inner || h.invalid {
		return
	}
	before := history.Now()
	valid := h.hold.Valid()
	if !valid {
		h.write()
		h.invalid = true
		h.w.r.out.Add(history.Event{Stage: history.Invalid, ID: h.id, At: history.Now()}) // it may have been valid before
		return
	}
	// It was valid at some moment between before and now.
	if h.since == 0 {
		h.since = history.Now()
	}
	if h.last = before; h.last-h.noted >= note {
		h.write()
	}
}

// write records how long the hold is known to have been valid.
func (h *held) write() {
	if h.since == 0 || h.last < h.since || h.last == h.noted {
		return
	}
	h.noted = h.last
	h.w.r.out.Add(history.Event{Stage: history.Valid, ID: h.id, Since: h.since, At: h.last})
}

// keep keeps the hold for d, unless it is lost. count is the expected hold count.
func (h *held) keep(d time.Duration, count int) {
	end := time.Now().Add(d)
	h.watch(min(d, look))
	switch h.w.random.IntN(8) {
	case 0:
		h.count(count)
	case 1:
		h.ensure()
	case 2:
		h.extend(end)
	}
	h.watch(time.Until(end))
}

// watch looks again and again for d, unless the hold is lost or the round ends.
func (h *held) watch(d time.Duration) {
	for end := time.Now().Add(d); !h.invalid && time.Now().Before(end) && h.w.r.ctx.Err() == nil; {
		time.Sleep(look)
		h.look()
	}
}

// count records the hold count in Redis, which should be want.
func (h *held) count(want int) {
	if !h.lock.counts || h.uncertain {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askFor)
	defer cancel()
	before := history.Now()
	status, err := h.lock.lock.Inspect(ctx)
	h.w.called("inspect", h.id, before, askFor)
	h.look()
	if err == nil && !h.invalid && strings.HasPrefix(status.Holder, h.w.c.system.ID()) {
		h.w.r.out.Add(history.Event{Stage: history.Counted, ID: h.id, At: history.Now(), Count: status.HoldCount, Want: want})
	}
}

// ensure calls Ensure.
func (h *held) ensure() {
	hold, ok := h.hold.(*lockkeeper.Hold)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askFor)
	defer cancel()
	d, before := h.w.c.plan.Watchdog*3/4, history.Now()
	err := hold.Ensure(ctx, d)
	h.w.called("ensure", h.id, before, askFor)
	if err == nil {
		h.w.r.out.Add(history.Event{Stage: history.EnsuredUntil, ID: h.id, Since: before, At: before + d})
	}
}

// extend gives the hold up to three other leases one after another, perhaps with pauses until end: a fixed lease,
// longer or shorter than the rest, or the lease of the watchdog. The last lease of a hold that is kept to its end is
// fixed.
func (h *held) extend(end time.Time) {
	for n := h.w.random.IntN(3); n >= 0 && !h.inner && !h.invalid; n-- {
		watchdog := h.w.c.plan.Watchdog
		lease, before := Range{watchdog / 4, watchdog}.Pick(h.w.random), history.Now()
		var err error
		if (n > 0 || !h.w.style.ToTheEnd) && h.w.random.IntN(2) == 0 {
			lease, err = 0, h.hold.KeepAlive(context.Background())
		} else {
			err = h.hold.Extend(context.Background(), lease)
		}
		h.w.extended(h.id, before, lease, err)
		h.look()
		h.watch(min(Range{0, watchdog / 2}.Pick(h.w.random), time.Until(end)))
	}
}

// reenter re-enters a hold, perhaps several levels deep, and releases the re-entries.
func (h *held) reenter(outer *lockkeeper.Hold, depth int) {
	w := h.w
	wait, cancel := context.WithTimeout(outer.Context(), reentryWait)
	defer cancel()
	var options []lockkeeper.Option
	if w.style.Fixed > 0 {
		options = append(options, lockkeeper.WithLease(w.style.Fixed))
	}
	id := w.asking(h.lock.inner, h.id, false, reentryWait)
	again, err := h.lock.reenter.Acquire(wait, options...)
	w.answered(id, again, err)
	if err != nil {
		h.uncertain = true
		return
	}
	within := &held{w: w, id: id, lock: h.lock, hold: again, inner: true}
	h.look()
	h.count(depth + 1)
	if depth < deepest && w.random.IntN(2) == 0 {
		h.reenter(again, depth+1)
	}
	h.keep(Range{0, 5 * time.Millisecond}.Pick(w.random), depth+1)
	if h.lock.downgrades && depth == 1 && w.random.IntN(2) == 0 {
		h.certain = true
		_ = h.release()      // recorded in the history
		within.inner = false // it continues alone, as a reader
		within.look()
		within.keep(w.keepFor(), 1)
	}
	if within.release() != nil {
		h.uncertain = true
	}
}

// release releases the hold. An invalid hold is released after the notification of the
// loss, or before.
func (h *held) release() error {
	h.over = true
	h.look()
	h.write()
	notified := h.invalid && h.w.random.IntN(2) == 0
	if notified {
		h.awaitLoss()
	}
	h.w.r.out.Add(history.Event{Stage: history.Releasing, ID: h.id, At: history.Now()})
	err := h.giveBack()
	e := history.Event{Stage: history.Released, ID: h.id, At: history.Now()}
	if err != nil {
		e.Err = reason(err)
		e.OutcomeUnknown = !errors.Is(err, lockkeeper.ErrLost) && !errors.Is(err, lockkeeper.ErrNotHeld)
	}
	h.w.r.out.Add(e)
	if h.invalid && !notified && err != nil {
		h.awaitLoss()
	}
	return err
}

// giveBack repeats a release during which the lock actor crashed. Sometimes its context ends
// soon, while the release continues.
func (h *held) giveBack() error {
	bound := timeout
	if !h.certain && h.w.random.IntN(8) == 0 {
		bound = askFor
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	for {
		before := history.Now()
		err := h.hold.Release(ctx)
		h.w.called("release", h.id, before, bound)
		if !errors.Is(err, lockkeeper.ErrCrashed) || h.hold.Err() != nil {
			return err
		}
	}
}

// awaitLoss waits until both the hold's error and its context report the loss.
func (h *held) awaitLoss() {
	for end := time.Now().Add(lossLimit); time.Now().Before(end); time.Sleep(look) {
		if err := h.hold.Err(); errors.Is(err, lockkeeper.ErrLost) && h.hold.Context().Err() != nil {
			h.w.r.out.Add(history.Event{Stage: history.Notified, ID: h.id, At: history.Now(), Err: lossReason(err)})
			return
		}
	}
}

func lossReason(err error) string {
	var e *lockkeeper.Error
	if errors.As(err, &e) {
		return named(e.Reason)
	}
	return err.Error()
}

// named is a reason as the report spells it.
func named(r messages.Reason) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(r.String(), "REASON_"), "_", " "))
}
