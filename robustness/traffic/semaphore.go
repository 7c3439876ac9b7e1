package traffic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

const (
	// SemaphorePermits is the initial number of permits of each semaphore.
	SemaphorePermits = 4
	// semaphoreAge is how long a semaphore is in use: the permits of a killed process stay taken, and
	// data that Redis has lost is not restored.
	semaphoreAge = 4 * time.Second
)

// useSemaphore acquires permits of the current semaphore, and releases them.
func (w *worker) useSemaphore() {
	name := fmt.Sprintf("%s-%d", Semaphore, history.Now()/semaphoreAge)
	s, n := w.c.system.Semaphore(name), 1+w.random.IntN(2)
	if _, err := s.TrySetPermits(w.r.ctx, SemaphorePermits, 0); err != nil {
		return // again, after a pause
	}
	if w.random.IntN(50) == 0 {
		w.addPermits(s)
		return
	}
	ctx, cancel := context.WithCancel(w.r.ctx)
	defer cancel()
	var options []lockkeeper.WaitOption
	bound := w.style.GiveUpAfter.Pick(w.random)
	switch w.random.IntN(4) {
	case 0:
		options = append(options, lockkeeper.WithWait(bound))
	case 1:
		giveUp := time.AfterFunc(bound, cancel)
		defer giveUp.Stop()
	default:
		bound = timeout / 4 // for waits for the permits of a dead process
		options = append(options, lockkeeper.WithWait(bound))
	}
	id := w.asking([]history.Part{{Lock: name, Kind: string(Semaphore), Permits: n, Total: SemaphorePermits}}, 0, false, bound)
	err := s.Acquire(ctx, n, options...)
	w.granted(id, err)
	if err != nil {
		return
	}
	w.pause(w.style.Hold.Pick(w.random))
	w.giveBackPermits(s, id, n)
}

// giveBackPermits releases permits that a request was granted.
func (w *worker) giveBackPermits(s *lockkeeper.Semaphore, id, n int) {
	w.r.out.Add(history.Event{Stage: history.Releasing, ID: id, At: history.Now()})
	var err error
	for err = lockkeeper.ErrCrashed; errors.Is(err, lockkeeper.ErrCrashed) || errors.Is(err, lockkeeper.ErrRejected); {
		before := history.Now()
		err = s.Release(context.Background(), n)
		w.called("release", id, before, w.c.plan.CallTimeout+250*time.Millisecond)
	}
	e := history.Event{Stage: history.Released, ID: id, At: history.Now()}
	if err != nil {
		e.Err, e.OutcomeUnknown = reason(err), true
	}
	w.r.out.Add(e)
}

// addPermits adds a permit, and removes one later.
func (w *worker) addPermits(s *lockkeeper.Semaphore) {
	for _, n := range []int{1, -1} {
		part := history.Part{Lock: s.Name(), Kind: string(Semaphore), Action: history.Add, Permits: n}
		_ = w.change(part, w.c.plan.CallTimeout+250*time.Millisecond, func() error { return s.AddPermits(context.Background(), n) })
		w.pause(w.style.Hold.Pick(w.random))
	}
}
