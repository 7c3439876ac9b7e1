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
	// look is how often a holder looks whether it may trust its lock, and note how
	// often that is written down while nothing changes.
	look = time.Millisecond
	note = 20 * time.Millisecond
	// lossLimit is how long a holder that does not trust its lock any more waits to
	// hear why.
	lossLimit = 4 * time.Second
	// askFor bounds what a holder asks about its lock.
	askFor = 100 * time.Millisecond
	// reentryWait bounds the wait for a re-entry.
	reentryWait = 2 * time.Second
	// deepest is how often a lock is re-entered.
	deepest = 3
)

// held is a hold of a worker.
type held struct {
	w    *worker
	id   int
	lock choice
	hold holding
	// inner: its trust is that of the hold that it re-entered, which is looked at.
	inner bool
	// over: it was given back. uncertain: what Redis counts is not for sure.
	// certain: the outcome of its release must be known.
	over, uncertain, certain bool
	// It was trusted from since to last; noted is what of that is written down.
	since, last, noted time.Duration
	invalid            bool
}

// look looks whether the hold is trusted.
func (h *held) look() {
	if h.inner || h.invalid {
		return
	}
	before := history.Now()
	valid := h.hold.Valid()
	if !valid {
		h.write()
		h.invalid = true
		h.w.r.out.Add(history.Event{Stage: history.Invalid, ID: h.id, At: before})
		return
	}
	// It was trusted at some moment between before and now.
	if h.since == 0 {
		h.since = history.Now()
	}
	if h.last = before; h.last-h.noted >= note {
		h.write()
	}
}

// write notes for how long the hold is known to have been trusted.
func (h *held) write() {
	if h.since == 0 || h.last < h.since || h.last == h.noted {
		return
	}
	h.noted = h.last
	h.w.r.out.Add(history.Event{Stage: history.Valid, ID: h.id, Since: h.since, At: h.last})
}

// keep holds on to the lock for a while, unless it is lost. The lock is held that often.
func (h *held) keep(d time.Duration, count int) {
	asks := h.w.random.IntN(8)
	for end := time.Now().Add(d); !h.invalid && time.Now().Before(end) && h.w.r.ctx.Err() == nil; {
		time.Sleep(look)
		h.look()
		switch asks {
		case 0:
			h.count(count)
		case 1:
			h.ensure()
		}
		asks = -1
	}
}

// count asks Redis how often the lock is held, which should be that often.
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

// ensure asks for time.
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

// reenter re-enters a hold of the tree, deeper and deeper, and comes back out.
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
		_ = h.release()      // noted in the history
		within.inner = false // it goes on by itself, as a reader
		within.look()
		within.keep(w.keepFor(), 1)
	}
	if within.release() != nil {
		h.uncertain = true
	}
}

// release gives the lock back. One that is not trusted any more is given back when the
// loss was told, or before.
func (h *held) release() error {
	h.over = true
	h.look()
	h.write()
	heard := h.invalid && h.w.random.IntN(2) == 0
	if heard {
		h.awaitLoss()
	}
	h.w.r.out.Add(history.Event{Stage: history.Releasing, ID: h.id, At: history.Now()})
	err := h.giveBack()
	e := history.Event{Stage: history.Released, ID: h.id, At: history.Now()}
	if err != nil {
		e.Err = reason(err)
		e.Doubtful = !errors.Is(err, lockkeeper.ErrLost) && !errors.Is(err, lockkeeper.ErrNotHeld)
	}
	h.w.r.out.Add(e)
	if h.invalid && !heard && err != nil {
		h.awaitLoss()
	}
	return err
}

// giveBack repeats a release over which the lock actor has crashed. Now and then it does
// not wait for long, while the release goes its way.
func (h *held) giveBack() error {
	bound := patience
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

// awaitLoss waits until the loss is told, in both ways in which it is.
func (h *held) awaitLoss() {
	for end := time.Now().Add(lossLimit); time.Now().Before(end); time.Sleep(look) {
		if err := h.hold.Err(); errors.Is(err, lockkeeper.ErrLost) && h.hold.Context().Err() != nil {
			h.w.r.out.Add(history.Event{Stage: history.Told, ID: h.id, At: history.Now(), Err: lossReason(err)})
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
