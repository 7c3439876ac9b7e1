package traffic

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

const (
	// crowdWait is how long a crowd waits before all its requests are cancelled.
	crowdWait = 300 * time.Millisecond
	// cancelLimit is how long a cancelled call may take, in a crowd of a few thousand.
	cancelLimit = 500 * time.Millisecond
)

// crowd makes many requests wait for what the worker holds, cancels them at the same time, and releases at that moment.
func (w *worker) crowd() {
	kinds := []Kind{Plain, Fair, ReadWrite, Expirable, Semaphore, Latch}
	switch kind := kinds[w.random.IntN(len(kinds))]; kind {
	case Semaphore:
		w.crowdAtSemaphore()
	case Latch:
		w.crowdAtLatch()
	case Expirable:
		w.crowdAtPermits()
	case ReadWrite:
		w.crowdAt(choice{
			lock:  w.c.system.ReadWriteLock(string(ReadWrite)).Write(),
			parts: []history.Part{{Lock: string(ReadWrite), Kind: "readwrite"}},
		})
	default:
		w.crowdAt(choose(w.c.system, kind, w.random))
	}
}

// crowdAt uses a lock, or an expirable semaphore.
func (w *worker) crowdAt(what choice) {
	acquire := func(ctx context.Context) (holding, error) {
		if what.permits != nil {
			return what.permits.Acquire(ctx)
		}
		return what.lock.Acquire(ctx, lockkeeper.WithoutReentry())
	}
	id := w.asking(what.parts, 0, true, 0)
	own, err := acquire(w.r.ctx)
	if hold, ok := own.(*lockkeeper.Hold); ok && err == nil {
		w.answered(id, hold, nil)
	} else {
		w.granted(id, err)
	}
	if err != nil {
		return
	}
	h := &held{w: w, id: id, lock: what, hold: own}
	h.look()
	cancel, last := w.gather(what.parts[0], func(ctx context.Context) (func() error, error) {
		got, err := acquire(ctx)
		return func() error { return got.Release(context.Background()) }, err
	})
	h.keep(crowdWait, 1)
	cancel()
	_ = h.release() // noted in the history
	last()
}

// crowdAtPermits uses an expirable semaphore with one permit for all crowds.
func (w *worker) crowdAtPermits() {
	name := string(Expirable) + "-crowd"
	permits := w.c.system.ExpirableSemaphore(name)
	if _, err := permits.TrySetPermits(w.r.ctx, 1); err == nil {
		w.crowdAt(choice{permits: permits, parts: []history.Part{{Lock: name, Kind: string(Expirable), Permits: 1, Total: 1}}})
	}
}

// crowdAtSemaphore uses the current semaphore, with one permit for all crowds.
func (w *worker) crowdAtSemaphore() {
	name := fmt.Sprintf("%s-crowd-%d", Semaphore, history.Now()/semaphoreAge)
	s := w.c.system.Semaphore(name)
	if _, err := s.TrySetPermits(w.r.ctx, 1, 0); err != nil {
		return
	}
	part := history.Part{Lock: name, Kind: string(Semaphore), Permits: 1, Total: 1}
	acquire := func(ctx context.Context) (func() error, error) {
		return func() error { return s.Release(context.Background(), 1) }, s.Acquire(ctx, 1)
	}
	id := w.asking([]history.Part{part}, 0, true, 0)
	_, err := acquire(w.r.ctx)
	w.granted(id, err)
	if err != nil {
		return
	}
	cancel, last := w.gather(part, acquire)
	w.pause(crowdWait)
	cancel()
	w.giveBackPermits(s, id, 1)
	last()
}

// crowdAtLatch uses a latch of the worker's own.
func (w *worker) crowdAtLatch() {
	bound := w.c.plan.CallTimeout + 250*time.Millisecond
	part := history.Part{Lock: fmt.Sprintf("%s-%d-%d-%d", Latch, w.c.spec.Proc, w.number, history.Now()), Kind: string(Latch)}
	l, closes, down := w.c.system.Latch(part.Lock), part, part
	closes.Action, closes.Permits = history.Close, 1
	down.Action, down.Permits = history.Down, 1
	if w.change(closes, bound, func() error { _, err := l.TrySetCount(context.Background(), 1); return err }) != nil {
		return
	}
	cancel, last := w.gather(part, func(ctx context.Context) (func() error, error) {
		return func() error { return nil }, l.Wait(ctx)
	})
	w.pause(crowdWait)
	cancel()
	_ = w.change(down, bound, func() error { return l.CountDown(context.Background()) })
	last()
}

// gather starts many goroutines with the same request. cancel cancels all of them, and last waits for the last of them.
// A grant that comes all the same is released at once; only such requests are in the history.
func (w *worker) gather(part history.Part, ask func(ctx context.Context) (giveBack func() error, err error)) (cancel, last func()) {
	ctx, stop := context.WithCancel(w.r.ctx)
	var crowd sync.WaitGroup
	n := w.c.plan.Crowd.Pick(w.random)
	for range n {
		crowd.Go(func() {
			asked := history.Now()
			giveBack, err := ask(ctx)
			if err != nil {
				return
			}
			id, granted := int(w.c.ids.Add(1)), history.Now()
			note := func(e history.Event) {
				e.ID = id
				w.r.out.Add(e)
			}
			note(history.Event{Stage: history.Asked, At: asked, Worker: w.number, Root: id, Parts: []history.Part{part}})
			note(history.Event{Stage: history.Granted, At: granted, Count: 1})
			if part.Kind == string(Latch) {
				return
			}
			note(history.Event{Stage: history.Releasing, At: history.Now()})
			e := history.Event{Stage: history.Released}
			if err := giveBack(); err != nil {
				e.Err, e.OutcomeUnknown = reason(err), true
			}
			e.At = history.Now()
			note(e)
		})
	}
	var since time.Duration
	cancel = func() { since = history.Now(); stop() }
	return cancel, func() {
		crowd.Wait()
		w.called(fmt.Sprintf("the last of %d cancelled requests for %s", n, part.Lock), 0, since, cancelLimit)
	}
}
