package traffic

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// ExpirablePermits is the initial number of expirable permits.
const ExpirablePermits = 3

// holding is a hold of a lock, or an expirable permit.
type holding interface {
	Valid() bool
	Err() error
	Context() context.Context
	Extend(ctx context.Context, d time.Duration) error
	KeepAlive(ctx context.Context) error
	Release(ctx context.Context) error
}

// expirable is the expirable semaphore, of which a request sometimes wants two permits together.
func expirable(s *lockkeeper.System, random *rand.Rand) choice {
	part := history.Part{Lock: string(Expirable), Kind: string(Expirable), Permits: 1, Total: ExpirablePermits}
	if random.IntN(4) == 0 {
		part.Permits = 2
	}
	return choice{permits: s.ExpirableSemaphore(string(Expirable)), parts: []history.Part{part}}
}

// changePermits sets the number of expirable permits, if a style uses them, and changes it again and again.
func (w *worker) changePermits() {
	if !slices.ContainsFunc(w.c.plan.Styles, func(s Style) bool { return s.Kind == Expirable }) {
		return
	}
	permits, set := w.c.system.ExpirableSemaphore(string(Expirable)), false
	for ; w.r.ctx.Err() == nil; w.pause(w.style.Think.Pick(w.random)) {
		if !set {
			_, err := permits.TrySetPermits(w.r.ctx, ExpirablePermits)
			set = err == nil
			continue
		}
		part := history.Part{Lock: string(Expirable), Kind: string(Expirable)}
		how := permits.SetPermits
		if part.Action, part.Permits = history.Resize, ExpirablePermits-1+w.random.IntN(3); w.random.IntN(2) == 0 {
			part.Action, part.Permits, how = history.Add, 1-2*w.random.IntN(2), permits.AddPermits
		}
		_ = w.change(part, 2*w.c.plan.CallTimeout+time.Second, func() error { return how(context.Background(), part.Permits) })
	}
}

// change makes a change of a synchronizer within a bound, and records it.
func (w *worker) change(part history.Part, bound time.Duration, do func() error) error {
	id := w.asking([]history.Part{part}, 0, false, bound)
	err := do()
	w.granted(id, err)
	return err
}

// keepPermit acquires the permits of a recorded request, holds them for a while, and releases them.
func (w *worker) keepPermit(ctx context.Context, id int, what choice, options []lockkeeper.Option) {
	permit, err := what.permits.Acquire(ctx, append(options, lockkeeper.WithPermits(what.parts[0].Permits))...)
	w.granted(id, err)
	if err != nil {
		return
	}
	if w.random.IntN(4) == 0 {
		permit.ID() // excludes it from local hand-off
	}
	h := &held{w: w, id: id, lock: what, hold: permit}
	h.look()
	h.keep(w.keepFor(), 1)
	_ = h.release() // recorded in the history
}

// granted records the result of a request about a synchronizer.
func (w *worker) granted(id int, err error) {
	e := history.Event{Stage: history.Granted, At: history.Now(), ID: id, Count: 1}
	if err != nil {
		e.Stage, e.Count, e.Err = history.Refused, 0, reason(err)
	}
	w.r.out.Add(e)
}
